"""Calls of the agent's methods that wait for their answers."""

import secrets
from collections.abc import Callable
from typing import Any

from chat.client.errors import CallFailed
from chat.client.inbox import Gate, Inbox
from chat.core.wire.frames import Rpc
from chat.core.wire.server_frames import RpcAnswer
from thinkproject.kernel.jsonvalue import JSONValue


class Calls:
    """Each call has an inbox: an ordinary one gets one item and its end, a streaming one many."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._waiting: dict[str, Inbox[JSONValue]] = {}
        self._on_answer: dict[str, Callable[[], None]] = {}

    def begin(
        self, method: str, args: tuple[Any, ...], *, on_answer: Callable[[], None] | None = None
    ) -> tuple[Rpc, Inbox[JSONValue]]:
        """Make the frame of a call and the inbox of its answers; `on_answer` runs before the next frame is read."""
        frame = Rpc(id=secrets.token_hex(8), method=method, args=list(args))
        inbox = self._waiting[frame.id] = Inbox(self._gate)
        if on_answer is not None:
            self._on_answer[frame.id] = on_answer
        return frame, inbox

    def forget(self, frame: Rpc) -> None:
        """Forget a call whose caller has gone."""
        self._on_answer.pop(frame.id, None)
        inbox = self._waiting.pop(frame.id, None)
        if inbox is not None:
            inbox.let_go()

    def take(self, answer: RpcAnswer) -> None:
        """Take the response to a call; a response without a call is ignored."""
        inbox = self._waiting.get(answer.id)
        if inbox is None:
            return
        if answer.id in self._on_answer:
            self._on_answer.pop(answer.id)()
        if not answer.success:
            inbox.end(CallFailed(answer.error or "Unknown error occurred"))
            return
        if not answer.done or "result" in answer.model_fields_set:
            inbox.put(answer.result)
        if answer.done:
            inbox.end()

    def lost(self, error: Exception) -> None:
        """The connection has ended; what was called over it is not answered."""
        for inbox in self._waiting.values():
            inbox.end(error)
