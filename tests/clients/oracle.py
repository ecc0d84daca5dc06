"""What the scripted provider says it sent, read from its log: nothing of the product is believed here."""

import json
from pathlib import Path
from typing import Any


def answer_of(log: Path, marker: str) -> str:
    """The whole text of one answer, its rounds of tool calls and its continuations pieced together."""
    lines = _lines(log)
    rounds: dict[int, str] = {}
    for request in lines:
        if request["kind"] == "request" and request["marker"] == marker:
            assert not request["mismatch"], "the model was given a partial answer that it had never sent"
            sent = [
                line["text"]
                for line in lines
                if line["kind"] == "chunk"
                and line["request"] == request["request"]
                and line["unit"] in {"text", "refusal"}
            ]
            before = rounds.get(request["round"], "")
            longest = before[: request["continues"]] + "".join(sent)
            rounds[request["round"]] = longest if len(longest) > len(before) or request["continues"] else before
    return "".join(text for _, text in sorted(rounds.items()))


def prompts_of(log: Path, marker: str) -> list[list[dict[str, Any]]]:
    """The messages of each request of an answer, oldest first."""
    return [line["body"]["messages"] for line in _lines(log) if line["kind"] == "request" and line["marker"] == marker]


def has_ended(log: Path, marker: str) -> bool:
    """Whether an answer has ended, one way or another."""
    return any(line["kind"] == "end" and line["marker"] == marker for line in _lines(log))


_known: dict[Path, tuple[int, list[dict[str, Any]]]] = {}  # bytes that were read, and what stood there


def _lines(log: Path) -> list[dict[str, Any]]:
    """The whole lines of a log that only grows; each is parsed once."""
    read, lines = _known.get(log, (0, []))
    with log.open("rb") as file:
        file.seek(read)
        grown = file.read()
    grown = grown[: grown.rfind(b"\n") + 1]
    lines += [json.loads(line) for line in grown.splitlines()]
    _known[log] = (read + len(grown), lines)
    return lines
