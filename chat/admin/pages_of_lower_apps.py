"""Tables of the apps below, registered anew with what only the chat knows: whose conversation a row is about.

Alone those apps list their rows without it. Summaries that are changed here notify the open pages.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

import sessions_app.admin.sessions  # noqa: F401 - registers first what is registered anew below
from chat.admin.actions import EffectAdmin
from chat.admin.columns import (
    Text,
    about,
    agent_title,
    linked,
    noted,
    of_conversation,
    of_present,
    title_of,
    with_reader,
)
from chat.admin.durable.fibers import FiberButtons
from chat.admin.durable.places import FiberPlace, places_of
from chat.admin.tool_calls import ToolCallAdmin
from chat.background.recovery import NOT_RESTARTED, RETRIES_EXHAUSTED
from chat.conversations import compactions
from chat.core import durable_names as names
from chat.models import AgentInstance
from chat.turns.state.status import SKIPPED_REASON
from fibers.admin import REASON_WORDS, FiberAdmin, NameFilter, StatusFilter, StepInline
from fibers.effects.registered import FAMILY as EFFECT
from fibers.models import Fiber
from fibers.models.schedules import ScheduleRun
from sessions_app.admin.changes import ChangeAdmin
from sessions_app.admin.context import BlockAdmin, CompactionAdmin, EntryAdmin
from sessions_app.admin.sessions import MessageAdmin, SessionAdmin, place_of
from sessions_app.compactions.services import SummaryAuthor
from sessions_app.models import Compaction, ContextBlock, ContextChange, ContextEntry, Message, Session
from sessions_app.search.query import SearchHit
from thinkproject.kernel.read_only_admin import NOTHING, ReadOnlyAdmin, column, moment
from tools_app.models import ActionRecord, ToolCallRecord

WORK: dict[str, Text] = {
    names.TURN_FIBER: _("A turn"),
    names.RESPONSE_FIBER: _("What follows an answer"),
    names.TITLE_FIBER: _("A title"),
    names.SUMMARY_FIBER: _("A summary for people"),
    names.EXPIRY_FIBER: _("The end of a question"),
    names.COMPACT_FIBER: _("A summary for the model"),
    names.SEALED_TURN_FIBER: _("The end of a broken turn"),
    names.MCP_FIBER: _("A connection to an MCP server"),
    names.AGENT_FIBER: _("Background work"),
    names.AGENT_QUEUE: _("A call of an agent's queue"),
    names.AGENT_RUN: _("Background work in its caller's process"),
    names.AGENT_FIBER_DONE: _("What follows background work"),
    names.AGENT_FIBER_SEALED: _("The end of broken background work"),
    names.AGENT_FIBERS_LOST: _("Background work that lost its worker"),
    names.RUN_ENDED_FIBER: _("The end of an agent's run"),
    names.AGENT_INBOX_FIBER: _("What is left in an inbox"),
    names.AGENT_REPLY_FIBER: _("The reply of an agent"),
    names.AGENT_PAUSE_FIBER: _("The pause of an agent"),
    names.QUERY_AGENT: _("An agent over other tables"),
    names.RUN_WATCH_FIBER: _("The limits of an agent's run"),
    names.STOP_RUNS_FIBER: _("The stop of agents' runs"),
    names.TOOL_CALL: _("A call that another process runs"),
    names.TOOL_CALL_ENDED: _("The end of such a call"),
    names.ARCHIVE_SCAN_FIBER: _("A look through an archive"),
    names.STREAM_WAKE_FIBER: _("A wake of a subscription of streams"),
    names.WEBHOOK_FIBER: _("A wake of another server"),
    EFFECT: _("An effect of a queryset"),
    names.STREAM_LEASE_FIBER: _("A look at the lease of a subscription of streams"),
    names.ARCHIVE_RUN_FIBER: _("An import of an archive"),
    names.DATA_EXPORT_FIBER: _("An export of everything of a person's"),
    names.ACCOUNT_REMOVAL_FIBER: _("The removal of an account"),
    names.MCP_READ_FIBER: _("A content of an MCP server"),
    names.SCHEDULED_FIBER: _("A run of a schedule"),
    names.DECLARED_FIBER: _("A look for declared tasks"),
    names.NOTICE_FIBER: _("News for people who are elsewhere"),
    names.PUSH_FIBER: _("A push to a device"),
    names.SCHEDULED_ENDED_FIBER: _("The end of a failed run of a schedule"),
}


def function_title(name: str) -> str:
    """A durable function in words where they are known."""
    family, _colon, member = name.partition(":")
    words = str(WORK.get(family, family))
    return f"{words}: {member}" if member else words


class NamedHistories(ReadOnlyAdmin):
    """Mixed in: rows of a history show the title of its conversation."""

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = of_present(super().get_queryset(request))
        return with_reader(rows.annotate(**of_conversation("session__scope")), request)

    def session_name(self, row: Any) -> str:
        """The title of the conversation, or the name of the history."""
        shown = about(row, reads=vars(row)["reads"])
        return str(row.session) if shown == NOTHING else shown


def with_conversation(page: type[ReadOnlyAdmin]) -> type[ReadOnlyAdmin]:
    """A page of the apps below, with the conversation of each row."""
    return type(page.__name__, (NamedHistories, page), {})


class TellingCompactionAdmin(NamedHistories, CompactionAdmin):
    """Summaries. The open pages of a conversation are notified of a change."""

    @override
    def conversation_of(self, row: Compaction) -> str:
        return self.session_name(row)

    @override
    def reword(self, row: Compaction, summary: str, author: SummaryAuthor) -> None:
        instance = _conversation_of(row)
        if instance is None:
            super().reword(row, summary, author)
        else:
            compactions.reword(instance, row.pk, summary, user_id=author.user_id, via=author.via)

    @override
    def take_back(self, row: Compaction, author: SummaryAuthor) -> None:
        instance = _conversation_of(row)
        if instance is None:
            super().take_back(row, author)
        else:
            compactions.undo(instance, row.pk, user_id=author.user_id, via=author.via)


class HistoryAdmin(SessionAdmin):
    """Histories by the title of their conversation. That page shows the current one, with what can be done."""

    list_display = ("title", "owner", "agent", "kept", "by_model", "spent", "updated")

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Session]:
        rows: QuerySet[Session] = of_present(super().get_queryset(request))
        return with_reader(rows.annotate(**of_conversation("scope")), request)

    @override
    def title_of(self, row: Session) -> str:
        """The conversation's title, with the name of the history where it has one."""
        shown = about(row, reads=vars(row)["reads"])
        return row.name if shown == NOTHING else f"{shown} · {row.name}" if row.name else shown

    @override
    def page_title(self, row: Session) -> str:
        return self.title_of(row)

    @admin.display(description=_("agent"))
    def agent(self, row: Session) -> str:
        """The agent of the conversation."""
        found = vars(row)
        return agent_title(found["about_agent"]) if found["about_agent"] else NOTHING

    @override
    def conversation_of(self, row: Session) -> str:
        found = vars(row)
        return linked(
            "think_chat_agentinstance", found["about_id"], about(row, reads=found["reads"]), f"?history={row.pk}"
        )


