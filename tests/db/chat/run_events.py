"""The events of runs of sub-agents, as a socket is sent them."""

import json
from typing import Any

ENDS = {"finished", "error", "aborted", "interrupted"}


async def events(socket: Any, *, ends: int = 1) -> list[dict[str, Any]]:
    """The events of runs, up to the end of so many."""
    found: list[dict[str, Any]] = []
    while sum(frame["event"]["kind"] in ENDS for frame in found) < ends:
        frame = json.loads(await socket.receive_from(timeout=15))
        if frame["type"] == "agent-tool-event":
            found.append(frame)
    return found


async def events_until(socket: Any, body: str) -> list[dict[str, Any]]:
    """The events of runs, up to a chunk that contains this."""
    found: list[dict[str, Any]] = []
    while not found or body not in found[-1]["event"].get("body", ""):
        frame = json.loads(await socket.receive_from(timeout=15))
        if frame["type"] == "agent-tool-event":
            found.append(frame)
    return found


def text_of(frames: list[dict[str, Any]]) -> str:
    bodies = [json.loads(frame["event"]["body"]) for frame in frames if frame["event"]["kind"] == "chunk"]
    return "".join(body.get("delta", "") for body in bodies)


def sequences(frames: list[dict[str, Any]]) -> list[int]:
    return [frame["sequence"] for frame in frames]


STEP = '{"type":"start-step"}'


def delta(text: str) -> str:
    return json.dumps({"type": "text-delta", "id": "t", "delta": text})
