"""The place up to which a conversation is cut for the model, so that the prompt's head stays the same for many turns.

Providers read a prompt cheaply as far as it begins like the one before. A cut changes what was sent already, and
everything behind it is read anew; so it waits until it saves enough, or until a pause has emptied the cache anyway.

The place is a function of the messages alone: it is found by walking through the questions from the oldest on, and each
looks only at what came before it. So a turn that begins again after a crash cuts at the same place, branches and forks
do so without a note of their own, and no question later changes what an earlier one decided.
"""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Final

from chat.core.context.context_policy import ContextPolicy, newest
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.messages.parts import is_tool, state_of
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.shortening import json_length
from sessions_app.core.messages.tool_states import SETTLED

WINDOW_SHARE: Final = 8
"""A cut never waits for more than this part of the model's window: one eighth."""


def cut_border(
    messages: Sequence[Message], policy: ContextPolicy, *, window_chars: int = 0, forms: KeptForms = NO_FORMS
) -> int:
    """The number of messages, from the oldest, of which outputs and texts are cut.

    The answer that is about to be written counts as one of those that are kept. **Shape:** `messages`: the history
    before it, root first. `window_chars`: characters that the model takes about, 0 if unknown.
    """
    if not policy.cut_ratio:
        return newest(messages, policy.keep_messages)
    name, measure = f"sizes {policy.max_text_chars} {policy.max_output_chars}", partial(_sizes, policy=policy)
    sizes = [forms.made(message, name, measure) for message in messages]
    if not any(more for _, more in sizes):
        return 0  # there is nothing to cut, as in most conversations
    sent = [0, *accumulate(kept for kept, _ in sizes)]  # characters of all before a message, cut
    saved = [0, *accumulate(more for _, more in sizes)]  # what cutting all before it saves
    border = gain = carried = 0  # `carried`: characters that were sent since the last cut and that one would have saved
    for place, message in enumerate(messages):
        if message.get("role") != MessageRole.USER:
            carried += gain * _calls(message)
            continue
        wanted = max(border, newest(messages, policy.keep_messages - 1, place + 1))
        gain = saved[wanted] - saved[border]
        if not gain:
            continue
        first = next(index for index in range(border, wanted) if sizes[index][1])
        read_again = sent[place + 1] - sent[first] + saved[place + 1] - saved[wanted]
        is_cold = _pause_seconds(message) >= policy.cold_seconds
        is_large = window_chars > 0 and gain * WINDOW_SHARE >= window_chars
        if is_cold or is_large or carried >= policy.cut_ratio * read_again:
            border, gain, carried = wanted, 0, 0
    return border


def _pause_seconds(question: Message) -> int:
    """The pause before a question; the longest where several were joined."""
    return max((part.get("pauseSeconds", 0) for part in question.get("parts") or []), default=0)


def _calls(answer: Message) -> int:
    """The number of model calls that made an answer."""
    return max(1, sum(part.get("type") == "step-start" for part in answer.get("parts") or []))


def _sizes(message: Message, policy: ContextPolicy) -> tuple[int, int]:
    """Characters that are sent of a message when it is cut, and those that the cut saves."""
    kept = saved = 0
    for part in message.get("parts") or []:
        length, limit = _size(part, policy)
        over = 0 if limit is None else max(length - limit, 0)
        kept += length - over
        saved += over
    return kept, saved


def _size(part: Part, policy: ContextPolicy) -> tuple[int, int | None]:
    """The length of a part's content, and what it may have in an old message. What was pruned counts as it was."""
    if part.get("type") == "text":
        return len(str(part.get("text") or "")), policy.max_text_chars
    if not is_tool(part):
        return 0, None
    given = part.get("errorText") if "errorText" in part else part.get("output")
    length = part.get("prunedChars") or json_length(given)
    return length, policy.max_output_chars if state_of(part) in SETTLED else None
