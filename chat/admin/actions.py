"""Effects of actions in the admin: what happened, what is stuck, and what a person may say about that."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import CONVERSATION, Text, about, linked, noted, shortened, state
from chat.turns.admission.effects import replay_effect
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.read_only_admin import NOTHING, block, choice_filter, column, moment
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


EffectStatusFilter = choice_filter(
    _("state"), "status", {each: (EFFECT_WORDS[each][1], Q(status=each)) for each in ActionStatus}
)


class EffectAdmin(ActionAdmin):
    """Effects, newest first. Staff who may change them may also settle what is stuck."""

    scope_column = "scope"
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

    title = column(_("action"), lambda row: noted(row.action, shortened(row.key, 60)), ordering="action")

    @override
    def page_title(self, row: ActionRecord) -> str:
        return str(_("%(tool)s in “%(title)s”")) % {
            "tool": row.action,
            "title": about(row, reads=vars(row)["reads"]),
        }

    conversation = CONVERSATION
    standing = column(_("state"), lambda row: state(*EFFECT_WORDS[row.status]), ordering="status")
    begun = column(_("begun"), lambda row: moment(row.created_at), ordering="created_at")
    undoing = column(
        _("undo"), lambda row: noted(row.undo, UNDO_WORDS[row.undo_status]) if row.undo else NOTHING, ordering="undo"
    )
    turn = column(_("turn"), lambda row: linked("think_chat_turn", row.turn_id, row.turn_id))
    whole_input = column(_("arguments"), lambda row: block(row.input))
    whole_output = column(_("result"), lambda row: NOTHING if row.settled_at is None else block(row.output))
    whole_undo = column(
        _("result of the undoing"), lambda row: NOTHING if row.undo_output is None else block(dump(row.undo_output))
    )

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
