"""Pruning: which old tool outputs are left out for the model, and their placeholders.

Outputs are looked at from the newest to the oldest, beyond the last exchanges. The newest of them stay, as many as fit
into a budget of tokens; what is older is let go, if that is worth it. The messages themselves are never changed: the
ids of the calls are noted beside them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from sessions_app.core.compaction.compaction import covered_range
from sessions_app.core.compaction.tokens import TokenCounter, length_over_four
from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.core.messages.parts import is_tool, map_parts, state_of, tool_name
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.shortening import json_length
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONValue, dump

CLEARED_TEXT: Final = "[Old tool result content cleared]"
"""What a model reads in the place of an output that was pruned."""

PRUNE_PROTECT: Final = 40_000
PRUNE_MINIMUM: Final = 20_000
PROTECTED_TURNS: Final = 2
LEAST_PAUSE_SECONDS: Final = 300
"""A shorter pause is not worth a note: no provider forgets a prompt sooner."""

PROTECTED_TOOLS: Final = frozenset({"skill", "load_context", "activate_skill"})
_PRUNED: Final = "pruned"  # on a part as models read it; never stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Prune:
    """The policy for old outputs. Units: tokens of `counter`.

    The newest `protect_tokens` of outputs stay, and nothing is done for `minimum_tokens` or less. Outputs of the last
    `protected_turns` exchanges do not count at all, those of `protected_tools` are never pruned.
    """

    protect_tokens: int = PRUNE_PROTECT
    minimum_tokens: int = PRUNE_MINIMUM
    protected_turns: int = PROTECTED_TURNS
    protected_tools: frozenset[str] = PROTECTED_TOOLS
    counter: TokenCounter = field(default=length_over_four)


def find_prunable(messages: Sequence[Message], prune: Prune) -> dict[str, list[str]]:
    """Ids of the calls to prune, by message id; nothing when too little would be saved.

    **Shape:** `messages`: a path as models read it, oldest first, in which pruned outputs are marked already.
    """
    found: dict[str, list[str]] = {}
    kept = saved = turns = 0
    for message in reversed(messages):
        turns += message.get("role") == MessageRole.USER
        if turns < prune.protected_turns:
            continue
        if covered_range(message) is not None:
            break  # a summary
        parts = message.get("parts") or []
        outputs = [part for part in reversed(parts) if _is_output(part, prune.protected_tools)]
        for part in outputs:
            if part.get(_PRUNED):
                return found if saved > prune.minimum_tokens else {}
            tokens = prune.counter(_as_text(part.get("output")))
            kept += tokens
            if kept > prune.protect_tokens:
                saved += tokens
                found.setdefault(str(message.get("id")), []).append(str(part["toolCallId"]))
    return found if saved > prune.minimum_tokens else {}


def as_sent(messages: Sequence[StoredMessage], session_id: str) -> list[Message]:
    """A path for the model: outputs pruned in this session are cleared, except in the last exchanges of *this* path.

    An output that was pruned on a longer path, or in the session that a fork shares it with, is whole where it is new.
    A user's message says when it was accepted (`sentAt`). The first part of a question that came long after the message
    before it has the pause.
    """
    turns = 0
    made: list[Message] = []
    for place in reversed(range(len(messages))):
        message = messages[place]
        turns += message.role == MessageRole.USER
        is_own_and_old = turns >= PROTECTED_TURNS and message.session_id == session_id
        read = _without_outputs(message.to_ui(), message.pruned_calls if is_own_and_old else ())
        if message.role == MessageRole.USER:
            read["sentAt"] = message.created_at.isoformat()
            pause = (message.created_at - messages[place - 1].created_at).total_seconds() if place else 0.0
            if message.parts and pause >= LEAST_PAUSE_SECONDS:
                read["parts"][0] = {**message.parts[0], "pauseSeconds": int(pause)}
        made.append(read)
    return made[::-1]


def _without_outputs(message: Message, call_ids: Collection[str]) -> Message:
    return map_parts(message, lambda part: _cleared(part, call_ids)) if call_ids else message


def merge_calls(known: Sequence[str], more: Sequence[str]) -> list[str]:
    """Ids of both, each once, in order."""
    return list(dict.fromkeys([*known, *more]))


def _cleared(part: Part, call_ids: Collection[str]) -> Part:
    if not is_tool(part) or "output" not in part or part.get("toolCallId") not in call_ids:
        return part
    return {**part, "output": CLEARED_TEXT, _PRUNED: True, "prunedChars": json_length(part["output"])}


def _is_output(part: Part, protected: Collection[str]) -> bool:
    return state_of(part) is ToolState.OUTPUT_AVAILABLE and tool_name(part) not in protected


def _as_text(value: JSONValue) -> str:
    return value if isinstance(value, str) else dump(value)
