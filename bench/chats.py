"""Turns as the driver sees them: the frames it sends, what it received, and what the provider's log says was sent."""

import secrets
from collections.abc import Iterable
from pathlib import Path

import msgspec

from bench.sockets import Socket

TEXT_DELTA = b'\\"type\\":\\"text-delta\\"'
DONE = b'"done":true'


def ask(socket: Socket, text: str) -> tuple[str, float]:
    """Send a chat request as the published client does; returns its id and when it left."""
    request_id = secrets.token_hex(4)
    message = {"id": secrets.token_hex(8), "role": "user", "parts": [{"type": "text", "text": text}]}
    body = msgspec.json.encode({"messages": [message], "trigger": "submit-message"}).decode()
    sent_at = socket.send(
        {"type": "cf_agent_use_chat_request", "id": request_id, "init": {"method": "POST", "body": body}}
    )
    return request_id, sent_at


async def greeted(socket: Socket) -> None:
    """Wait until the server has said all it says to a new connection."""
    await socket.until(b"cf_agent_mcp_servers")


def text_chunks(socket: Socket, request_id: str) -> Iterable[tuple[float, str]]:
    """Text of a request as it came: when, and what."""
    marker = f'"id":"{request_id}"'.encode()
    for at, raw in zip(socket.times, socket.frames, strict=True):
        if marker in raw and TEXT_DELTA in raw:
            yield at, msgspec.json.decode(msgspec.json.decode(raw)["body"])["delta"]


class ProviderLog:
    """What the provider sent, by the marker of the conversation."""

    def __init__(self, path: Path) -> None:
        self.asked: dict[str, float] = {}
        self.sent: dict[str, list[tuple[float, str]]] = {}
        with path.open("rb") as lines:
            for line in lines:
                entry = msgspec.json.decode(line)
                if entry["kind"] == "request":
                    self.asked.setdefault(entry["marker"], entry["at"])
                elif entry["kind"] == "chunk" and entry["unit"] == "text":
                    self.sent.setdefault(entry["marker"], []).append((entry["at"], entry["text"]))

    def text(self, marker: str) -> str:
        """The whole answer."""
        return "".join(text for _, text in self.sent.get(marker, ()))


def delays(sent: Iterable[tuple[float, str]], received: Iterable[tuple[float, str]]) -> list[float]:
    """Seconds from each chunk's departure to the arrival of its last character. Errors: `ValueError`: texts differ."""
    found: list[float] = []
    arrivals = iter(received)
    here, have, need, came = 0.0, "", "", 0
    for at, text in sent:
        need += text
        while came < len(need):
            try:
                here, piece = next(arrivals)
            except StopIteration:
                raise ValueError(f"{came} of at least {len(need)} characters came") from None
            have += piece
            came += len(piece)
        found.append(here - at)
    have += "".join(piece for _, piece in arrivals)
    if have != need:
        raise ValueError("what came is not what was sent")
    return found
