"""Calls that a model makes again and again: when a person is asked whether the answer may go on. Pure."""

from collections.abc import Sequence
from typing import Final

from thinkproject.kernel.jsonvalue import fingerprint
from tools_app.core.tool_calls import ToolCall

DOOM_LOOP: Final = "doom_loop"
"""Key of the question about a call that goes round in a circle."""

SAME_CALLS: Final = 3
"""So often one call comes in a row before it counts as a loop."""

LONGEST_CYCLE: Final = 4
"""A cycle has at most so many calls; it counts as a loop when it comes twice in a row."""

LOOP_ERROR: Final = (
    "This call was not run: you have made the same calls with the same arguments before, and they will give nothing "
    "new. Do something else, or answer with what you have."
)


def cycle_of(steps: Sequence[Sequence[ToolCall]]) -> int:
    """Length of the cycle that the last of these calls completes; 0 where it completes none.

    `steps`: the calls of each step of the answer so far, oldest first. Arguments are compared as values, whatever the
    order of their keys. Equal calls of one step count once: the model made them before it saw a result.
    """
    prints: list[str] = []
    for calls in steps:
        prints += dict.fromkeys(f"{call.tool_name} {fingerprint(call.input)}" for call in calls)
    prints = prints[-2 * LONGEST_CYCLE :]
    if len(prints) >= SAME_CALLS and len(set(prints[-SAME_CALLS:])) == 1:
        return 1
    for length in range(2, min(LONGEST_CYCLE, len(prints) // 2) + 1):
        cycle = prints[-length:]
        if len(set(cycle)) > 1 and prints[-2 * length : -length] == cycle:
            return length
    return 0
