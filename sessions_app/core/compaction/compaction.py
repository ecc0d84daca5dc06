"""Compaction: choosing the range to summarise, the request for the summary, and the overlaid path.

A stored message never changes here. A summary stands for the messages from its first to its last, on every path on
which both lie; it is read as one message of the assistant's whose id begins with `compaction_`. All messages are UI
messages, root first. Source: docs/design/compaction.md.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from sessions_app.core.compaction.file_lists import files_of, split_lists, with_lists
from sessions_app.core.compaction.summary_form import SHOWN_CHARS, SummaryForm
from sessions_app.core.compaction.tokens import (
    TokenCounter,
    count_tokens,
    estimate_message,
    estimate_messages,
    estimate_text,
)
from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.messages.parts import is_lasting, is_pending, is_settled, is_tool, map_parts, tool_name
from sessions_app.core.messages.plain_text import without_thoughts
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.core.messages.steered import steered
from sessions_app.core.messages.tool_states import ToolState
from sessions_app.core.messages.truncation import cut_text
from sessions_app.errors import CompactionFailed
from thinkproject.kernel.jsonvalue import JSONValue, dump

PROTECT_HEAD: Final = 3
TAIL_TOKENS: Final = 20_000
MIN_TAIL_MESSAGES: Final = 2
MAX_INPUT_TOKENS: Final = 60_000
"""Of a conversation, in one request for a summary; more is summarised piece by piece."""

_CHARS_OF_PIECE: Final = 3
"""Characters for each token that one text may have in a request: fewer than tokens have, for the rest of it."""

SYNTHETIC_PREFIX: Final = "compaction_"
STUB_TEXT: Final = "[The result of this call is in an earlier part of the conversation.]"

Summarize: TypeAlias = Callable[[str], Awaitable[str]]
"""Returns the summary that a prompt describes, usually from a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A stored compaction as reading needs it: message ids of its ends, the first not below the last."""

    id: str
    first_id: str
    last_id: str
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """Result of a compact function: the summary, and the first and last message it replaces."""

    first_id: str
    last_id: str
    summary: str


CompactFunction: TypeAlias = Callable[[Sequence[Message]], Awaitable[CompactionResult | None]]
"""Gets the history as the model gets it. `None`: there is nothing to do. The ids may be those of former summaries."""


# What is read


def summary_message(overlay: Overlay) -> Message:
    """The synthetic message that replaces those covered by an overlay."""
    return {
        "id": f"{SYNTHETIC_PREFIX}{overlay.id}",
        "role": MessageRole.ASSISTANT.value,
        "parts": [{"type": "text", "text": overlay.summary}],
        "metadata": {"compaction": {"id": overlay.id, "firstId": overlay.first_id, "lastId": overlay.last_id}},
    }


def beyond_reach(first_id: str, last_id: str) -> Message:
    """A placeholder for messages too far up to be read. A new summary covers them as well.

    Else they would come into reach, and to the model, as soon as the summary made room.
    """
    return summary_message(Overlay(id="", first_id=first_id, last_id=last_id))


def covered_range(message: Message) -> tuple[str, str] | None:
    """Ids of the first and the last message that a synthetic one stands for; nothing for any other message."""
    metadata = message.get("metadata")
    covered = metadata.get("compaction") if isinstance(metadata, dict) else None
    if not str(message.get("id", "")).startswith(SYNTHETIC_PREFIX) or not isinstance(covered, dict):
        return None
    return str(covered["firstId"]), str(covered["lastId"])


def overlaid(path: Sequence[str], overlays: Sequence[Overlay]) -> list[str | Overlay]:
    """The path as read, with overlays (ids, root first). The selectors do the same in SQL.

    From the leaf upwards: at the end of an overlay whose beginning lies above, the overlay is read and the walk goes on
    above its beginning. `overlays` are oldest first; of those with one end the newest counts.
    """
    place = {message_id: index for index, message_id in enumerate(path)}
    read: list[str | Overlay] = []
    index = len(path) - 1
    while index >= 0:
        ends_here = (o for o in reversed(overlays) if o.last_id == path[index])
        chosen = next((o for o in ends_here if place.get(o.first_id, len(path)) <= index), None)
        read.append(path[index] if chosen is None else chosen)
        index = (index if chosen is None else place[chosen.first_id]) - 1
    read.reverse()
    return read


# What is to be summarised


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A compaction plan: `middle` is to be summarised (no synthetic messages); `previous`: the earlier summary."""

    first_id: str
    last_id: str
    middle: tuple[Message, ...]
    previous: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of a compaction. Units: messages, tokens of the counter, and turns, each beginning at a user message.

    Of the bounds of the tail the one that keeps most counts. At most `min_new_messages` after the last summary stay
    too: they are not worth another.
    """

    protect_head: int = PROTECT_HEAD
    tail_tokens: int = TAIL_TOKENS
    min_tail_messages: int = MIN_TAIL_MESSAGES
    tail_turns: int = 0
    min_new_messages: int = 0


def plan_compaction(
    history: Sequence[Message], bounds: Bounds | None = None, counter: TokenCounter = estimate_text
) -> Plan | None:
    """Find the stretch to summarise, so that no call is parted from its result; `None` when there is none.

    A former summary that would stand in the head is taken into the stretch, with what follows it: the new summary
    stands for all of it.
    """
    bounds = bounds or Bounds()
    if len(history) <= bounds.protect_head + bounds.min_tail_messages or not _is_enough_new(history, bounds):
        return None
    start = align_forward(history, bounds.protect_head)
    start = min([start, *(index for index, message in enumerate(history) if covered_range(message))])
    end = align_backward(history, tail_start(history, bounds, counter, start), start)
    stretch = history[start:end]
    middle = tuple(message for message in stretch if covered_range(message) is None)
    if not middle:
        return None
    former = [message for message in stretch if covered_range(message) is not None]
    return Plan(
        first_id=str(stretch[0]["id"]),
        last_id=str(stretch[-1]["id"]),
        middle=middle,
        previous="\n\n".join(filter(None, map(_summary_text, former))),
    )


def _is_enough_new(history: Sequence[Message], bounds: Bounds) -> bool:
    """Whether so much came after the last summary that another is wanted. Where there is none, always."""
    # What stands for messages beyond reach has no text, and is no summary.
    summaries = (index for index in range(len(history) - 1, -1, -1) if _summary_text(history[index]))
    last = next(summaries, None)
    return last is None or len(history) - 1 - last > bounds.min_new_messages


def _summary_text(message: Message) -> str:
    """The text of a synthetic message; nothing of any other."""
    if covered_range(message) is None:
        return ""
    return "\n\n".join(part["text"] for part in message["parts"] if part["text"])


def tail_start(history: Sequence[Message], bounds: Bounds, counter: TokenCounter, head: int) -> int:
    """Index where the tail begins: as many messages as fit its budget, but always the newest few and the last turns."""
    least = max(1, bounds.min_tail_messages)
    start, used = len(history), 0
    while start > head:
        used += estimate_message(history[start - 1], counter)
        if used > bounds.tail_tokens and len(history) - start >= least:
            break
        start -= 1
    return min(start, _turns_start(history, bounds.tail_turns, head))


def _turns_start(history: Sequence[Message], turns: int, head: int) -> int:
    """Index where the last so many turns begin, but not above the head."""
    if turns < 1:
        return len(history)
    begins = [index for index in range(head, len(history)) if history[index].get("role") == MessageRole.USER]
    return begins[-turns] if turns <= len(begins) else head


def align_forward(history: Sequence[Message], index: int) -> int:
    """Move a boundary towards the leaf, past the results of calls that stand before it."""
    index = min(index, len(history))
    while True:
        called = {call_id for message in history[:index] for call_id in _open_calls(message)}
        answers = [i for i in range(index, len(history)) if not called.isdisjoint(_results(history[i]))]
        if not answers:
            return index
        index = answers[-1] + 1


def align_backward(history: Sequence[Message], index: int, start: int = 0) -> int:
    """Move a boundary towards the root, but not beyond `start`, until each call between the two has its result there.

    An unanswered call stays behind the boundary: its result may still come.
    """
    while True:
        answered = {call_id for message in history[start:index] for call_id in _results(message)}
        waiting = (i for i in range(start, index) if not _open_calls(history[i]) <= answered)
        earlier = next(waiting, index)
        if earlier == index:
            return index
        index = earlier


def _open_calls(message: Message) -> set[str]:
    """Calls without a result; a question that may stay open for a month holds up no summary."""
    return {str(part.get("toolCallId")) for part in _parts(message) if is_pending(part) and not is_lasting(part)}


def _results(message: Message) -> set[str]:
    return {str(part.get("toolCallId")) for part in _parts(message) if is_settled(part)}


def _parts(message: Message) -> list[Part]:
    parts: Sequence[JSONValue] = message.get("parts") or []
    return cast("list[Part]", [part for part in parts if isinstance(part, dict)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range of a new summary: its ends as stored messages, and their indices in the history."""

    first_id: str
    last_id: str
    start: int
    end: int  # index behind the last one