class SearchableMessageAdmin(MessageAdmin):
    """Messages by how they begin, in their conversation."""

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        rows: QuerySet[Message] = of_present(super().get_queryset(request))
        return rows.annotate(**of_conversation("session__scope"))

    @override
    def title_of(self, row: Message) -> str:
        shown = about(row, reads=True)
        return super().title_of(row) if shown == NOTHING else shown

    @override
    def shown_hits(self, hits: list[SearchHit]) -> list[dict[str, Any]]:
        """Open a hit on the page of its conversation."""
        shown = super().shown_hits(hits)
        scopes = {found["session"].scope for found in shown if found["session"] is not None}
        instances = AgentInstance.objects.in_bulk(scopes)
        for found in shown:
            instance = None if found["session"] is None else instances.get(found["session"].scope)
            if instance is not None:
                url = reverse("admin:think_chat_agentinstance_change", args=[instance.pk])
                session_id = found["session"].pk
                query = "" if session_id == instance.session_id else f"history={session_id}&"
                found["title"] = title_of(instance, reads=True)
                found["url"] = place_of(url, found["hit"].message_id, query)
        return shown


class WorkFilter(NameFilter):
    """By what is done, in words."""

    @override
    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(name, WORK.get(name, name)) for name, _name in super().lookups(request, model_admin)]


