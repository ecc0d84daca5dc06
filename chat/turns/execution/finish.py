"""The end of a turn: stores answer, cost and status, and starts after-turn actions. All writes are fenced.

All functions are sync and run on the database bridge.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from chat.agent.base import InstanceKey
from chat.files.attachments import bind
from chat.instances.notifications import notify_conversation
from chat.instances.rows import hold_if_there
from chat.models import AgentInstance, Turn
from chat.turns.admission.tool_answers import with_answers
from chat.turns.background.costs import TOKENS, used_since
from chat.turns.execution.after_turn import EndedTurn, TurnEnd, run_after_turn
from chat.turns.execution.turn_facts import TurnFacts, has_calls, has_content
from chat.turns.state.active import has_queued_turns
from fibers.context import FiberContext
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from sessions_app.messages.services import archive_beyond, prune_outputs, put_assistant
from sessions_app.messages.usage import SessionUsage, add_usage
from thinkproject.kernel.jsonvalue import JSONObject, dump
from thinkproject.kernel.statements import Columns, Statement, instant
from tools_app.calls.selectors import calls_of
from tools_app.calls.services import keep_open
from tools_app.core.tool_calls import CallStatus
from tools_app.workspace.turn_files import COUNT_OF_TURN

COMPLETED: Final = "completed"
FINAL: Final = "final"

_COST: Final = Columns(Turn, ("cost",))
_FINISH: Final = Statement(
    """
    UPDATE think_chat_turn SET finished_at = %s, error_text = %s, error_code = %s, input_tokens = %s,
        output_tokens = %s, reasoning_tokens = %s, cached_tokens = %s, cost = %s, model_name = %s, step_count = %s,
        model_report = %s, changed_file_count = :count_of_turn:
    WHERE id = %s
    RETURNING generation = (SELECT i.generation FROM think_chat_agentinstance i WHERE i.id = instance_id)
    """,
    count_of_turn=COUNT_OF_TURN,
)


def finish_turn(context: FiberContext, facts: TurnFacts, end: TurnEnd) -> None:
    """Store answer, cost and status, and start after-turn actions, exactly once.

    Runs inside the transaction that commits the last of the log. It completes the fiber where the turn ends well; the
    end of any other turn is recorded. The message is not stored when the conversation was cleared meanwhile, nor when
    it is empty.
    """
    totals = end.totals
    if has_calls(end.message):
        hold_if_there(facts.instance)  # before the turn is over: answers to its calls come now, or see that it is
    more = used_since(totals, facts.spent)
    found = _FINISH.one(
        instant(),
        end.error_text,
        end.error_code,
        *(getattr(totals.usage, name) for name in TOKENS),
        *_COST.prepare({"cost": totals.cost}),
        totals.model_name[:200],
        totals.steps,
        None if totals.report is None else dump(totals.report),
        facts.turn_id,
        facts.turn_id,
    )
    is_current = found is not None and bool(found[0])
    was_stored = is_current and _store(facts, end.message, end.original_ids, more, totals.model_name)
    if not was_stored and more is not None:
        add_usage(facts.session_id, more, model_name=totals.model_name)
    if was_stored:
        if end.max_messages:
            archive_beyond(facts.session_id, end.max_messages)
        prune_outputs(facts.session_id, end.pruned)
    run_after_turn(EndedTurn(facts=facts, end=end, was_stored=was_stored))
    if end.outcome != COMPLETED:
        context.record_in(FINAL, {"outcome": end.outcome, "error": end.error_text, "code": end.error_code})


def store_answer(facts: TurnFacts, message: Message, original_ids: Sequence[str]) -> bool:
    """Store the answer of a turn that was given up; false when it is empty or the conversation was cleared since.

    `original_ids` names the attachments that hold what the message lost. Safe to call twice.
    """
    holds = (
        hold_if_there(facts.instance)
        and Turn.objects.filter(pk=facts.turn_id, generation=facts.instance.generation).exists()
    )
    return holds and _store(facts, message, original_ids)


def _store(
    facts: TurnFacts,
    message: Message,
    original_ids: Sequence[str],
    usage: SessionUsage | None = None,
    model_name: str = "",
) -> bool:
    """Put the answer below its question, fitted to its row. The fiber's row is locked, so no clear is on its way."""
    if not has_content(message):
        return False
    answered = _outlasting(facts)(message) if has_calls(message) else message
    place = partial(
        selectors.end_of_turn, facts.session_id, facts.turn_id, below=facts.leaf_id, besides=facts.assistant_id
    )
    put_assistant(
        facts.session_id,
        answered,
        after=facts.leaf_id,
        find_after=place,
        turn_id=facts.turn_id,
        usage=usage,
        model_name=model_name,
    )
    if original_ids and facts.key.owner_id is not None:
        bind(facts.key.owner_id, original_ids, AgentInstance.objects.get(pk=facts.key.instance_id))
    return True


def note_retry(key: InstanceKey, turn_id: str, status: JSONObject) -> None:
    """Store the time of the next model retry, for clients that do not follow the turn, and notify open lists."""
    if Turn.objects.filter(pk=turn_id, finished_at=None).update(retry=status):
        notify_conversation(key.owner_id, key.instance_id)


def _outlasting(facts: TurnFacts) -> Callable[[Message], Message]:
    """Keep questions open for messages that wait already: they were written before the person could know of any."""
    rows = list(calls_of(facts.turn_id))
    asked = [row.pk for row in rows if row.status == CallStatus.ASKED and not row.lasting]
    if asked and has_queued_turns(facts.key.instance_id):
        keep_open(asked)
    return with_answers(rows)
