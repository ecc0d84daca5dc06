"""Schedules in the admin: when they run next, how the last runs went; to edit, pause, resume, run now and delete.

Prompts are messages: they are shown to those who may read messages.
"""

from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.formats import date_format
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from typing_extensions import override

from chat.admin.ability_forms import ScheduleForm, errors_in, posted
from chat.admin.ability_pages import TIMES_NOTE
from chat.admin.base import PageAdmin
from chat.admin.columns import Text, about, linked, noted, reads_messages, shortened, state
from chat.schedules.editing import can_edit, change_schedule, read_timing
from chat.schedules.outcomes import OccurrenceView, last_runs, runs_of
from chat.schedules.service import delete_schedule
from fibers.core.schedules.states import ScheduleStatus
from fibers.errors import ScheduleError
from fibers.models.schedules import Schedule
from fibers.schedules import services
from thinkproject.kernel.languages import translate
from thinkproject.kernel.read_only_admin import NOTHING, choice_filter, column, moment

STANDING_WORDS: Final[dict[str, tuple[str, Text]]] = {
    ScheduleStatus.ACTIVE: ("running", _("Active")),
    ScheduleStatus.PAUSED: ("pending", _("Paused")),
    ScheduleStatus.ENDED: ("completed", _("Over")),
    ScheduleStatus.BROKEN: ("error", _("Broken")),
}
"""Colour and words of each state."""

RUN_WORDS: Final[dict[str, tuple[str, Text]]] = {
    "waiting": ("pending", _("Waiting")),
    "running": ("running", _("Running")),
    "completed": ("completed", _("Completed")),
    "failed": ("error", _("Failed")),
    "stopped": ("aborted", _("Stopped")),
    "left_out": ("skipped", _("Left out")),
}
"""Colour and words of how a run went."""

MAKER_WORDS: Final[dict[str, Text]] = {
    "person": _("a person"),
    "model": _("the model"),
    "code": _("code"),
    "declaration": _("its class"),
}


StandingFilter = choice_filter(
    _("state"), "status", {each: (STANDING_WORDS[each][1], Q(status=each)) for each in ScheduleStatus}
)


