"""Calls of the agent's methods that wait for their answers."""

import secrets
from collections.abc import Callable
from typing import Any

from chat.client.bounded_queue import Backpressure, BoundedQueue
from chat.client.errors import CallFailed
from chat.core.wire.frames import Rpc
from chat.core.wire.server_frames import RpcAnswer
from thinkproject.kernel.jsonvalue import JSONValue


class PendingCalls:
    """Each call has a queue: an ordinary one gets one item and its end, a streaming one many."""

    def __init__(self, backpressure: Backpressure) -> None:
        self._backpressure = backpressure
        self._waiting: dict[str, BoundedQueue[JSONValue]] = {}
        self._on_answer: dict[str, Callable[[], None]] = {}

    def begin(
        self, method: str, args: tuple[Any, ...], *, on_answer: Callable[[], None] | None = None
    ) -> tuple[Rpc, BoundedQueue[JSONValue]]:
        """Make the frame of a call and the queue of its answers; `on_answer` runs before the next frame is read."""
        frame = Rpc(id=secrets.token_hex(8), method=method, args=list(args))
        queue = self._waiting[frame.id] = BoundedQueue(self._backpressure)
        if on_answer is not None:
            self._on_answer[frame.id] = on_answer
        return frame, queue

    def forget(self, frame: Rpc) -> None:
        """Forget a call whose caller has gone."""
        self._on_answer.pop(frame.id, None)
        queue = self._waiting.pop(frame.id, None)
        if queue is not None:
            queue.let_go()

    def take(self, answer: RpcAnswer) -> None:
        """Take the response to a call; a response without a call is ignored."""
        queue = self._waiting.get(answer.id)
        if queue is None:
            return
        if answer.id in self._on_answer:
            self._on_answer.pop(answer.id)()
        if not answer.success:
            queue.end(CallFailed(answer.error or "Unknown error occurred"))
            return
        if not answer.done or "result" in answer.model_fields_set:
            queue.put(answer.result)
        if answer.done:
            queue.end()

    def lost(self, error: Exception) -> None:
        """Fail all open calls: the connection has ended."""
        for queue in self._waiting.values():
            queue.end(error)
