"""Turns as the driver sees them: the frames it sends, what it received, and what the provider's log says was sent."""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from bench.sockets import Socket

TEXT_DELTA = b'\\"type\\":\\"text-delta\\"'
DONE = b'"done":true'
TURN_SECONDS = 180.0
"""The longest that a turn may take to its first word, and from there to its end."""
SENTENCES = "A sentence of an ordinary length, as people and models write them all day long. " * 4
"""The text of a message of a stored conversation."""

Asked = tuple[Socket, str, str]  # where, its marker, request id


def ask(socket: Socket, text: str, *, before: Sequence[object] = ()) -> tuple[str, float]:
    """Send a chat request as the published client does; returns its id and when it left. `before`: earlier messages."""
    request_id = secrets.token_hex(4)
    message = {"id": secrets.token_hex(8), "role": "user", "parts": [{"type": "text", "text": text}]}
    body = msgspec.json.encode({"messages": [*before, message], "trigger": "submit-message"}).decode()
    sent_at = socket.send(
        {"type": "cf_agent_use_chat_request", "id": request_id, "init": {"method": "POST", "body": body}}
    )
    return request_id, sent_at


async def greeted(socket: Socket) -> None:
    """Wait until the server has said all it says to a new connection."""
    await socket.until(b"cf_agent_mcp_servers")


async def connect_all(urls: Sequence[str], *, at_once: int = 10) -> list[Socket]:
    """Open sockets, a few at a time."""
    sockets: list[Socket] = []
    for begin in range(0, len(urls), at_once):
        sockets += await asyncio.gather(*(Socket.connect(url) for url in urls[begin : begin + at_once]))
    return sockets


async def greeted_all(urls: Sequence[str]) -> list[Socket]:
    """Open sockets and wait until each was greeted."""
    sockets = await connect_all(urls)
    for socket in sockets:
        await greeted(socket)
    return sockets


@dataclass
class Received:
    """When each marked turn was asked for, and when its first word came."""

    turns: dict[str, tuple[float, float]] = field(default_factory=dict)


async def one_turn(socket: Socket, marker: str, received: Received, *, words: int, rate: int) -> str:
    """Ask once and wait for the end; returns the request id."""
    start = len(socket.frames)
    request_id, sent_at = ask(socket, f"marker: {marker}\nstream {words} words at {rate}/s")
    mine = f'"id":"{request_id}"'.encode()
    first = await socket.until(mine, TEXT_DELTA, start=start, seconds=TURN_SECONDS)
    received.turns[marker] = (sent_at, socket.times[first])
    await socket.until(mine, DONE, start=first, seconds=TURN_SECONDS)
    return request_id


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


def added(received: Received, log: ProviderLog, prefix: str) -> tuple[list[float], list[float], list[float]]:
    """Seconds to reach the provider, seconds back from it, and both, of each turn whose marker begins so."""
    there, back, both = [], [], []
    for marker, (sent_at, came_at) in received.turns.items():
        if marker.startswith(prefix):
            there.append(log.asked[marker] - sent_at)
            back.append(came_at - log.sent[marker][0][0])
            both.append(there[-1] + back[-1])
    return there, back, both


async def read_log(path: Path) -> ProviderLog:
    """Read what the provider sent, once it has written it down."""
    await asyncio.sleep(0.1)
    return ProviderLog(path)


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


def lateness(asked: Iterable[Asked], log: ProviderLog, words: int) -> tuple[list[float], int, int]:
    """Seconds that each chunk of these turns took, how many were sent, and how many turns were cut or differ."""
    late: list[float] = []
    broken = chunks = 0
    for socket, marker, request_id in asked:
        sent = log.sent.get(marker, [])
        chunks += len(sent)
        try:
            late += delays(sent, text_chunks(socket, request_id))
        except ValueError:
            broken += 1
        else:
            broken += len(sent) != words  # a turn that was cut
    return late, chunks, broken