class JournalInline(StepInline):
    """The journal of a fiber, as a plain table."""

    template = "admin/think_sessions/read_only_inline.html"


class WorkAdmin(FiberButtons):
    """Fibers by what they do, and for which conversation."""

    list_display = ("work", "conversation", "owner", "standing", "tries", "times", "worker")
    list_filter = (StatusFilter, WorkFilter, "created_at")
    list_select_related = ("owner",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "work",
                    "conversation",
                    "turn",
                    "schedule",
                    "owner",
                    "standing",
                    "waits_for",
                    "tries",
                    "failure",
                )
            },
        ),
        *FiberAdmin.fieldsets[1:],
    )
    readonly_fields = (*FiberAdmin.readonly_fields, "conversation", "turn", "schedule")
    inlines = (JournalInline,)
    reason_words: Mapping[str, Text] = {
        **REASON_WORDS,
        "stopped": _("by a person or by code"),
        "deleted": _("its conversation or history was deleted"),
        SKIPPED_REASON: _("skipped before it began"),
        NOT_RESTARTED: _("its agent did not start it again"),
        RETRIES_EXHAUSTED: _("its workers were lost too often"),
    }

    class Media:
        css: ClassVar = {"all": ("think_sessions/admin.css",)}

    @override
    def get_queryset(self, request: HttpRequest) -> QuerySet[Fiber]:
        return with_reader(of_present(super().get_queryset(request)), request)

    @override
    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        rows = list(found.result_list)
        places = places_of(rows)
        for row in rows:
            row.place = places[row.pk]
        found.result_list = rows
        return found

    @override
    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Fiber | None:
        row: Any = super().get_object(request, object_id, from_field)
        if row is not None:
            row.place = places_of([row])[row.pk]
        return row  # type: ignore[no-any-return] # a model's instance takes further attributes

    work = column(_("work"), lambda row: function_title(row.name), ordering="name")

    @override
    def page_title(self, row: Fiber) -> str:
        place: FiberPlace = vars(row)["place"]
        if place.instance is None:
            return str(self.work(row))
        return f"{self.work(row)} · {title_of(place.instance, reads=vars(row)['reads'])}"

    @admin.display(description=_("turn"))
    def turn(self, row: Fiber) -> str:
        """Link to the turn that it runs."""
        place: FiberPlace = vars(row)["place"]
        return linked("think_chat_turn", place.turn_id, place.turn_id or NOTHING)

    @admin.display(description=_("schedule"))
    def schedule(self, row: Fiber) -> str:
        """Link to the schedule of which it is a run."""
        run = ScheduleRun.objects.select_related("schedule").filter(fiber=row).first()
        return NOTHING if run is None else linked("think_fibers_schedule", run.schedule_id, str(run.schedule))

    @admin.display(description=_("created"), ordering="created_at")
    def times(self, row: Fiber) -> str:
        """When it was started, and how long ago that ended."""
        if row.finished_at is None:
            return moment(row.created_at)
        took = str(_("%(seconds).1f s")) % {"seconds": max(0.0, (row.finished_at - row.created_at).total_seconds())}
        return noted(moment(row.created_at), str(_("ended after %(time)s")) % {"time": took})

    @admin.display(description=_("conversation"))
    def conversation(self, row: Fiber) -> str:
        """Link to the conversation that it works for."""
        place: FiberPlace = vars(row)["place"]
        if place.instance is None:
            return NOTHING
        title = title_of(place.instance, reads=vars(row)["reads"])
        return linked("think_chat_agentinstance", place.instance.pk, title)


def _conversation_of(row: Compaction) -> AgentInstance | None:
    return AgentInstance.objects.filter(pk=row.session.scope).first()


for table, page in (
    (Compaction, TellingCompactionAdmin),
    (ContextBlock, with_conversation(BlockAdmin)),
    (ContextEntry, with_conversation(EntryAdmin)),
    (ContextChange, with_conversation(ChangeAdmin)),
    (Session, HistoryAdmin),
    (Message, SearchableMessageAdmin),
    (Fiber, WorkAdmin),
):
    admin.site.unregister(table)  # registered by the apps below, which know of no conversations
    admin.site.register(table, page)
admin.site.register(ToolCallRecord, ToolCallAdmin)  # deciding about a call is the chat's business
admin.site.register(ActionRecord, EffectAdmin)
