"""The begin of a turn: its input gets its place in the path, once, in the transaction that claims its fiber.

All functions are sync and run on the database bridge.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.utils import timezone

from chat.core.context.person_instructions import NO_INSTRUCTIONS, PersonInstructions
from chat.core.context.project_instructions import NO_PROJECT, ProjectContext
from chat.core.loop.request_records import ChainEnd
from chat.errors import TurnNotFound
from chat.instances.notifications import notify_message_changed
from chat.instances.rows import hold_instance, key_of
from chat.instances.runs import note_turn_end
from chat.members.selectors import user_key
from chat.models import AgentInstance, PersonPreferences, Project, Turn, TurnTrigger
from chat.people.preferences import instructions_of
from chat.turns.admission.tool_answers import ANSWERABLE, supersede_left_questions, supersede_open_calls
from chat.turns.execution.finish import FINAL
from chat.turns.execution.turn_facts import TurnFacts, facts_of
from chat.turns.inbox.answering import refuse_waiting
from chat.turns.state.deferred_input import add_deferred_messages, end_not_started
from chat.turns.state.inbox_rows import is_drained
from chat.turns.state.input_reservation import AWAITS
from chat.turns.state.sent_requests import LAST_RECORD, chain_end
from fibers.context import FiberContext
from fibers.core.states import TERMINAL
from sessions_app.core.compaction.pruning import as_sent
from sessions_app.core.messages.repair import repair_messages
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tree import Leaf
from sessions_app.messages import selectors
from sessions_app.messages.kept_paths import ReadPath, kept_paths
from sessions_app.messages.services import place_input, update_message
from sessions_app.messages.writer import Placed
from thinkproject.kernel.jsonvalue import JSONObject, dump
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.statements import Columns, Statement, instant
from tools_app.calls.selectors import OPEN_CALLS, lasting_calls
from tools_app.calls.services import Actor
from tools_app.core.tool_calls import OPEN
from tools_app.extensions.selectors import HAS_EXTENSIONS
from tools_app.guard.standings import HAS_GUARD
from tools_app.mcp.selectors import HAS_SERVERS
from tools_app.permissions.rows import HAS_RULES
from tools_app.workspace.selectors import HAS_FILES

logger = logging.getLogger(__name__)

TURN = Actor(user_id=None, via="turn")
BEGIN = "begin"
"""The point after the begin; turns of earlier versions have a record of this name."""

LEAF: Final = "leaf"
"""Name in the turn's options of the message that its answer hangs below; there once the turn has begun."""

_TURN: Final = Columns(Turn, prefix="t")
_INSTANCE: Final = Columns(AgentInstance, prefix="i")
_PERSON: Final = Columns(PersonPreferences, ("user_id", "about_me", "how_to_answer", "read_by"), prefix="p")
_PROJECT: Final = Columns(Project, ("id", "name", "instructions"), prefix="g")
_FIND: Final = Statement(
    """
    SELECT :turn:, :instance:, :person:, :project:, :has_project_files:,
        :has_extensions:, :has_mcp_servers:, :has_guard:, :has_rules:, :has_open_calls:,
        s.fiber_id, s.step_key, s.value
    FROM think_chat_turn t JOIN think_chat_agentinstance i ON i.id = t.instance_id
    LEFT JOIN think_chat_personpreferences p ON p.user_id = i.owner_id AND t.author = '' AND i.parent_id IS NULL
    LEFT JOIN think_chat_project g ON g.id = i.project_id AND t.author = ''
    LEFT JOIN think_fibers_fiberstep s ON s.id = :last_record:
    WHERE t.id = %s
    """,
    turn=_TURN,
    instance=_INSTANCE,
    person=_PERSON,
    project=_PROJECT,
    has_project_files=HAS_FILES.replace(":scope:", "g.id"),
    has_extensions=HAS_EXTENSIONS.replace(":owner:", "i.owner_id").replace(":instance:", "i.id"),
    has_mcp_servers=HAS_SERVERS.replace(":owner:", "i.owner_id").replace(":instance:", "i.id"),
    has_open_calls=OPEN_CALLS.replace(":scope:", "t.instance_id"),
    has_guard=HAS_GUARD.replace(":session:", "t.session_id"),
    has_rules=HAS_RULES.replace(":owner:", "i.owner_id"),
    last_record=LAST_RECORD.replace(":session:", "t.session_id").replace(":position:", "t.position"),
)
_BEGIN: Final = Statement(
    """
    UPDATE think_chat_turn SET started_at = %s, options = %s, finished_at = NULL, error_text = '', error_code = ''
    WHERE id = %s
    """
)
_BEGIN_AGAIN: Final = Statement(
    "UPDATE think_chat_turn SET finished_at = NULL, error_text = '', error_code = '' WHERE id = %s"
)


