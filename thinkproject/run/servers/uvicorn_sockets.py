"""Uvicorn's WebSocket with the behaviour that `uvicorn_server.py` promises."""

import asyncio
import socket
import struct
from collections import deque
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

from thinkproject.run.graceful_shutdown import END_SECONDS, REASON, RESTART, fitting_reason
from thinkproject.run.servers.shared import CLOSE_SECONDS, MESSAGE_COST_BYTES, UNREAD_HIGH_BYTES, log_socket

QUIET_SECONDS = 0.25
"""A peer that was refused and sends nothing for so long has been able to read why."""
INTERNAL_ERROR = 1011
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

_OPEN = State.OPEN
_NO_LINGER = struct.pack("ii", 1, 0)
_TEXT, _BINARY = 0x81, 0x82  # one unmasked frame, the last of its message


class ThinkSocket(WebSocketsSansIOProtocol):
    """A socket that keeps its bounds, says why it closes, and does not outlive its peer."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.close_timeout = float(CLOSE_SECONDS)
        self._unread: deque[int] = deque()  # costs of the messages that the application has not taken
        self._unread_bytes = 0
        self._application: asyncio.Task[Any] | None = None
        self._end_timer: asyncio.TimerHandle | None = None
        self._refused_until: float | None = None
        self._was_accepted = False
        self._has_request = False

    # --- What the peer sends --------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse, or drop what a refused peer still sends."""
        if self._refused_until is None:
            super().data_received(data)
            if not self._has_request and self.conn.handshake_exc is not None:
                self._refuse_handshake()
        elif self.loop.time() > self._refused_until:
            self._abort()
        else:
            self._close_after(QUIET_SECONDS)

    def handle_connect(self, event: Any) -> None:
        """A request that can be read asks for a socket."""
        self._has_request = True
        super().handle_connect(event)

    def _refuse_handshake(self) -> None:
        """Answer a request that cannot be read, as one whose query or headers are too long; uvicorn says nothing."""
        self.handshake_complete = self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()) or BAD_REQUEST)
        self._refused_until = self.loop.time() + CLOSE_SECONDS
        self._close_after(QUIET_SECONDS)
        log_socket("rejected", "a request that cannot be read")

    def send_receive_event_to_app(self) -> None:
        """Queue a message for the application; stop reading while it has more than enough to do."""
        cost = sum(map(len, self.frames)) + MESSAGE_COST_BYTES
        waiting, was_paused = self.queue.qsize(), self.read_paused
        self.read_paused = True  # else uvicorn would pause after each message
        super().send_receive_event_to_app()
        self.read_paused = was_paused
        if self.queue.qsize() == waiting or self.close_sent:
            return
        self._unread.append(cost)
        self._unread_bytes += cost
        if not self.read_paused and self._unread_bytes > UNREAD_HIGH_BYTES:
            self.read_paused = True
            self.transport.pause_reading()

    async def receive(self) -> Any:
        """Return the next message; read on once little waits."""
        message = await self.queue.get()
        if message["type"] == "websocket.receive":
            self._unread_bytes -= self._unread.popleft()
            if self.read_paused and self._unread_bytes <= UNREAD_HIGH_BYTES:
                self.read_paused = False
                if not self.transport.is_closing():
                    self.transport.resume_reading()
        return message

    def handle_parser_exception(self) -> None:
        """Refuse what breaks the protocol or its limits, 1009 for what is too long.

        Closing at once would reset the connection while the peer still sends, and it might never see the reason.
        """
        code = 1006 if self.conn.close_sent is None else int(self.conn.close_sent.code)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": ""})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self._refused_until = self.loop.time() + CLOSE_SECONDS
        self._close_after(QUIET_SECONDS)

    def handle_close(self, event: Any) -> None:
        """The peer closes, or answers a close."""
        super().handle_close(event)
        self._close()

    # --- What the application sends -------------------------------------------------------------------------------

    async def send(self, message: Any) -> None:
        """Send one ASGI message; wait while the transport's buffer is full.

        A frame for a socket that is being closed goes nowhere, as one for a socket that is gone.
        """
        kind = message["type"]
        if kind == "websocket.send" and self._was_accepted:
            await self._send_frame(message)
        elif kind == "websocket.close" and self._was_accepted:
            if self.conn.state is _OPEN and not self.disconnected:
                reason = fitting_reason(message.get("reason") or "")
                await super().send({"type": "websocket.close", "code": message.get("code") or 1000, "reason": reason})
                self._close_after(CLOSE_SECONDS)
        elif kind == "websocket.accept":
            await super().send(message)
            self._was_accepted = self.conn.state is _OPEN
            log_socket("connected" if self._was_accepted else "rejected", self.scope["path"])
        else:
            await super().send(message)

    async def _send_frame(self, message: Any) -> None:
        if not self.writable.is_set():
            await self.writable.wait()
        if self.conn.state is not _OPEN or self.disconnected:
            await asyncio.sleep(0)  # who sends without end must be stoppable
            return
        text = message.get("text")
        self.transport.write(frame(_BINARY, message["bytes"]) if text is None else frame(_TEXT, text.encode()))

    def send_500_response(self) -> None:
        """Refuse the handshake of an application that failed; a socket that is open is closed with 1011."""
        if self._was_accepted and self.conn.state is _OPEN and not self.disconnected:
            self.conn.send_close(INTERNAL_ERROR)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self._close_after(CLOSE_SECONDS)
        else:
            super().send_500_response()

    # --- The end --------------------------------------------------------------------------------------------------

    async def run_asgi(self) -> None:
        """Run the application."""
        self._application = asyncio.current_task()
        await super().run_asgi()

    def keepalive_timeout(self) -> None:
        """Leave a peer that gives no sign of life; one that has not read what was sent would never see the close."""
        is_stalled = self.transport.get_write_buffer_size() > 0
        super().keepalive_timeout()
        if is_stalled:
            self._abort()

    def shutdown(self) -> None:
        """Ask the peer to reconnect, and wait for its answer as long as the server waits."""
        self.stop_keepalive()
        if self._was_accepted and self.conn.state is _OPEN:
            self.queue.put_nowait({"type": "websocket.disconnect", "code": RESTART, "reason": REASON})
            self.conn.send_close(RESTART, REASON)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self._close_after(END_SECONDS)
        elif not self.close_sent:
            super().shutdown()

    def _close_after(self, seconds: float) -> None:
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(seconds, self._close)

    def _close(self) -> None:
        """Close the connection when what was written has gone out, or after a while."""
        self.transport.close()
        if self.transport.get_write_buffer_size() > 0:
            self.loop.call_later(CLOSE_SECONDS, self._abort)

    def _abort(self) -> None:
        """Reset the connection: what the kernel still holds for a peer that does not read is given up as well."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None and not self.disconnected:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended; its application soon will, or is ended."""
        super().connection_lost(exc)
        if self._was_accepted:
            log_socket("disconnected", self.scope["path"])
        if self._application is not None and not self._application.done():
            self._end_timer = self.loop.call_later(CLOSE_SECONDS, self._application.cancel)

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The application has ended."""
        super().on_task_complete(task)
        if self._end_timer is not None:
            self._end_timer.cancel()


def frame(kind: int, payload: bytes) -> bytes:
    """Return one whole message as a frame of a server, which masks nothing (RFC 6455, 5.2)."""
    length = len(payload)
    if length < 126:
        return struct.pack("!BB", kind, length) + payload
    if length < 65_536:
        return struct.pack("!BBH", kind, 126, length) + payload
    return struct.pack("!BBQ", kind, 127, length) + payload
