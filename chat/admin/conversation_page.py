"""A conversation as its page in the admin shows it: what was said, with cost and author, and what stands around it.

A bounded page of it, whatever the length: a fixed number of queries. Rights decide what is in it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from chat.admin.ability_pages import ability_links
from chat.admin.columns import ASKED, STATUS_WORDS, Text, agent_title, asked_in, reads_messages, tokens
from chat.admin.turn_columns import TRIGGER_WORDS, duration_of
from chat.agent.registry import get_agent_class, is_served
from chat.conversations.staff_edits import edit_problem
from chat.instances.spending import spending
from chat.models import AgentInstance, AgentMessage, AgentRun, Turn
from chat.reads.declarations import declarations
from chat.turns.state.status import FINAL, TurnStatus, turn_status
from sessions_app.admin.conversation_view import ConversationView, ShownMessage, conversation_view
from sessions_app.core.messages.messages import MessageRole, is_message_id
from sessions_app.models import Session
from thinkproject.kernel.read_only_admin import amount
from tools_app.calls.selectors import questions_in
from tools_app.models import ToolCallRecord

TURNS_SHOWN: Final = 8
QUESTIONS_SHOWN: Final = 20
HISTORIES_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """A turn as the conversation's page shows it."""

    id: str
    position: int
    status: TurnStatus
    kind: str  # chooses the colour of `label`
    label: Text
    trigger: Text
    facts: str  # model, tokens, cost and time, as far as there are any
    error: str
    accepted_at: Any

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.status in FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A message with the turn that it belongs to. `turn` is nothing where an answer of the same page shows it."""

    view: ShownMessage
    turn: TurnLine | None
    can_edit: bool
    can_ask: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """Actions that a member of the staff may take here, by Django's permissions. Each takes the right to read, too."""

    reads: bool
    edits: bool = False
    adds: bool = False
    branches: bool = False
    runs: bool = False


def rights_of(request: HttpRequest) -> Rights:
    """The rights of the person who asks."""
    if not reads_messages(request):
        return Rights(reads=False)
    return Rights(
        reads=True,
        edits=request.user.has_perm("think_sessions.change_message"),
        adds=request.user.has_perm("think_sessions.add_message"),
        branches=request.user.has_perm("think_sessions.change_session"),
        runs=request.user.has_perm("think_chat.change_turn"),
    )


def page_of(request: HttpRequest, instance: AgentInstance) -> dict[str, Any]:
    """The context of a conversation's page besides Django's own."""
    rights = rights_of(request)
    histories = _histories(instance)
    session_id = _history(request, instance) or instance.session_id
    is_current = session_id == instance.session_id
    if not is_current or not is_served(instance.agent):
        rights = Rights(reads=rights.reads, runs=rights.runs and is_current)
    turns = _newest_turns(instance)
    declared = declarations(get_agent_class(instance.agent)) if is_served(instance.agent) else None
    context: dict[str, Any] = {
        "instance": instance,
        "rights": rights,
        "is_served": is_served(instance.agent),
        "declared": declared,
        "abilities": [] if declared is None else ability_links(request, instance.pk, declared),
        "is_current": is_current,
        "session_id": session_id or "",
        "histories": histories if len(histories) > 1 else [],
        "agent_title": agent_title(instance.agent),
        "spent": _spent(instance),
        "turns": turns,
        "questions": _questions(request, instance),
        "decides": request.user.has_perm("think_tools.change_toolcallrecord"),
        "running": [turn for turn in turns if not turn.is_final],
        "has_runs": AgentRun.objects.filter(parent=instance).exists(),
        "has_messages": AgentMessage.objects.filter(room=instance).exists(),
        "sub_agent_count": AgentInstance.objects.filter(parent=instance).count(),
        "kept_query": f"history={session_id}&" if not is_current else "",
    }
    if rights.reads and session_id:
        view = conversation_view(session_id, **_wanted(request), speakers=_speakers(instance, context["agent_title"]))
        context |= {
            "conversation": view,
            "lines": _lines(view, rights, asks=rights.runs and is_current and context["is_served"]),
        }
    return context


