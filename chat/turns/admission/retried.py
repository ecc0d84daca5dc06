"""The turn that an answer is asked for again after."""

from typing import Final

from chat.errors import TurnConflict
from chat.models import Turn, TurnOptions
from chat.turns.admission.intake import Placement
from fibers.core.states import TERMINAL

RETRIED: Final = 200
"""Turns of a history among which the one is looked for that is asked again."""


def retried_turn(session_id: str, placement: Placement) -> Turn | None:
    """The turn of the answer that is named, or the last one that was to answer this message. One query.

    Only its id and its options are read. **Errors:** `TurnConflict` for a message that waits for its turn (one query
    more): it would be answered twice.
    """
    turns = Turn.objects.filter(session_id=session_id).only("options").order_by("-position")
    if placement.replaces:
        return turns.filter(assistant_id=placement.replaces).first()
    answered = placement.answers[0]
    found = next((turn for turn in turns[:RETRIED] if answered in turn.options.get("answers", ())), None)
    if found is None or not placement.new_messages:
        return found
    if turns.filter(pk=found.pk).exclude(fiber__status__in=TERMINAL).exists():
        raise TurnConflict("This message still waits for its turn, and is answered then.")
    return found


def begun_alike(retried: Turn | None) -> TurnOptions:
    """The options by which a command, or a call without a model, begins again as the turn that is retried."""
    options: TurnOptions = {} if retried is None else retried.options
    again: TurnOptions = {}
    if "opening" in options:
        again["opening"] = options["opening"]
    if "direct_call" in options:
        again["direct_call"] = options["direct_call"]
    return again