def begin_claimed(context: FiberContext) -> TurnFacts | None:
    """Begin a turn in the transaction that claims its fiber.

    Nothing where its caller supplies the input first, and where only its end is to be repeated.
    Errors: as `begin_turn`.
    """
    if any(key == FINAL for key, _ in context.records()):
        return None
    found = _find(str(context.payload["turn_id"]))
    if context.metadata.get(AWAITS) and not _has_begun(context, found.turn):
        return None
    return _begin(context, found)


def begin_turn(context: FiberContext, turn_id: str) -> TurnFacts:
    """Place the turn's input in the path and settle what earlier turns left open; once, in a transaction of its own.

    The facts of a turn that is over without having begun say so (`is_skipped`): its conversation was cleared since, or
    the answer that it continues is not the end of the shown path any more. Errors: `TurnNotFound`, `LeaseLost`.
    """
    with context.fenced():
        return _begin(context, _find(turn_id))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A turn with its instance, and what was looked up on the way."""

    turn: Turn
    has_open_calls: bool
    has_guard: bool
    has_rules: bool
    has_mcp_servers: bool
    has_extensions: bool
    last_request: ChainEnd | None
    instructions: PersonInstructions
    project: ProjectContext


def _find(turn_id: str) -> _Found:
    row = _FIND.one(turn_id)
    if row is None:
        raise TurnNotFound(Phrase("Turn {id!r} no longer exists.", id=turn_id))
    turn = _TURN.build(row)
    turn.instance = _INSTANCE.build(row[len(_TURN) :])
    extensions, servers, guard, rules, calls = (bool(value) for value in row[-8:-3])
    return _Found(
        turn=turn,
        has_open_calls=calls,
        has_guard=guard,
        has_rules=rules,
        has_mcp_servers=servers,
        has_extensions=extensions,
        last_request=chain_end(*row[-3:]),
        instructions=_instructions(turn, row[len(_TURN) + len(_INSTANCE) :]),
        project=_project(row[len(_TURN) + len(_INSTANCE) + len(_PERSON) :]),
    )


def _instructions(turn: Turn, row: tuple[Any, ...]) -> PersonInstructions:
    """The instructions of the person who asked. A member's take a query of their own; an agent that asks has none."""
    if turn.instance.parent_id is not None:
        return NO_INSTRUCTIONS
    if turn.author:
        return instructions_of(user_key(turn.author))
    if row[0] is None:
        return NO_INSTRUCTIONS
    written = _PERSON.build(row)
    return PersonInstructions(about_me=written.about_me, how_to_answer=written.how_to_answer, read_by=written.read_by)


def _project(row: tuple[Any, ...]) -> ProjectContext:
    """The project of the conversation, where its owner asks. A member's turn reads none (`chat.people.projects`)."""
    if row[0] is None:
        return NO_PROJECT
    found = _PROJECT.build(row)
    has_files = bool(row[len(_PROJECT)])
    return ProjectContext(id=found.pk, name=found.name, instructions=found.instructions, has_files=has_files)


def _has_begun(context: FiberContext, turn: Turn) -> bool:
    return LEAF in turn.options or leaf_of(turn, dict(context.records())) is not None


def leaf_of(turn: Turn, records: Mapping[str, JSONObject]) -> str | None:
    """The message that the answer of a turn hangs below, as its begin has noted it."""
    noted: str | None = turn.options[LEAF] if LEAF in turn.options else records.get(BEGIN, {}).get("leaf")
    return noted


def _begin(context: FiberContext, found: _Found) -> TurnFacts:
    facts = _begun(context, found.turn, found.has_open_calls)
    return replace(
        facts,
        has_guard=found.has_guard,
        has_rules=found.has_rules,
        has_mcp_servers=found.has_mcp_servers or bool(facts.author),  # a member has others than the owner
        has_extensions=found.has_extensions,
        last_request=found.last_request,
        instructions=found.instructions,
        project=found.project,
    )