def _wanted(request: HttpRequest) -> dict[str, str]:
    given = {name: request.GET.get(name, "") for name in ("branch", "before", "at")}
    return {name: value if is_message_id(value) else "" for name, value in given.items()}


def _speakers(instance: AgentInstance, agent: str) -> dict[str, Text]:
    person = _("Person") if instance.owner is None else instance.owner.get_username()
    return {MessageRole.USER: person, MessageRole.ASSISTANT: agent, MessageRole.SYSTEM: _("System")}


def _histories(instance: AgentInstance) -> list[Session]:
    rows = Session.objects.filter(scope=instance.pk).only("id", "name", "updated_at").order_by("-updated_at", "id")
    return list(rows[:HISTORIES_SHOWN])


def _history(request: HttpRequest, instance: AgentInstance) -> str | None:
    """The history that is asked for, if it is one of the conversation's."""
    wanted = request.GET.get("history", "")
    if not is_message_id(wanted):
        return None
    return Session.objects.filter(pk=wanted, scope=instance.pk).values_list("id", flat=True).first()


def _newest_turns(instance: AgentInstance) -> list[TurnLine]:
    rows = Turn.objects.filter(instance=instance).order_by("-position")
    return [_turn_line(turn) for turn in _as_lines(rows)[:TURNS_SHOWN]]


def _as_lines(rows: QuerySet[Turn]) -> QuerySet[Turn]:
    return rows.select_related("fiber").annotate(is_asked=asked_in("pk"))


def _questions(request: HttpRequest, instance: AgentInstance) -> list[ToolCallRecord]:
    """The calls that wait for a person's decision, oldest first, for those who may see calls."""
    if not request.user.has_perm("think_tools.view_toolcallrecord"):
        return []
    return list(questions_in(instance.pk)[:QUESTIONS_SHOWN])


def _spent(instance: AgentInstance) -> dict[str, str]:
    found = spending(instance)
    return {
        "total": amount(found.total.cost),
        "below": amount(found.sub_agents.cost) if found.sub_agents.cost else "",
        "tokens": tokens(found.total.input_tokens, found.total.output_tokens),
    }


def _lines(view: ConversationView, rights: Rights, *, asks: bool) -> list[Line]:
    turns = _turns_of(view.messages)
    answered = {each.message.turn_id for each in view.messages if each.message.role == MessageRole.ASSISTANT}
    return [
        Line(
            view=each,
            turn=_shown_turn(each, turns, answered),
            can_edit=rights.edits and not edit_problem(each.message),
            can_ask=asks and each.message.role == MessageRole.ASSISTANT and each.message.parent_id is not None,
        )
        for each in view.messages
    ]


def _shown_turn(view: ShownMessage, turns: Mapping[str, TurnLine], answered: set[str]) -> TurnLine | None:
    """The turn of an answer; of a question only where no answer of it is there to show it."""
    turn_id = view.message.turn_id
    if view.message.role != MessageRole.ASSISTANT and turn_id in answered:
        return None
    return turns.get(turn_id)


def _turns_of(views: Iterable[ShownMessage]) -> dict[str, TurnLine]:
    ids = {view.message.turn_id for view in views} - {""}
    return {turn.pk: _turn_line(turn) for turn in _as_lines(Turn.objects.filter(pk__in=ids))} if ids else {}


def _turn_line(turn: Turn) -> TurnLine:
    status = turn_status(turn.fiber.status, turn.fiber.reason)
    is_asked = vars(turn)["is_asked"]
    used = tokens(turn.input_tokens, turn.output_tokens) if turn.input_tokens or turn.output_tokens else ""
    cost = amount(turn.cost) if turn.cost > Decimal(0) else ""
    return TurnLine(
        id=turn.pk,
        position=turn.position,
        status=status,
        kind="asked" if is_asked else status.value,
        label=ASKED if is_asked else STATUS_WORDS[status],
        trigger=TRIGGER_WORDS[turn.trigger],
        facts=" · ".join(each for each in (turn.model_name, used, cost, duration_of(turn)) if each),
        error=" ".join(each for each in (turn.error_text, f"({turn.error_code})" if turn.error_code else "") if each),
        accepted_at=turn.accepted_at,
    )
