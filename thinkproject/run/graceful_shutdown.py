"""Graceful shutdown of daphne on SIGTERM: responses are completed, and clients reconnect at once.

It stops listening (a listening socket that others share goes on to take connections), closes each WebSocket with 1012,
"service restart", ends event streams where they are, and gives other requests a moment to be answered. Event streams
and WebSockets go on elsewhere from where they were: nothing of a turn lives here.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any

RESTART = 1012
REASON = "The server restarts. Please connect again."
GRACE_SECONDS = 3.0
"""How long requests that are at work may take."""
END_SECONDS = 1.0
LOOK_SECONDS = 0.05

_EVENT_STREAM = b"text/event-stream"


def is_event_stream(message: Mapping[str, Any]) -> bool:
    """Whether an HTTP answer that begins is an event stream, which has no end of its own."""
    headers: Iterable[tuple[bytes, bytes]] = message.get("headers") or ()
    return any(name.lower() == b"content-type" and value.startswith(_EVENT_STREAM) for name, value in headers)


def note_kind(protocol: Any, message: dict[str, Any]) -> None:
    """Remember of an HTTP answer that begins whether it is an event stream."""
    if is_event_stream(message):
        protocol.is_event_stream = True


def fitting_reason(reason: str) -> str:
    """The beginning of a close reason that a frame can hold: 123 bytes."""
    return reason.encode()[:123].decode(errors="ignore")


async def leave(server: Any) -> None:
    """End everything within `GRACE_SECONDS + END_SECONDS`. `server`: a daphne server whose reactor is to stop."""
    for listener in server.listeners:
        listener.addCallback(_stop_listening)
    deadline = time.monotonic() + GRACE_SECONDS
    while (running := _running(server)) and time.monotonic() < deadline:
        for protocol, task in running.items():
            _take_leave(protocol, task)
        await asyncio.wait(running.values(), timeout=LOOK_SECONDS)
    rest = _running(server)
    for task in rest.values():
        task.cancel()
    if rest:
        await asyncio.wait(rest.values(), timeout=END_SECONDS)
    for protocol in list(server.connections):
        _end_answer(protocol)
    await asyncio.sleep(LOOK_SECONDS)  # what was written last goes out with the next turns of the loop


def _running(server: Any) -> dict[Any, "asyncio.Future[Any]"]:
    """Running applications by connection; a connection without one is not included."""
    found = {protocol: details.get("application_instance") for protocol, details in server.connections.items()}
    return {protocol: task for protocol, task in found.items() if task is not None and not task.done()}


def _is_socket(protocol: Any) -> bool:
    return hasattr(protocol, "sendCloseFrame")


def _take_leave(protocol: Any, task: "asyncio.Future[Any]") -> None:
    if _is_socket(protocol):
        if protocol.state == protocol.STATE_OPEN:
            close_socket(protocol, RESTART, REASON)
    elif getattr(protocol, "is_event_stream", False):
        task.cancel()
        _end_answer(protocol)


def close_socket(protocol: Any, code: int, reason: str) -> None:
    """Close a WebSocket with any code of the standard; autobahn's own method refuses those from 1001 to 2999."""
    protocol.sendCloseFrame(code=code, reasonUtf8=fitting_reason(reason).encode() or None)


def _end_answer(protocol: Any) -> None:
    """Write the end of an HTTP answer that has begun, so that its reader sees an end and no broken line."""
    if (
        not _is_socket(protocol)
        and protocol._response_started
        and not protocol.finished
        and protocol.channel is not None
    ):
        protocol.finish()


def _stop_listening(port: Any) -> None:
    port.stopListening()
