"""Selects the part of a conversation sent to the model: one policy, with presets for the four documented rules.

It works on what was read, for one request; nothing that is stored is ever changed by it. Pruning is the one rule with a
memory: at the end of a turn it notes which outputs are not sent any more, beside the messages.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from chat.core.model.language_model import ModelMessage, ToolMessage, UserMessage
from chat.errors import TurnConfigInvalid
from sessions_app.core.compaction.pruning import Prune
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from sessions_app.core.messages.parts import is_tool, state_of
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.shortening import shorten
from sessions_app.core.messages.tool_states import SETTLED
from sessions_app.core.messages.truncation import cut_text
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

CUT_RATIO: Final = 6
"""A prompt that a provider has cached costs it a tenth to a quarter of one that it reads anew; measured in `bench`."""

COLD_SECONDS: Final = 3_600
"""Providers forget a prompt that is not sent again: after 5 minutes to an hour.

Sources, both "prompt caching": developers.openai.com/api/docs/guides, platform.claude.com/docs/en/build-with-claude
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """Limits on the history sent to the model. Units: messages and characters; `None` disables a rule.

    The newest `keep_messages` are whole, messages of an assistant in a row counted as one: an answer that waited and
    went on is several. In older ones outputs are cut to `max_output_chars` and texts to
    `max_text_chars`. An output that is an object or a list stays one: it is shortened inside. With `cut_ratio` the cut
    waits, and is large (`cut_border.py`): until what it leaves out has been sent so many times as much as it makes the
    provider read again, or nothing was sent for `cold_seconds`; 0 cuts in every turn. `keep_calls_of`: tool calls are
    sent only where the last so many messages of the request's history have them. Beyond `max_messages` the first
    message of the user and the last `kept_messages` are sent, more where a call would be parted from its result.
    `prune` lets go of old outputs at the end of turns.
    """

    keep_messages: int = 4
    max_output_chars: int | None = 500
    max_text_chars: int | None = 10_000
    cut_ratio: int = 0
    cold_seconds: int = COLD_SECONDS
    keep_calls_of: int | None = None
    max_messages: int | None = None
    kept_messages: int = 25
    prune: Prune | None = None

    def as_cut(self) -> "ContextPolicy":
        """The policy for messages whose outputs and texts are cut already."""
        return replace(self, max_output_chars=None, max_text_chars=None)


PRUNING: Final = ContextPolicy(max_output_chars=None, max_text_chars=None, prune=Prune())
"""`"prune"`: nothing is cut, old outputs beyond a budget are let go for good."""

READ_TIME: Final = ContextPolicy(prune=Prune())
"""`"read-time"`: the last four messages whole, older outputs 500 characters, older texts 10,000."""

CACHE_AWARE: Final = ContextPolicy(cut_ratio=CUT_RATIO, prune=Prune())
"""`"cache-aware"`, the default: as `"read-time"`, but cut seldom and much, so that providers' caches serve the rest."""

LAST_CALLS: Final = ContextPolicy(max_output_chars=None, max_text_chars=None, keep_calls_of=2)
"""`"last-calls"`: tool calls only in the last two messages."""

CODING: Final = ContextPolicy(
    keep_messages=0, max_output_chars=8_000, max_text_chars=None, max_messages=40, kept_messages=25
)
"""`"coding"`: outputs 8,000 characters; of more than 40 messages the first of the user's and the last 25."""

WHOLE: Final = ContextPolicy(max_output_chars=None, max_text_chars=None)
"""`"whole"`: everything as it is stored."""

PRESETS: Final[dict[str, ContextPolicy]] = {
    "read-time": READ_TIME,
    "last-calls": LAST_CALLS,
    "coding": CODING,
    "prune": PRUNING,
    "whole": WHOLE,
    "cache-aware": CACHE_AWARE,
}


def context_policy(choice: ContextPolicy | str) -> ContextPolicy:
    """Give the policy that was chosen, itself or by its name. **Errors:** `TurnConfigInvalid` for an unknown name."""
    if isinstance(choice, ContextPolicy):
        return choice
    if not isinstance(choice, str) or choice not in PRESETS:  # type: ignore[redundant-expr]  # a developer's value
        known = ", ".join(repr(name) for name in PRESETS)
        raise TurnConfigInvalid(f"context_policy must be a ContextPolicy or one of {known}, not {choice!r}.")
    return PRESETS[choice]


