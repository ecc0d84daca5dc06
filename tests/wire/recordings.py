"""The recorded conversations, and the list of places where this server deliberately differs from them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, dump, load

FIXTURES: Final = Path(__file__).parent / "fixtures"
ROOT: Final = Path(__file__).parents[2]
AMENDMENTS: Final = ROOT / "docs" / "wire-amendments.md"
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
    return {target: name for name, targets in _rows(check).items() for target in targets}


def amended_frames() -> dict[str, set[str]]:
    """Read the page: name of the amendment to the recordings whose frames it changes, or "everywhere"."""
    return _rows("frames")


def _rows(check: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, checks in re.findall(r"^\| `([a-z-]+)` \|.*\| ([^|]*) \|$", _amendments(), re.MULTILINE):
        for kind, targets in re.findall(r"(\w+): (everywhere|(?:`[^`]+`(?:, )?)+)", checks):
            if kind == check:
                found[name] = {targets} if targets == "everywhere" else set(re.findall(r"`([^`]+)`", targets))
    return found


def not_played() -> dict[str, list[tuple[Path, str]]]:
    """Read the end of the page: recordings that are not played, each with the tests that cover it."""
    rows = re.findall(r"^\| `([a-z-]+)` \|.*\| ([^|]*) \|$", _page()[1], re.MULTILINE)
    return {
        name: [(ROOT / path, test) for path, test in re.findall(r"`([^`]+)::(\w+)`", tests)] for name, tests in rows
    }


def _amendments() -> str:
    return _page()[0]


def _page() -> list[str]:
    return AMENDMENTS.read_text().split("## Recordings that are not played")
