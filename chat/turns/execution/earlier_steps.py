"""The steps of the turns that a turn goes on from: for its limits they are steps of the same answer.

Sync; runs on the database bridge.
"""

from chat.core.loop.hooks import StepRecord
from chat.core.loop.request_records import RequestRecorder, SentRequest
from chat.core.loop.step_history import StepHistory
from chat.core.loop.totals import MODEL_PREFIX
from chat.core.loop.turn_state import TurnState
from chat.models import Turn
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.state.sent_requests import sent_before_each
from fibers.models import FiberStep
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from thinkproject.kernel.jsonvalue import JSONObject


def earlier_steps(facts: TurnFacts) -> tuple[StepRecord, ...]:
    """The steps, oldest first: of their journals and messages. Four queries; none for a turn that begins an answer."""
    if not facts.goes_on_from:
        return ()
    turns = {turn.pk: turn for turn in Turn.objects.filter(pk__in=facts.goes_on_from)}
    named = [turns[turn_id] for turn_id in facts.goes_on_from if turn_id in turns]
    messages = selectors.find_messages(facts.session_id, [turn.assistant_id for turn in named])
    journals: dict[str, dict[int, JSONObject]] = {}
    steps = FiberStep.objects.filter(fiber_id__in=[turn.fiber_id for turn in named], step_key__startswith=MODEL_PREFIX)
    for fiber_id, key, value in steps.values_list("fiber_id", "step_key", "value"):
        journals.setdefault(fiber_id, {})[int(key.removeprefix(MODEL_PREFIX))] = value or {}
    records = {turn.position: [value for _, value in sorted(journals.get(turn.fiber_id, {}).items())] for turn in named}
    before = sent_before_each(facts.session_id, records)
    return tuple(
        step
        for turn in named
        if turn.assistant_id in messages
        for step in _steps_of(
            turn, messages[turn.assistant_id].to_ui(), journals.get(turn.fiber_id, {}), before[turn.position]
        )
    )


def _steps_of(
    turn: Turn, message: Message, journal: dict[int, JSONObject], before: SentRequest
) -> tuple[StepRecord, ...]:
    history = StepHistory(TurnState.of(message), turn.request_id, None, RequestRecorder(sent=before))
    for number in sorted(journal):
        if journal[number].get("ends_step"):
            history.settled(journal[number])
    return history.records()