def truncate(
    messages: Sequence[Message],
    policy: ContextPolicy = READ_TIME,
    *,
    border: int | None = None,
    forms: KeptForms = NO_FORMS,
) -> list[Message]:
    """Shorten old content for the model only. Changed messages are copies, others themselves; their number stays.

    `border`: the number of messages that count as old; all but the newest `keep_messages` where none is given.
    """
    border = newest(messages, policy.keep_messages) if border is None else border
    if policy.max_output_chars is None and policy.max_text_chars is None:
        return list(messages)
    name, cut = f"cut {policy.max_text_chars} {policy.max_output_chars}", partial(_cut_message, policy=policy)
    return [forms.made(message, name, cut) for message in messages[:border]] + list(messages[border:])


def newest(messages: Sequence[Message], count: int, end: int | None = None) -> int:
    """The place at which the newest so many begin, of those before `end`, else of all.

    An answer that waited and went on counts as one message.
    """
    border = len(messages) if end is None else end
    while border > 0 and (count > 0 or _goes_on(messages, border)):
        count -= not _goes_on(messages, border)
        border -= 1
    return border


def _goes_on(messages: Sequence[Message], border: int) -> bool:
    """Whether the answer at this place began in the message before it."""
    return border < len(messages) and messages[border - 1]["role"] == messages[border]["role"] == "assistant"


def _cut_message(message: Message, policy: ContextPolicy) -> Message:
    stored: Sequence[JSONValue] = message.get("parts", [])
    parts = [_cut_part(part, policy) for part in stored]
    return message if parts == stored else {**message, "parts": parts}


def _cut_part(part: JSONValue, policy: ContextPolicy) -> JSONValue:
    if not isinstance(part, dict):
        return part
    if part.get("type") == "text":
        max_chars, text = policy.max_text_chars, part.get("text", "")
        if max_chars is None or (isinstance(text, str) and len(text) <= max_chars):
            return part
        return {**part, "text": cut_text(str(text), max_chars)}
    if state_of(part) in SETTLED and policy.max_output_chars is not None:
        return {**part, **_cut_result(part, policy.max_output_chars)}
    return part


def _cut_result(part: Mapping[str, object], max_chars: int) -> JSONObject:
    if "errorText" in part:
        return {"errorText": cut_text(str(part["errorText"]), max_chars)}
    return {"output": shorten(part.get("output"), max_chars, cut_text)}


def without_calls(messages: Sequence[Message], kept_ids: Collection[str]) -> list[Message]:
    """Remove all other tool calls with their results, and messages left empty."""
    made: list[Message] = []
    for message in messages:
        stored: Sequence[JSONValue] = message.get("parts") or []
        parts = [p for p in stored if not _is_other_call(p, kept_ids)]
        if any(isinstance(part, dict) and part.get("type") != "step-start" for part in parts):
            made.append(message if len(parts) == len(message["parts"]) else {**message, "parts": parts})
    return made


def _is_other_call(part: JSONValue, kept_ids: Collection[str]) -> bool:
    return isinstance(part, dict) and is_tool(part) and part.get("toolCallId") not in kept_ids


def keep_ends(messages: tuple[ModelMessage, ...], policy: ContextPolicy) -> tuple[ModelMessage, ...]:
    """The first message of the user and the last ones, where there are too many.

    **Shape:** messages of a request, in which roles alternate and each result follows its call; both hold afterwards.
    """
    if policy.max_messages is None or len(messages) <= policy.max_messages:
        return messages
    start = len(messages) - policy.kept_messages
    while start > 0 and isinstance(messages[start], ToolMessage):
        start -= 1  # back to the message that made the calls
    first = next((i for i, message in enumerate(messages[:start]) if isinstance(message, UserMessage)), None)
    if first is None:
        return messages[start:]
    head, following = messages[first], messages[start]
    if isinstance(head, UserMessage) and isinstance(following, UserMessage):
        return (replace(head, content=(*head.content, *following.content)), *messages[start + 1 :])
    return (head, *messages[start:])