@admin.register(Schedule)
class ScheduleAdmin(PageAdmin):
    """Schedules, newest first. They are made on the page of their conversation."""

    change_form_template = "admin/think_fibers/schedule/change_form.html"
    scope_column = "scope"
    list_display = ("work", "conversation", "owner", "standing", "times", "following", "last_run", "maker")
    list_filter = (StandingFilter, "kind", "created_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "=scope", "title")
    search_help_text = _("The exact id of a schedule or a conversation, or a part of the title.")
    ordering = ("-created_at",)
    actions = ("pause", "resume", "run_now", "remove")
    fieldsets = (
        (None, {"fields": ("work", "conversation", "owner", "standing", "times", "maker", "created_at")}),
        (_("Runs"), {"fields": ("following", "recent", "skipped", "can_overlap", "max_run_seconds")}),
    )

    def has_run_permission(self, request: HttpRequest) -> bool:
        """Whether this person may pause, resume and run schedules."""
        return request.user.has_perm(f"{self.opts.app_label}.run_schedule")

    def may_edit(self, request: HttpRequest, row: Schedule) -> bool:
        """Whether this person may edit a schedule; its prompt is a message."""
        allowed = request.user.has_perm(f"{self.opts.app_label}.change_schedule")
        return allowed and self.has_view_permission(request, row) and reads_messages(request) and can_edit(row)

    @override
    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.edit_view)
        return [path("<str:schedule_id>/edit/", view, name="think_fibers_schedule_edit"), *super().get_urls()]

    @override
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        may_edit = row is not None and self.may_edit(request, row)
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), "may_edit": may_edit})

    def edit_view(self, request: HttpRequest, schedule_id: str) -> HttpResponse:
        """Edit the title, the prompt and the times of a schedule that a person or a model made."""
        row = self.get_object(request, schedule_id)
        if row is None or not self.may_edit(request, row):
            raise PermissionDenied
        initial = {name: getattr(row, name) for name in ("title", "kind", "spec", "zone")}
        form = ScheduleForm(posted(request), initial={**initial, "prompt": (row.payload or {}).get("prompt", "")})
        back = reverse("admin:think_fibers_schedule_change", args=[row.pk])
        if form.is_bound and form.is_valid():
            changed = form.changed_data
            given: dict[str, Any] = {name: form.cleaned_data[name] for name in ("title", "prompt") if name in changed}
            with errors_in(form):
                if {"kind", "spec", "zone"} & set(changed):
                    given["timing"] = read_timing(*(form.cleaned_data[name] for name in ("kind", "spec", "zone")))
                change_schedule(row, **given)
                self.log_change(request, row, str(_("Edited.")))
                self.message_user(request, _("The schedule was changed."), messages.SUCCESS)
                return HttpResponseRedirect(back)
        context = {"form": form, "back": back, "note": TIMES_NOTE, "row_title": self.page_title(row)}
        return self.page(request, "edit", title=_("Edit the schedule"), **context)

    @override
    def page_title(self, row: Any) -> str:
        return self.work(row)

    @admin.display(description=_("schedule"))
    def work(self, row: Schedule) -> str:
        """The title, or the method, or the beginning of the prompt for those who may read messages."""
        payload = row.payload or {}
        named = row.title or payload.get("method") or payload.get("callable") or payload.get("task")
        if named:
            return shortened(str(named))
        return shortened(str(payload.get("prompt", ""))) if vars(row)["reads"] else str(_("A prompt"))

    @admin.display(description=_("conversation"))
    def conversation(self, row: Schedule) -> str:
        """Link to the conversation."""
        found = vars(row)
        return str(linked("think_chat_agentinstance", found["about_id"], about(row, reads=found["reads"])))

    standing = column(_("state"), lambda row: str(state(*STANDING_WORDS[row.status], row.error)), ordering="status")
    times = column(_("times"), lambda row: str(noted(row.get_kind_display(), f"{row.spec} ({row.zone})")))

    @admin.display(description=_("next five"), ordering="next_at")
    def following(self, row: Schedule) -> str:
        """The next five times, in the zone of the schedule."""
        try:
            zone = ZoneInfo(row.zone)
        except (ZoneInfoNotFoundError, ValueError):
            return NOTHING
        shown = [(date_format(each.astimezone(zone), "j M Y, H:i"),) for each in services.upcoming(row)]
        return str(format_html_join("", "<div>{}</div>", shown)) or NOTHING

    @admin.display(description=_("last run"))
    def last_run(self, row: Schedule) -> str:
        """The outcome, and when it began."""
        run = last_runs([row]).get(row.pk)
        return NOTHING if run is None else _went(run)

    @admin.display(description=_("last runs"))
    def recent(self, row: Schedule) -> str:
        """All that are kept, newest first, with what each did."""
        shown = [(_went(run), _did(run)) for run in runs_of(row.pk)]
        return str(format_html_join("", "<div>{}</div><div>{}</div>", shown)) or NOTHING

    maker = column(_("created by"), lambda row: str(MAKER_WORDS.get(row.created_by, row.created_by)))

    @admin.action(description=_("Pause"), permissions=["run"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Hold the selected schedules."""
        done = [row for row in queryset if services.pause_schedule(row.pk)]
        self._report(request, done, str(_("Paused.")))

    @admin.action(description=_("Resume"), permissions=["run"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Arm the selected schedules again."""
        done = []
        for row in queryset:
            try:
                if services.resume_schedule(row.pk):
                    done.append(row)
            except ScheduleError as error:
                self.message_user(request, f"{row}: {translate(error.phrase)}", messages.ERROR)
        self._report(request, done, str(_("Resumed.")))

    @admin.action(description=_("Run now"), permissions=["run"])
    def run_now(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Run the selected schedules now, besides their times."""
        done = []
        for row in queryset:
            try:
                services.run_now(row.pk)
            except ScheduleError as error:
                self.message_user(request, f"{row}: {translate(error.phrase)}", messages.ERROR)
            else:
                done.append(row)
        self._report(request, done, str(_("Run.")))

    @admin.action(description=_("Delete"), permissions=["remove"])
    def remove(self, request: HttpRequest, queryset: QuerySet[Schedule]) -> None:
        """Delete the selected schedules with the lists of their runs."""
        done = []
        for row in queryset:
            try:
                delete_schedule(row)
            except ScheduleError as error:
                self.message_user(request, f"{row}: {translate(error.phrase)}", messages.ERROR)
            else:
                done.append(row)
        self._report(request, done, str(_("Deleted.")))

    def _report(self, request: HttpRequest, done: list[Schedule], what: str) -> None:
        for row in done:
            self.log_change(request, row, what)
        text = ngettext("%(count)d schedule: %(what)s", "%(count)d schedules: %(what)s", len(done))
        self.message_user(request, text % {"count": len(done), "what": what}, messages.SUCCESS)


def _went(run: OccurrenceView) -> str:
    words = state(*RUN_WORDS[run.status], run.error)
    return format_html_join("", "{}", [(noted(words, moment(run.started_at)),)])


def _did(run: OccurrenceView) -> SafeString | str:
    """Link to the turn of a prompt, or to the work of a method."""
    if run.turn_id:
        return linked("think_chat_turn", run.turn_id, _("Turn"))
    return linked("think_fibers_fiber", run.fiber_id, _("Work"))
