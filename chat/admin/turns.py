"""Turns in the admin: what was asked of a model, what it cost, how it ended; to stop, to run again, to ask again."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.base import AgentOfConversationFilter
from chat.admin.columns import ASKED_AGAIN, STATUS_WORDS, asked_in
from chat.admin.overview import usage_page
from chat.admin.turn_columns import TRIGGER_WORDS, TurnColumns
from chat.conversations.staff_edits import ask_again, asked_by
from chat.models import Turn, TurnTrigger
from chat.turns.admission.stop import cancel_turn
from chat.turns.state.status import FINAL, SKIPPED_REASON, TurnStatus, fiber_statuses, turn_status
from fibers.core.states import FiberStatus
from fibers.services import requeue_fiber
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.read_only_admin import choice_filter


def _has_status(status: TurnStatus) -> Q:
    found = Q(fiber__status__in=fiber_statuses(status))
    if status is TurnStatus.SKIPPED:
        return found & Q(fiber__reason=SKIPPED_REASON)
    return found & ~Q(fiber__reason=SKIPPED_REASON) if status is TurnStatus.ABORTED else found


TurnStatusFilter = choice_filter(
    _("status"), "status", {each: (STATUS_WORDS[each], _has_status(each)) for each in TurnStatus}
)


TriggerFilter = choice_filter(
    _("asked for by"), "trigger", {each: (TRIGGER_WORDS[each], Q(trigger=each)) for each in TurnTrigger.values}
)


@admin.register(Turn)
class TurnAdmin(TurnColumns):
    """Turns: status, cost, and the exact request of each step."""

    change_form_template = "admin/think_chat/turn/change_form.html"
    list_display = ("title", "people", "status", "by_model", "spent", "accepted")
    list_filter = (TurnStatusFilter, AgentOfConversationFilter, TriggerFilter, "accepted_at")
    list_select_related = ("instance__owner", "fiber")
    search_fields = ("=id", "=request_id", "=instance__id", "=assistant_id")
    search_help_text = _("The exact id of a turn, a request, a conversation or an answer.")
    ordering = ("-id",)  # ids sort by time
    fieldsets = (
        (None, {"fields": ("conversation", "people", "status", "waits", "attempts", "error", "asked")}),
        (_("Cost"), {"fields": ("model_name", "models_shown", "used", "spent", "step_count", "accepted", "times")}),
        (_("What the model was sent"), {"fields": ("requests",)}),
        (_("Steps"), {"fields": ("journal",)}),
        (
            _("Ids and options"),
            {
                "classes": ("collapse",),
                "fields": (
                    *("id", "fiber_link", "history_link", "position", "request_id", "idempotency_key", "parent"),
                    *("answered_by", "retry_of"),
                    *("input_ids", "base_id", "base_is_explicit", "assistant_id", "body", "options"),
                ),
            },
        ),
    )
    actions = ("cancel_turns", "requeue_turns")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Turn]:
        """Add whether a call waits for a decision: the turn of such a call has ended, and says nothing of it."""
        rows: QuerySet[Turn] = super().get_queryset(request)
        return rows.annotate(is_asked=asked_in("pk"))

    @admin.action(description=_("Stop"), permissions=["manage"])
    def cancel_turns(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        """Stop the selected turns that have not ended. Their partial answers are kept."""
        chosen = list(queryset.select_related(None))
        done = [turn for turn in chosen if cancel_turn(turn.pk)]
        for turn in done:
            self.log_change(request, turn, str(_("Stopped.")))
        text = _("%(done)d of %(all)d stopped.")
        self.message_user(request, str(text) % {"done": len(done), "all": len(chosen)}, messages.SUCCESS)

    @admin.action(description=_("Run again where they broke off"), permissions=["manage"])
    def requeue_turns(self, request: HttpRequest, queryset: QuerySet[Turn]) -> None:
        """Run the selected turns again that failed or were interrupted, over their journals."""
        chosen = list(queryset.select_related(None))
        done = [turn for turn in chosen if requeue_fiber(turn.fiber_id)]
        for turn in done:
            self.log_change(request, turn, str(_("Run again.")))
        text = ngettext(
            "%(done)d of %(all)d is waiting to run again.", "%(done)d of %(all)d are waiting to run again.", len(done)
        )
        self.message_user(request, text % {"done": len(done), "all": len(chosen)}, messages.SUCCESS)

    @override
    def get_urls(self) -> list[URLPattern]:
        """Add usage, and what the buttons of a turn do."""
        wrap = self.admin_site.admin_view
        own = [
            path("usage/", wrap(self.usage_view), name="think_chat_turn_usage"),
            path("<str:turn_id>/act/", wrap(self.act_view), name="think_chat_turn_act"),
        ]
        return [*own, *super().get_urls()]

    def usage_view(self, request: HttpRequest) -> HttpResponse:
        """Show usage of everybody."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {**self.admin_site.each_context(request), "opts": self.opts, **usage_page(request)}
        return TemplateResponse(request, "admin/think_chat/turn/usage.html", context)

    def act_view(self, request: HttpRequest, turn_id: str) -> HttpResponse:
        """Stop a turn, run it again where it broke off, or ask again for another answer (POST)."""
        turn = Turn.objects.select_related("fiber", "instance").filter(pk=turn_id).first()
        if not self.has_view_permission(request) or not self.has_manage_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if turn is None:
            raise Http404
        do = {"stop": self._stop, "run-again": self._run_again, "ask-again": self._ask_again}.get(
            request.POST.get("do", "")
        )
        if do is None:
            raise Http404
        try:
            do(request, turn)
        except ThinkError as error:
            self.message_user(request, error.message, messages.ERROR)
        view, key = ("agentinstance", turn.instance_id) if "back" in request.POST else ("turn", turn.pk)
        return HttpResponseRedirect(reverse(f"admin:think_chat_{view}_change", args=[key]))

    def _stop(self, request: HttpRequest, turn: Turn) -> None:
        if cancel_turn(turn.pk):
            self.log_change(request, turn, str(_("Stopped.")))
            self.message_user(request, _("The turn was stopped. What it had written is kept."), messages.SUCCESS)
        else:
            self.message_user(request, _("The turn had ended already."), messages.WARNING)

    def _run_again(self, request: HttpRequest, turn: Turn) -> None:
        if requeue_fiber(turn.fiber_id):
            self.log_change(request, turn, str(_("Run again.")))
            self.message_user(request, _("The turn goes on where it broke off."), messages.SUCCESS)
        else:
            self.message_user(request, _("Only a turn that failed or broke off can be run again."), messages.WARNING)

    def _ask_again(self, request: HttpRequest, turn: Turn) -> None:
        message_id = asked_by(turn)
        made = ask_again(turn.instance, message_id, session_id=turn.session_id, user_id=request.user.pk)
        self.log_change(request, turn, str(_("Asked again: %(turn)s.")) % {"turn": made.pk})
        self.message_user(request, ASKED_AGAIN, messages.SUCCESS)

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the buttons that apply to the turn's state."""
        context = dict(extra_context or {})
        turn = Turn.objects.select_related("fiber").filter(pk=unquote(object_id)).first()
        context["has_runs"] = turn is not None and turn.runs.exists()
        if turn is not None and self.has_manage_permission(request):
            status = FiberStatus(turn.fiber.status)
            is_final = turn_status(status, turn.fiber.reason) in FINAL
            context["can_stop"] = not is_final
            context["can_run_again"] = status in {FiberStatus.FAILED, FiberStatus.INTERRUPTED}
            context["can_ask_again"] = is_final and bool(asked_by(turn))
        return super().change_view(request, object_id, form_url, context)
