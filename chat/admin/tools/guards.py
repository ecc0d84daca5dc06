"""The injection guard in the admin: which conversations hold text of strangers, which, and what people decided."""

from typing import Any

from django.contrib import admin
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin
from chat.admin.columns import CONVERSATION, Text, about, agent_title, noted, state
from chat.turns.guarding.handed_down import rules_of
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyInline, column, moment
from tools_app.core.guard.rules import ON, GuardDecision
from tools_app.models import Guard, GuardEvent

GUARD_WORDS: dict[str, tuple[str, Text]] = {
    GuardDecision.NONE: ("asked", _("Asks")),
    GuardDecision.ASK: ("asked", _("Asks, as a person decided")),
    GuardDecision.UNTIL_NEW: ("completed", _("Allowed until there is further text")),
    GuardDecision.CONVERSATION: ("completed", _("Allowed in this conversation")),
}
"""Colour and words of each decision."""


class GuardEventInline(ReadOnlyInline):
    """Texts of strangers and decisions, in order."""

    template = "admin/think_sessions/read_only_inline.html"
    model = GuardEvent
    fields = ("number", "kind", "origin", "source", "turn_id", "call_id", "actor", "via", "created_at")
    readonly_fields = fields
    ordering = ("pk",)


@admin.register(Guard)
class GuardAdmin(ActionAdmin):
    """Guards, newest first. Read only: people decide in their conversations."""

    scope_column = "scope"
    list_display = ("conversation", "owner", "standing", "texts", "decided", "began")
    list_filter = ("decision", "created_at")
    list_select_related = ("owner", "decided_by")
    search_fields = ("=session__id", "=scope", "events__source")
    search_help_text = _("The exact id of a conversation, or an address, a path or a name.")
    ordering = ("-created_at",)
    inlines = (GuardEventInline,)
    fieldsets = ((None, {"fields": ("conversation", "owner", "standing", "texts", "decided", "began", "relaxed")}),)

    @override
    def page_title(self, row: Any) -> str:
        return str(_("Guard of “%(title)s”")) % {"title": about(row, reads=row.reads)}

    conversation = CONVERSATION

    @admin.display(description=_("state"), ordering="decision")
    def standing(self, row: Guard) -> str:
        """The decision, in words."""
        if row.standing.is_guarded():
            return state(*GUARD_WORDS[GuardDecision.NONE if row.decision != GuardDecision.ASK else GuardDecision.ASK])
        return state(*GUARD_WORDS[row.decision])

    texts = column(_("texts"), lambda row: f"{row.seen:,}", ordering="seen")

    @admin.display(description=_("decided by"))
    def decided(self, row: Guard) -> str:
        """The person who decided last, and when."""
        if row.decided_at is None:
            return NOTHING
        return noted(NOTHING if row.decided_by is None else row.decided_by.get_username(), moment(row.decided_at))

    began = column(_("begun"), lambda row: moment(row.created_at), ordering="created_at")

    @admin.display(description=_("weakened by its agent"))
    def relaxed(self, row: Any) -> str:
        """The reason that the agent's class gives."""
        rules = rules_of(row.about_agent or "")
        return NOTHING if rules == ON else noted(agent_title(row.about_agent), rules.reason)
