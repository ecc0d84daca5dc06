"""The recorded conversations, and the list of places where this server deliberately differs from them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, dump, load

FIXTURES: Final = Path(__file__).parent / "fixtures"
AMENDMENTS: Final = Path(__file__).parents[2] / "docs" / "wire-amendments.md"
NAMES: Final = sorted(path.stem for path in FIXTURES.glob("*.jsonl"))


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a recording: `direction` is open, out (client to server), in (server to client), close or note."""

    index: int
    client: str
    direction: str
    frame: JSONObject


def events(name: str) -> Iterator[Event]:
    """Read one recording, oldest first. Bodies stay decoded under `$body`, as they were recorded."""
    for line in (FIXTURES / f"{name}.jsonl").read_text().splitlines():
        value = load(line)
        yield Event(value["i"], value["client"], value["dir"], value["json"] or {})


def frames_of(name: str, direction: str) -> list[JSONObject]:
    """All frames of one direction."""
    return [event.frame for event in events(name) if event.direction == direction]


def client_text(frame: JSONObject) -> str:
    """The frame as the client sent it: the request's body is JSON inside JSON."""
    init = frame.get("init")
    if init is None:
        return dump(frame)
    return dump({**frame, "init": {"method": init["method"], "body": dump(init["$body"])}})


def with_decoded_body(frame: JSONObject) -> JSONObject:
    """A frame of ours in the recordings' form: a chunk's JSON is decoded under `$body`."""
    body = frame.get("body")
    if not body or "error" in frame:
        return frame
    rest = {key: value for key, value in frame.items() if key != "body"}
    return {**rest, "$body": load(body)}


def amended(check: str) -> dict[str, str]:
    """Read the page: recording (or `recording/request`) to the name of the amendment, for one kind of check."""
    found: dict[str, str] = {}
    for name, checks in re.findall(r"^\| `([a-z-]+)` \|.*\| ([^|]*) \|$", AMENDMENTS.read_text(), re.MULTILINE):
        for kind, targets in re.findall(r"(\w+): ((?:`[^`]+`(?:, )?)+)", checks):
            if kind == check:
                found.update((target, name) for target in re.findall(r"`([^`]+)`", targets))
    return found
