"""Effects of actions in the admin: what happened, what is stuck, and what a person may say about that."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import Text, about, linked, noted, of_conversation, shortened, state
from chat.turns.admission.effects import replay_effect
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.read_only_admin import NOTHING, block, moment
from tools_app.actions.ledger import confirm_stuck, release_stuck
from tools_app.core.action_rules import ActionStatus, UndoStatus
from tools_app.models import ActionRecord

EFFECT_WORDS: dict[str, tuple[str, Text]] = {
    ActionStatus.PENDING: ("pending", _("Outcome not known yet")),
    ActionStatus.SETTLED: ("completed", _("Happened")),
    ActionStatus.FAILED: ("error", _("Did not happen")),
}
"""Colour and words of each status."""

UNDO_WORDS: dict[str, Text] = {
    UndoStatus.NONE: _("possible"),
    UndoStatus.RUNNING: _("running"),
    UndoStatus.DONE: _("undone"),
    UndoStatus.FAILED: _("failed"),
}
RELEASED = "Released by staff: it did not happen."
CONFIRMED = "Confirmed by staff: it happened. Its own result is not known."


class EffectStatusFilter(admin.SimpleListFilter):
    """Effects by their status, in the words of the list."""

    title = _("state")
    parameter_name = "status"

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Return all words."""
        return [(status.value, EFFECT_WORDS[status][1]) for status in ActionStatus]

    @override
    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep the chosen ones."""
        return queryset.filter(status=self.value()) if self.value() in set(ActionStatus) else queryset


class EffectAdmin(ActionAdmin):
    """Effects, newest first. Staff who may change them may also settle what is stuck."""

    list_display = ("title", "conversation", "owner", "standing", "begun", "undoing")
    list_filter = (EffectStatusFilter, "created_at")
    list_select_related = ("owner",)
    search_fields = ("=call_id", "=turn_id", "=scope", "=action", "=key")
    search_help_text = _("The exact id of a call, turn or conversation, the name of an action, or its key.")
    ordering = ("-pk",)
    fieldsets = (
        (None, {"fields": ("action", "key", "conversation", "owner", "standing", "begun", "undoing")}),
        (_("Arguments and result"), {"fields": ("whole_input", "whole_output", "whole_undo")}),
        (
            _("Ids"),
            {
                "classes": ("collapse",),
                "fields": ("call_id", "turn", "attempt", "is_explicit", "lease_until", "settled_at"),
            },
        ),
    )
    actions = ("replay", "release", "confirm")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[ActionRecord]:
        """Add the conversation."""
        rows: QuerySet[ActionRecord] = super().get_queryset(request)
        return rows.annotate(**of_conversation("scope"))

    @admin.display(description=_("action"), ordering="action")
    def title(self, row: ActionRecord) -> str:
        """The name of the action, and its key."""
        return noted(row.action, shortened(row.key, 60))

    @override
    def page_title(self, row: ActionRecord) -> str:
        """The action, and the conversation."""
        return str(_("%(tool)s in “%(title)s”")) % {
            "tool": row.action,
            "title": about(row, reads=vars(row)["reads"]),
        }

    @admin.display(description=_("conversation"))
    def conversation(self, row: ActionRecord) -> str:
        """Link to the conversation."""
        found = vars(row)
        return linked("think_chat_agentinstance", found["about_id"], about(row, reads=found["reads"]))

    @admin.display(description=_("state"), ordering="status")
    def standing(self, row: ActionRecord) -> str:
        """The status, in words."""
        return state(*EFFECT_WORDS[row.status])

    @admin.display(description=_("begun"), ordering="created_at")
    def begun(self, row: ActionRecord) -> str:
        """When it was first begun."""
        return moment(row.created_at)

    @admin.display(description=_("undo"), ordering="undo")
    def undoing(self, row: ActionRecord) -> str:
        """The name of the compensation, and what became of it."""
        return noted(row.undo, UNDO_WORDS[row.undo_status]) if row.undo else NOTHING

    @admin.display(description=_("turn"))
    def turn(self, row: ActionRecord) -> str:
        """Link to the turn that made the call."""
        return linked("think_chat_turn", row.turn_id, row.turn_id)

    @admin.display(description=_("arguments"))
    def whole_input(self, row: ActionRecord) -> str:
        """All of them."""
        return block(row.input)

    @admin.display(description=_("result"))
    def whole_output(self, row: ActionRecord) -> str:
        """All of it."""
        return NOTHING if row.settled_at is None else block(row.output)

    @admin.display(description=_("result of the undoing"))
    def whole_undo(self, row: ActionRecord) -> str:
        """All of it."""
        return NOTHING if row.undo_output is None else block(dump(row.undo_output))

    @admin.action(description=_("Give the result to a call that never got it"), permissions=["manage"])
    def replay(self, request: HttpRequest, queryset: QuerySet[ActionRecord]) -> None:
        """Give results to calls whose turns ended without them."""
        self._each(request, queryset, replay_effect, _("%(done)d of %(all)d given."))

    @admin.action(description=_("Release: it did not happen"), permissions=["manage"])
    def release(self, request: HttpRequest, queryset: QuerySet[ActionRecord]) -> None:
        """Free the keys of pending effects."""
        self._each(request, queryset, lambda pk: release_stuck(pk, RELEASED), _("%(done)d of %(all)d released."))

    @admin.action(description=_("Confirm: it happened"), permissions=["manage"])
    def confirm(self, request: HttpRequest, queryset: QuerySet[ActionRecord]) -> None:
        """Settle pending effects, so that they do not happen again."""
        self._each(request, queryset, lambda pk: confirm_stuck(pk, CONFIRMED), _("%(done)d of %(all)d confirmed."))

    def _each(
        self, request: HttpRequest, queryset: QuerySet[ActionRecord], change: Callable[[int], bool], text: Text
    ) -> None:
        chosen = list(queryset.values_list("pk", flat=True))
        done = sum(change(pk) for pk in chosen)
        self.message_user(request, str(text) % {"done": done, "all": len(chosen)}, messages.SUCCESS)
