"""The states of a tool part, and the only table of how one may follow another."""

from enum import StrEnum
from typing import Final


class ToolState(StrEnum):
    """The state of a tool part. The values are those on the wire."""

    INPUT_STREAMING = "input-streaming"
    INPUT_AVAILABLE = "input-available"
    APPROVAL_REQUESTED = "approval-requested"
    APPROVAL_RESPONDED = "approval-responded"
    OUTPUT_AVAILABLE = "output-available"
    OUTPUT_ERROR = "output-error"
    OUTPUT_DENIED = "output-denied"


SETTLED: Final = frozenset({ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR, ToolState.OUTPUT_DENIED})
"""States that hold a result. A settled part never changes again."""

MOVES: Final[dict[ToolState, frozenset[ToolState]]] = {
    ToolState.INPUT_STREAMING: frozenset({ToolState.INPUT_AVAILABLE, ToolState.OUTPUT_ERROR}),
    ToolState.INPUT_AVAILABLE: SETTLED | {ToolState.APPROVAL_REQUESTED, ToolState.APPROVAL_RESPONDED},
    ToolState.APPROVAL_REQUESTED: SETTLED | {ToolState.APPROVAL_RESPONDED},
    ToolState.APPROVAL_RESPONDED: SETTLED,
    ToolState.OUTPUT_AVAILABLE: frozenset(),
    ToolState.OUTPUT_ERROR: frozenset(),
    ToolState.OUTPUT_DENIED: frozenset(),
}
"""The states that may follow each state directly."""

ACCEPTS_RESULT: Final = frozenset(
    {ToolState.INPUT_AVAILABLE, ToolState.APPROVAL_REQUESTED, ToolState.APPROVAL_RESPONDED}
)
ACCEPTS_APPROVAL: Final = frozenset({ToolState.INPUT_AVAILABLE, ToolState.APPROVAL_REQUESTED})


def states_before(target: ToolState) -> frozenset[ToolState]:
    """The states from which a part can come to be in `target`, in one move or in several."""
    found: set[ToolState] = set()
    while True:
        added = {state for state, following in MOVES.items() if following & {target, *found}} - found
        if not added:
            return frozenset(found)
        found |= added