def stored_range(history: Sequence[Message], result: CompactionResult) -> Range | None:
    """The ends of a new summary as stored messages: synthetic ids are never stored.

    It grows over the former summaries in it and directly before it, so that the newest one stands for all. `None` when
    its ends are not in the history, or the wrong way round: then it is discarded.
    """
    places = {str(message["id"]): index for index, message in enumerate(history)}
    first, last = places.get(result.first_id), places.get(result.last_id)
    if first is None or last is None or last < first:
        return None
    while first > 0 and covered_range(history[first - 1]) is not None:
        first -= 1
    above, below = covered_range(history[first]), covered_range(history[last])
    return Range(
        first_id=above[0] if above else str(history[first]["id"]),
        last_id=below[1] if below else str(history[last]["id"]),
        start=first,
        end=last + 1,
    )


# How it is asked for


def create_compact_function(
    summarize: Summarize,
    *,
    bounds: Bounds | None = None,
    token_counter: TokenCounter = estimate_text,
    instructions: str = "",
    max_input_tokens: int = MAX_INPUT_TOKENS,
    form: SummaryForm | None = None,
) -> CompactFunction:
    """Make a compact function that summarises the messages between head and tail.

    A stretch that is too long for one request is summarised piece by piece, each with the summary of what was before.
    Of a text that is longer than a piece, or than the form has it, its beginning and its end are read.
    With `lists_files` the files that tools read and modified stand below the summary, those of former ones included;
    `summarize` never gets these lists, so it cannot lose them.
    **Errors:** `CompactionFailed` for a blank summary; what `summarize` raises.
    """
    form = form or SummaryForm()

    async def compact(history: Sequence[Message]) -> CompactionResult | None:
        plan = plan_compaction(history, bounds, token_counter)
        if plan is None:
            return None
        summary, former = split_lists(plan.previous) if form.lists_files else (plan.previous, None)
        piece_chars = max_input_tokens * _CHARS_OF_PIECE
        longest = min(piece_chars, form.text_chars or piece_chars)
        middle = [_readable(message, longest) for message in plan.middle]
        for piece in pieces(middle, max_input_tokens, token_counter, form.shown_chars):
            prompt = summary_prompt(piece, summary, instructions, token_counter, form)
            summary = without_thoughts(await summarize(prompt))
            if former is not None:  # lists that the model wrote would be taken for ours
                summary, _ = split_lists(summary)
            if not summary:
                raise CompactionFailed("The summary came back empty.")
        if former is not None:
            summary = with_lists(summary, former.then(files_of(sanitize_tool_pairs(plan.middle))))
        return CompactionResult(first_id=plan.first_id, last_id=plan.last_id, summary=summary)

    return compact


