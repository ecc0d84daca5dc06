"""The outcome of a conversation that is compared: without what differs from run to run, as ids and seams.

Pure: rows come in as plain values.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sessions_app.core.messages import call_texts
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

ID: Final = re.compile(r"\b([a-z]{2,8})_[0-9a-hjkmnp-tv-z]{24}\b")
"""Ids that this product makes (`thinkproject.kernel.ids`)."""

SEAM: Final = "data-think-resumed"
CUT_TEXTS: Final = (call_texts.INPUT_CUT, call_texts.INTERRUPTED)
"""Results of calls that a crash has cut for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrashOutcome:
    """The outcome of a conversation. `faults`: what holds for no run at all, however it went."""

    messages: list[JSONValue]
    endings: list[str]
    effects: Counter[str]
    tool_runs: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def cut_calls(self) -> int:
        """Calls whose result says that they were cut."""
        return sum(dump(self.messages).count(text) for text in CUT_TEXTS)


def normalised(messages: Iterable[Any]) -> list[JSONValue]:
    """Messages without their ids and seams; other ids of ours are numbered in the order in which they come."""
    names: dict[str, str] = {}
    plain = [{"role": message["role"], "parts": [_part(part) for part in _lasting(message)]} for message in messages]
    return [_numbered(message, names) for message in plain]


def counted(effects: Iterable[Any]) -> Counter[str]:
    """Effects by how often each is there. Ids of ours in them do not count: they differ from run to run."""
    return Counter(ID.sub(r"<\1>", effect if isinstance(effect, str) else repr(effect)) for effect in effects)


def stream_faults(chunks: Sequence[JSONObject], stored: JSONObject | None) -> list[str]:
    """Whatever is wrong with the log of a turn alone, and with what is stored of it."""
    kinds = Counter(str(chunk["type"]) for chunk in chunks)
    faults = [f"its stream has {kinds[kind]} chunks {kind!r}" for kind in ("start", "finish") if kinds[kind] > 1]
    outputs = Counter(
        str(chunk["toolCallId"])
        for chunk in chunks
        if chunk["type"] in {"tool-output-available", "tool-output-error"} and not chunk.get("preliminary")
    )
    faults += [f"its stream has {count} outputs of call {call}" for call, count in outputs.items() if count > 1]
    said = ""
    for chunk in chunks:
        if chunk["type"] == "text-delta":
            said += str(chunk["delta"])
        elif chunk["type"] == SEAM:
            said = said.removesuffix(str(chunk["data"].get("replaced", "")))
    kept = "" if stored is None else "".join(part["text"] for part in stored["parts"] if part["type"] == "text")
    if stored is not None and said != kept:
        faults.append(f"its stream says {said!r}, its message {kept!r}")
    return faults


def differences(right: CrashOutcome, found: CrashOutcome, *, may_cut: bool) -> list[str]:
    """Sentences about how a crashed run differs from an undisturbed one; none when it does not.

    With `may_cut` calls that were cut for good are no difference, nor is what the model said about them; then no
    effect may be there more often than undisturbed.
    """
    lines = list(found.faults)
    is_cut = may_cut and found.cut_calls > right.cut_calls
    if found.endings != right.endings and not is_cut:
        lines.append(f"The turns ended as {found.endings}, undisturbed as {right.endings}.")
    for effect in sorted(set(right.effects) | set(found.effects)):
        is_less = found.effects[effect] < right.effects[effect]
        if found.effects[effect] != right.effects[effect] and not (is_less and is_cut):
            lines.append(
                f"Effect {effect} is there {found.effects[effect]} times, undisturbed {right.effects[effect]}."
            )
    if not is_cut:
        lines += _message_lines(right.messages, found.messages)
    return lines


def _message_lines(right: list[JSONValue], found: list[JSONValue]) -> list[str]:
    if right == found:
        return []
    if len(right) != len(found):
        lines = [f"There are {len(found)} messages, undisturbed {len(right)}:"]
        return [*lines, *(f"    {dump(message)}" for message in found)]
    at = next(number for number, pair in enumerate(zip(right, found, strict=True)) if pair[0] != pair[1])
    return [f"Message {at + 1} is {dump(found[at])}", f"    undisturbed {dump(right[at])}"]


def _lasting(message: Any) -> list[Any]:
    return [part for part in message["parts"] if part["type"] != SEAM]


def _part(part: Any) -> dict[str, Any]:
    """A part without its id and its measured times."""
    return {key: value for key, value in part.items() if key not in {"id", "toolMetadata"}}


def _numbered(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return ID.sub(lambda found: names.setdefault(found[0], f"<{found[1]} {len(names) + 1}>"), value)
    if isinstance(value, list):
        return [_numbered(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _numbered(item, names) for key, item in value.items()}
    return value
