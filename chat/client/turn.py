"""`Turn`: one request and its answer, during and after the turn. Duplicated chunks are dropped by their `seq`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Final

from chat.client.bounded_queue import Backpressure, BoundedQueue
from chat.client.errors import TurnFailed
from chat.core.wire.accumulator import Accumulator, tool_name
from chat.core.wire.chunks import Chunk, merge
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONObject

FAILED: Final = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call without a result: a client has to run it, or a person has to decide."""

    call_id: str
    tool_name: str
    input: JSONObject


class Turn:
    """The return type of `ChatClient.send` and similar methods.

    Shape: `async for chunk in turn` gives the chunks as dicts, adjacent deltas that wait as one; `turn.texts()` gives
    the text alone; `await turn.message()` the whole answer. All work at the same time; chunks can be read once.
    """

    def __init__(self, request_id: str, backpressure: Backpressure, *, is_own: bool) -> None:
        self.request_id = request_id
        self.is_own = is_own
        self.is_accepted = False
        self.refusal: str | None = None
        self.outcome: str | None = None
        self.error_text = ""
        self.next_seq = 0
        self.connection: int | None = None  # the connection that has delivered all chunks so far
        self.is_behind = False  # a chunk is missing, and a replay was asked for
        self.continuation: asyncio.Future[Turn | None] = asyncio.get_running_loop().create_future()
        self._backpressure = backpressure
        self._fold = Accumulator()
        self._queue: BoundedQueue[Chunk] = BoundedQueue(backpressure, merge=merge)
        self._queue.is_optional = not is_own
        self._stored: Message | None = None
        self._lost: Exception | None = None
        self._over = asyncio.Event()

    # What callers use

    @property
    def is_over(self) -> bool:
        """Whether the answer is complete."""
        return self._over.is_set()

    @property
    def message_id(self) -> str:
        """Id of the answer, `""` before it has begun."""
        return self._fold.message_id

    @property
    def answer(self) -> Message:
        """The answer so far: as stored when that is known, else the fold of the chunks."""
        return self._stored if self._stored is not None else self._fold.message

    @property
    def text(self) -> str:
        """The text of the answer so far, all its text parts in order."""
        return "".join(part["text"] for part in self.answer["parts"] if part.get("type") == "text")

    @property
    def open_calls(self) -> list[Call]:
        """Calls of the answer that wait for a client to run them."""
        return _calls(self.answer, ToolState.INPUT_AVAILABLE)

    @property
    def approvals(self) -> list[Call]:
        """Calls of the answer that wait for a person's decision: `chat.approve(call_id)` or `chat.deny(call_id)`."""
        return _calls(self.answer, ToolState.APPROVAL_REQUESTED)

    def __aiter__(self) -> AsyncIterator[Chunk]:
        if self._queue.was_let_go:
            raise RuntimeError("The chunks of this turn were read already, or let go; its message() is there.")
        return self._queue.read()

    async def texts(self) -> AsyncGenerator[str, None]:
        """Give the pieces of text as they come. Errors: `TurnFailed`."""
        async for chunk in self:
            if chunk["type"] == "text-delta":
                yield chunk["delta"]

    async def message(self) -> Message:
        """Wait for the end and return the answer, JSON-ready; for a stopped turn, the partial answer.

        Errors: `TurnFailed` with the words for people; what there was is in `answer`. `Refused` and `ClientClosed` when
        the end cannot be received any more.
        """
        self.need_not_be_read()
        with self._backpressure.awaiting():
            await self._over.wait()
        if self._lost is not None:
            raise self._lost
        if self.outcome == FAILED:
            raise TurnFailed(self.error_text, request_id=self.request_id)
        return self.answer

    async def final(self) -> Message:
        """Wait for the answer and its continuations after this client's tools; return the last one.

        It does not wait for people: while `approvals` are open the answer that asks for them is the last. Errors: as
        `message`.
        """
        turn = self
        while True:
            answer = await turn.message()
            with self._backpressure.awaiting():
                following = await asyncio.shield(turn.continuation)
            if following is None:
                return answer
            turn = following

    # For `ConversationState`

    async def ended(self) -> None:
        """Wait for the end, whatever it is."""
        await self._over.wait()

    def take(self, chunk: Chunk, size: int) -> None:
        """Take the next chunk."""
        self._fold.apply(chunk)
        self._queue.put(chunk, size)

    def keep_for_reader(self) -> None:
        """The chunks will be read: apply backpressure instead of dropping them."""
        self._queue.is_optional = False

    def need_not_be_read(self) -> None:
        """The chunks may never be read: drop them instead of applying backpressure."""
        self._queue.is_optional = True

    def take_stored(self, message: Message) -> None:
        """This is how the answer is stored."""
        self._stored = message

    def finish(self, outcome: str, *, is_final: bool) -> None:
        """The turn has ended. `is_final`: no tool of this client has to run."""
        if self.is_over:
            return
        self.outcome = outcome
        failed = outcome == FAILED
        self._queue.end(TurnFailed(self.error_text, request_id=self.request_id) if failed else None)
        if is_final or failed:
            self.continue_with(None)
        self._over.set()

    def lose(self, error: Exception) -> None:
        """Fail the turn: its end cannot be received any more."""
        if not self.is_over:
            self._lost = error
            self._queue.end(error)
            self._over.set()
        if not self.continuation.done():
            self.continuation.set_exception(error)
            self.continuation.exception()  # it may never be awaited

    def continue_with(self, turn: "Turn | None") -> None:
        """Set the turn that continues this one, or `None`."""
        if not self.continuation.done():
            self.continuation.set_result(turn)


def _calls(answer: Message, state: ToolState) -> list[Call]:
    return [
        Call(call_id=part["toolCallId"], tool_name=tool_name(part), input=part.get("input") or {})
        for part in answer["parts"]
        if part.get("state") == state and isinstance(part.get("toolCallId"), str)
    ]
