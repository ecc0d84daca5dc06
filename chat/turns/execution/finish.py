"""The end of a turn: stores answer, cost and status, and starts after-turn actions. All writes are fenced.

All functions are sync and run on the database bridge.
"""

from collections.abc import Sequence

from django.utils import timezone

from chat.files.attachments import bind
from chat.models import AgentInstance, Turn
from chat.turns.admission.tool_answers import answered_meanwhile
from chat.turns.background.costs import write_costs
from chat.turns.execution.after_turn import EndedTurn, TurnEnd, run_after_turn
from chat.turns.execution.turn_facts import TurnFacts, has_content, holds_generation
from fibers.context import FiberContext
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from sessions_app.messages.services import archive_beyond, prune_outputs, put_assistant
from thinkproject.kernel.jsonvalue import JSONObject

FINAL = "final"


def finish_turn(context: FiberContext, facts: TurnFacts, end: TurnEnd) -> None:
    """Store answer, cost and status, and start after-turn actions: recorded, so exactly once.

    Runs inside the fenced transaction that also commits the last of the log. The message is not stored when the
    conversation was cleared meanwhile, nor when it is empty.
    """
    was_stored = store_answer(facts, end.message, end.original_ids)
    if was_stored:
        if end.max_messages:
            archive_beyond(facts.session_id, end.max_messages)
        prune_outputs(facts.session_id, end.pruned)
    Turn.objects.filter(pk=facts.turn_id).update(
        finished_at=timezone.now(), error_text=end.error_text, error_code=end.error_code
    )
    write_costs(facts.turn_id, facts.session_id, end.totals)
    run_after_turn(EndedTurn(facts=facts, end=end, was_stored=was_stored))
    context.record_in(FINAL, {"outcome": end.outcome, "error": end.error_text, "code": end.error_code})


def store_answer(facts: TurnFacts, message: Message, original_ids: Sequence[str]) -> bool:
    """Store the answer, fitted to its row; false when it is empty or the conversation was cleared since.

    `original_ids` names the attachments that hold what the message lost. Safe to call twice.
    """
    if not has_content(message) or not holds_generation(facts.key.instance_id, facts.turn_id):
        return False
    answered = answered_meanwhile(facts.turn_id)(message)
    place = selectors.end_of_turn(facts.session_id, facts.turn_id, below=facts.leaf_id, besides=facts.assistant_id)
    put_assistant(facts.session_id, answered, after=place, turn_id=facts.turn_id)
    if original_ids and facts.key.owner_id is not None:
        bind(facts.key.owner_id, original_ids, AgentInstance.objects.get(pk=facts.key.instance_id))
    return True


def note_retry(turn_id: str, status: JSONObject) -> None:
    """Store the time of the next model retry, for disconnected clients. Other statuses are not stored."""
    if status["kind"] == "retry":
        Turn.objects.filter(pk=turn_id, finished_at=None).update(retry=status)
