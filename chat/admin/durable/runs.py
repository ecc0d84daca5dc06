"""Runs in the admin: which agent worked for which, what started it, how it ended, what it took; to stop."""

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.base import ActionAdmin, AgentFilter
from chat.admin.columns import Text, agent_title, linked, noted, shortened, state, title_of
from chat.models import AgentRun
from chat.sub_agents.views import run_view, with_counts, with_status
from chat.turns.delegation.stopping import stop_run
from thinkproject.kernel.read_only_admin import NOTHING, amount, block, choice_filter, column, moment

RUN_WORDS: dict[str, tuple[str, Text]] = {
    "starting": ("pending", _("Waiting to begin")),
    "running": ("running", _("Running")),
    "waiting": ("asked", _("Waits")),
    "completed": ("completed", _("Completed")),
    "error": ("error", _("Failed")),
    "aborted": ("aborted", _("Stopped")),
    "skipped": ("skipped", _("Skipped")),
    "interrupted": ("error", _("Not waited for")),
}
"""Colour and words of each status."""


UnderWayFilter = choice_filter(
    _("state"),
    "ended",
    {"no": (_("Under way"), Q(finished_at=None)), "yes": (_("Ended"), Q(finished_at__isnull=False))},
)


@admin.register(AgentRun)
class AgentRunAdmin(ActionAdmin):
    """Runs of agents for other agents, newest first."""

    list_display = ("title", "parent_link", "owner", "standing", "began", "spent")
    list_filter = (UnderWayFilter, AgentFilter, "is_detached", "created_at")
    list_select_related = ("owner", "parent", "child")
    search_fields = ("=id", "=run_id", "=parent__id", "=child__id", "=call_id", "=turn__id", "=parent_turn__id")
    search_help_text = _("The exact id of a run, a conversation, a turn or a tool call.")
    ordering = ("-created_at", "-pk")
    fieldsets = (
        (None, {"fields": ("title", "parent_link", "child_link", "owner", "standing", "began", "reported", "spent")}),
        (_("Input and outcome"), {"fields": ("whole_input", "whole_outcome")}),
        (
            _("Ids and options"),
            {
                "classes": ("collapse",),
                "fields": (
                    *("id", "run_id", "call_id", "parent_turn_link", "turn_link", "is_detached", "display_order"),
                    *("options", "display"),
                ),
            },
        ),
    )
    actions = ("stop_runs",)

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentRun]:
        """Add the state of the child's turn, and what the child has cost."""
        return with_counts(with_status(super().get_queryset(request)))

    @admin.display(description=_("agent"))
    def title(self, row: AgentRun) -> str:
        """The agent that works, by the name that clients are shown."""
        name = row.display.get("name") if isinstance(row.display, dict) else None
        agent = agent_title(row.agent)
        return noted(shortened(name), agent) if isinstance(name, str) and name != agent else agent

    @override
    def page_title(self, row: Any) -> str:
        parts = {"agent": agent_title(row.agent), "title": title_of(row.parent, reads=row.reads)}
        return str(_("%(agent)s for “%(title)s”")) % parts

    parent_link = column(
        _("parent"),
        lambda row: linked("think_chat_agentinstance", row.parent_id, title_of(row.parent, reads=row.reads)),
    )

    @admin.display(description=_("child"))
    def child_link(self, row: Any) -> str:
        """Link to the conversation in which it works."""
        child = row.child
        return NOTHING if child is None else linked("think_chat_agentinstance", child.pk, shortened(child.name))

    @admin.display(description=_("state"))
    def standing(self, row: AgentRun) -> str:
        """The status, in words, and why it failed."""
        view = run_view(row)
        why = (view.outcome or {}).get("reason") or (view.outcome or {}).get("error") or ""
        kind, words = RUN_WORDS.get(view.status, ("error", view.status))
        return state(kind, words, shortened(str(why)) if _reads(row) else "")

    @admin.display(description=_("started"), ordering="created_at")
    def began(self, row: AgentRun) -> str:
        """When it was started, and how long it took for its parent."""
        took = "" if row.finished_at is None else _time(row.finished_at - row.created_at)
        return noted(moment(row.created_at), took)

    @admin.display(description=_("progress"))
    def reported(self, row: AgentRun) -> str:
        """The last that it said of itself."""
        if row.progress is None:
            return NOTHING
        return noted(block(row.progress) if _reads(row) else NOTHING, moment(row.progress_at))

    @admin.display(description=_("cost"))
    def spent(self, row: AgentRun) -> str:
        """The cost and number of all turns of the child."""
        view = run_view(row)
        return noted(amount(view.cost), str(_("turns: %(count)d")) % {"count": view.turn_count})

    whole_input = column(
        _("input"), lambda row: block(row.input_preview) if row.input_preview is not None and _reads(row) else NOTHING
    )
    whole_outcome = column(
        _("outcome"), lambda row: block(row.outcome) if row.outcome is not None and _reads(row) else NOTHING
    )
    parent_turn_link = column(
        _("turn of the parent"), lambda row: linked("think_chat_turn", row.parent_turn_id, row.parent_turn_id or "")
    )
    turn_link = column(_("turn of the child"), lambda row: linked("think_chat_turn", row.turn_id, row.turn_id or ""))

    @admin.action(description=_("Stop"), permissions=["manage"])
    def stop_runs(self, request: HttpRequest, queryset: QuerySet[AgentRun]) -> None:
        """Stop the selected runs that are under way. What they have said is kept."""
        chosen = list(queryset.select_related(None))
        done = [run for run in chosen if run.outcome is None and stop_run(run)]
        for run in done:
            self.log_change(request, run, str(_("Stopped.")))
        text = _("%(done)d of %(all)d stopped.")
        self.message_user(request, str(text) % {"done": len(done), "all": len(chosen)}, messages.SUCCESS)


def _reads(row: Any) -> bool:
    """Whether the person who asks may read what was said (`with_reader`)."""
    return bool(row.reads)


def _time(took: timedelta) -> str:
    return str(_("took %(time)s")) % {"time": f"{took.total_seconds():.1f} s"}