def _readable(message: Message, max_chars: int) -> Message:
    """The message with its texts cut to a piece."""
    return map_parts(message, lambda part: _cut_text_part(part, max_chars))


def _cut_text_part(part: Part, max_chars: int) -> Part:
    text = part.get("text")
    if part.get("type") != "text" or not isinstance(text, str) or len(text) <= max_chars:
        return part
    return {**part, "text": cut_text(text, max_chars)}


def pieces(
    messages: Sequence[Message], max_tokens: int, counter: TokenCounter, shown_chars: int = SHOWN_CHARS
) -> list[list[Message]]:
    """Split messages so that each piece, as a request shows it, has at most so many tokens; one alone may have more."""
    split: list[list[Message]] = []
    used = 0
    for message in messages:
        size = count_tokens(shown_message(message, shown_chars), counter)
        if not split or used + size > max_tokens:
            split.append([])
            used = 0
        split[-1].append(message)
        used += size
    return split


def summary_prompt(
    messages: Sequence[Message],
    previous: str,
    instructions: str = "",
    counter: TokenCounter = estimate_text,
    form: SummaryForm | None = None,
) -> str:
    """The request for a summary: a new one, or an update of the previous one."""
    form = form or SummaryForm()
    target = max(100, estimate_messages(messages, counter) // 5)
    task = _UPDATE if previous else _CREATE
    sane = sanitize_tool_pairs(messages)
    shown = "\n\n".join(filter(None, (shown_message(message, form.shown_chars) for message in sane)))
    texts = [task.format(target=min(target, form.max_tokens or target)), form.task()]
    if form.max_tokens:
        texts[0] += _LIMIT.format(limit=form.max_tokens)
    if instructions.strip():
        texts.append(f"The person asks for this in particular:\n{instructions.strip()}")
    if previous:
        texts.append(f"<previous_summary>\n{previous}\n</previous_summary>")
    return "\n\n".join([*texts, f"<conversation>\n{shown}\n</conversation>"])


_CREATE: Final = (
    "Summarise the part of a conversation that stands below. The summary will stand in its place, so a reader of it "
    "must be able to go on with the work. Use about {target} tokens."
)
_UPDATE: Final = (
    "Below stand the summary of a conversation so far, and the part that came after it. Bring the summary up to date: "
    "keep what still holds, add what is new, drop what is settled and no longer needed. It will stand in the place of "
    "both. Use about {target} tokens for what is new."
)
_LIMIT: Final = " The whole summary has at most {limit} tokens: what goes beyond them is cut off."


def shown_message(message: Message, shown_chars: int = SHOWN_CHARS) -> str:
    """A message as text for a summariser; empty when it has no content."""
    lines = [line for part in _parts(message) for line in _shown_part(part, shown_chars)]
    return f"[{message.get('role')}]\n" + "\n".join(lines) if lines else ""


def _shown_part(part: Part, shown_chars: int) -> list[str]:
    said = steered(part)
    if said is not None:
        lines = [line for each in said["parts"] for line in _shown_part(each, shown_chars)]
        return [f"(the user said meanwhile: {' '.join(lines)})"]
    if part.get("type") == "text":
        return [str(part.get("text", ""))] if str(part.get("text", "")).strip() else []
    if part.get("type") == "file":
        return [f"(file {part.get('filename') or ''} {part.get('mediaType') or ''})"]
    if not is_tool(part):
        return []
    result = part.get("errorText") if part.get("state") == ToolState.OUTPUT_ERROR else part.get("output")
    given = _cut(part.get("input"), shown_chars)
    return [f"(called {tool_name(part)} with {given})", f"(result: {_cut(result, shown_chars)})"]


def _cut(value: JSONValue, max_chars: int) -> str:
    text = value if isinstance(value, str) else dump(value)
    return cut_text(text, max_chars)


# Calls and their results


def sanitize_tool_pairs(messages: Sequence[Message]) -> list[Message]:
    """Give each call its one result: a result without a call goes, a call without a result gets a stub.

    A result that stands in a later message is moved to its call. Messages that are left empty are dropped.
    """
    called = {str(part.get("toolCallId")) for message in messages for part in _parts(message) if _is_call(part)}
    later: dict[str, Part] = {}
    for message in messages:
        for part in _parts(message):
            if is_tool(part) and not _is_call(part) and str(part.get("toolCallId")) in called:
                later.setdefault(str(part["toolCallId"]), part)
    sane: list[Message] = []
    for message in messages:
        parts = [_with_result(part, later) for part in _parts(message) if not is_tool(part) or _is_call(part)]
        if any(part.get("type") != "step-start" for part in parts):
            sane.append({**message, "parts": parts})
    return sane


def _is_call(part: Part) -> bool:
    """Whether a tool part contains the call's name and input, and not only its result."""
    return is_tool(part) and (not is_settled(part) or "input" in part or "rawInput" in part)


def _with_result(part: Part, later: dict[str, Part]) -> Part:
    if not is_pending(part):
        return part
    result = later.get(str(part.get("toolCallId")))
    if result is None:
        return {**part, "state": ToolState.OUTPUT_AVAILABLE.value, "output": STUB_TEXT}
    return cast("Part", part | {key: result[key] for key in ("state", "output", "errorText") if key in result})