def _begun(context: FiberContext, turn: Turn, has_open_calls: bool) -> TurnFacts:
    """The fiber's row is locked: a clear, which locks it too, has come before or comes after."""
    if _has_begun(context, turn):
        if turn.finished_at is not None:  # it was abandoned, and an operator has it run again
            _BEGIN_AGAIN.run(turn.pk)
        return facts_of(turn, leaf_of(turn, dict(context.records())))
    if turn.generation != turn.instance.generation or _is_left(turn) or is_drained(turn):
        mark_never_started(context.payload)
        return facts_of(turn, None, is_skipped=True)
    placed = _place(turn, has_open_calls)
    waiting = lasting_calls(turn.instance_id) if has_open_calls else ()
    turn.options = {**turn.options, "leaf": placed.leaf_id}
    if turn.instance.model_choice is not None:
        turn.options["model_choice"] = turn.instance.model_choice  # what changes later is for later turns
    path = None if placed.leaf_id is None else _repaired(turn, placed, waiting)
    _BEGIN.run(instant(timezone.now()), dump(turn.options), turn.pk)
    facts = facts_of(turn, placed.leaf_id)
    return facts if path is None else replace(facts, history=path.sent, forms=path.forms)


def mark_never_started(payload: JSONObject) -> None:
    """Note the end of a turn that never began, in the transaction that stops it."""
    refuse_waiting(payload["turn_id"])
    end_not_started(payload["turn_id"])
    turn = Turn.objects.filter(pk=payload["turn_id"], instance__parent__isnull=False).only("pk", "instance_id").first()
    if turn is not None:
        note_turn_end(turn.instance_id, turn.pk, "skipped")


def read_history(session_id: str, leaf_id: str) -> list[Message]:
    """The path to a message for the model: root first, its newest stretch, without pruned outputs."""
    return as_sent(selectors.model_history(session_id, leaf=leaf_id), session_id)


def _is_left(turn: Turn) -> bool:
    """Whether this continues an answer that is not the end of the active path any more.

    Where that answer had a lasting question, whether the active path does not have it at all any more.
    """
    if turn.parent_id is None:
        return False
    if turn.base_is_explicit:
        return selectors.leaf_id(turn.session_id) != turn.base_id
    answer_id = Turn.objects.values_list("assistant_id", flat=True).get(pk=turn.parent_id)
    return not selectors.is_on_path(turn.session_id, answer_id)


def _place(turn: Turn, has_open_calls: bool) -> Placed:
    """Place the input below the message it was meant for, after messages that stopped turns have left."""
    if has_open_calls:
        hold_instance(turn.instance)  # answers to them are taken by others who hold it
        statuses = ANSWERABLE if turn.trigger == TurnTrigger.CONTINUE else OPEN
        supersede_open_calls(turn.instance, TURN, session_id=turn.session_id, statuses=statuses)
    add_deferred_messages(turn)
    after = turn.base_id if turn.base_is_explicit else Leaf.ACTIVE
    placed = place_input(turn.session_id, turn.input_ids, after=after, left_behind=partial(_left_behind, turn))
    if has_open_calls:
        supersede_left_questions(turn.instance, TURN, session_id=turn.session_id, leaf_id=placed.leaf_id)
    return placed


def _repaired(turn: Turn, placed: Placed, waiting: Collection[str]) -> ReadPath | None:
    """The history; `None` after settling calls without a result, so that it is read again.

    `waiting`: ids of calls whose questions last, or that were approved then and are about to run. Clients that show the
    conversation are notified, and the log has a warning.
    """
    assert placed.leaf_id is not None
    leaf = Leaf.ACTIVE if placed.is_shown else placed.leaf_id
    path = kept_paths.read(turn.session_id, leaf, version=placed.version)
    unsettled = path.messages[min(path.settled, len(path.messages) - 1) :]  # the last one is judged as the last
    broken = repair_messages([message.to_ui() for message in unsettled], waiting=waiting)
    for repaired in broken:
        update_message(turn.session_id, repaired["id"], partial(_replace_by, repaired))
        notify_message_changed(key_of(turn.instance), turn.session_id, repaired["id"])
    if broken:
        extra = {"action": "transcript_repaired", "turn_id": turn.pk, "message_ids": [item["id"] for item in broken]}
        logger.warning("calls without a result were settled", extra=extra)
    return None if broken else path


def _replace_by(repaired: Message, _stored: Message) -> Message:
    return repaired


def _left_behind(turn: Turn, queued: Mapping[str, str]) -> Sequence[str]:
    """User messages of turns that were cancelled before they started; they are placed first, in order."""
    waiting = {message_id: turn_id for message_id, turn_id in queued.items() if turn_id != turn.pk}
    if not waiting:
        return []
    earlier = Turn.objects.filter(session_id=turn.session_id, position__lt=turn.position, started_at=None)
    ended = set(earlier.filter(pk__in=set(waiting.values()), fiber__status__in=TERMINAL).values_list("pk", flat=True))
    return [message_id for message_id, turn_id in waiting.items() if turn_id in ended]
