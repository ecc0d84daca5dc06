"""The turn that an answer is asked for again after."""

from typing import Final

from chat.models import Turn
from chat.turns.admission.intake import Placement

RETRIED: Final = 200
"""Turns of a history among which the one is looked for that is asked again."""


def retried_turn(session_id: str, placement: Placement) -> str | None:
    """The turn of the answer that is named, or the last one that was to answer this message. One query."""
    turns = Turn.objects.filter(session_id=session_id).order_by("-position")
    if placement.replaces:
        return turns.filter(assistant_id=placement.replaces).values_list("pk", flat=True).first()
    for turn_id, options in turns.values_list("pk", "options")[:RETRIED]:
        if placement.base_id in options.get("answers", ()):
            return str(turn_id)
    return None
