"""Requests over the socket: resent after a reconnect until the server confirms them.

The protocol acknowledges little. But a server handles the frames of a connection one after another, so the answer to a
call that is sent last says that everything before it was handled. Each delivery ends with such a call, of no method.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from chat.client.bounded_queue import Backpressure
from chat.client.connection import TOO_LARGE, Connection
from chat.client.conversation_state import ConversationState
from chat.client.errors import CallFailed, ClientError, Disconnected, RequestRefused
from chat.client.options import Options
from chat.client.rpc import PendingCalls
from chat.core.wire.frames import ChooseModel, ClientFrame, ResumeRequest, encode
from chat.core.wire.server_frames import Identity, RpcAnswer, State, parse_server
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

NO_METHOD = ""
SURELY_SMALL = 65_536
"""No server refuses a frame of so many characters for its size."""


class RequestChannel:
    """The connection, the conversation and the calls of one client."""

    def __init__(
        self,
        url: str,
        *,
        headers: dict[str, str],
        options: Options,
        backpressure: Backpressure,
        conversation: ConversationState,
    ) -> None:
        self.backpressure = backpressure
        self.conversation = conversation
        self.calls = PendingCalls(backpressure)
        self._options = options
        self._state_follows = False
        self._opened = 0
        self.connection = Connection(
            url,
            headers=headers,
            options=options,
            backpressure=backpressure,
            on_text=self._on_text,
            on_lost=self._on_lost,
        )

    async def deliver(
        self,
        frame: ClientFrame,
        *,
        repeats: bool,
        on_try: Callable[[int, bool], None] | None = None,
        on_handled: Callable[[], None] | None = None,
    ) -> None:
        """Send a frame and return when the server has handled it; after a lost connection again if `repeats`.

        `on_handled` runs before anything that the server says later is read.
        Errors: `Disconnected` when it may not be repeated, `RequestRefused` when it is too large, `Refused`.
        """
        text = encode(frame)
        if len(text.encode()) > self._options.message_max_bytes:
            raise RequestRefused(f"More than {self._options.message_max_bytes} bytes.")
        is_first = True
        with self.backpressure.awaiting():
            while True:
                number = await self.connection.ready()
                if on_try is not None:
                    on_try(number, is_first)
                is_first = False
                try:
                    await self.connection.send(text, number)
                    await self._barrier(number, on_handled)
                except Disconnected as error:
                    if error.data.get("close_code") == TOO_LARGE and len(text) > SURELY_SMALL:
                        raise RequestRefused("The server says that this is too large.") from error
                    if not repeats:
                        raise
                else:
                    return

    async def _barrier(self, number: int, on_handled: Callable[[], None] | None) -> None:
        frame, queue = self.calls.begin(NO_METHOD, (), on_answer=on_handled)
        try:
            await self.connection.send(encode(frame), number)
            async with aclosing(queue.read()) as answers:
                async for _ in answers:
                    pass
        except CallFailed:
            pass  # there is no such method: the answer that was wanted
        finally:
            self.calls.forget(frame)

    async def call(self, method: str, args: tuple[Any, ...]) -> AsyncGenerator[JSONValue, None]:
        """Call a method and give its answers. Errors: `CallFailed`, `Disconnected`, `Refused`."""
        number = await self.connection.ready()
        frame, queue = self.calls.begin(method, args)
        try:
            await self.connection.send(encode(frame), number)
            async with aclosing(queue.read()) as answers:
                async for answer in answers:
                    yield answer
        finally:
            self.calls.forget(frame)

    async def probe(self) -> str | None:
        """Ask which stream there is to join: the id of its request, or nothing."""
        with self.backpressure.awaiting():
            while True:
                number = await self.connection.ready()
                probe_id = secrets.token_hex(8)
                answer = self.conversation.probe(probe_id)
                try:
                    await self.connection.send(encode(ResumeRequest(probe_id=probe_id)), number)
                    return await answer
                except Disconnected:
                    answer.cancel()

    async def _on_text(self, text: str) -> None:
        frame = parse_server(text)
        if frame is None:
            return
        number = self.connection.number
        if number != self._opened:
            self._opened = number
            self._state_follows = False
            self.conversation.connected(number)
        if isinstance(frame, RpcAnswer):
            self.calls.take(frame)
            return
        replies = self.conversation.take(frame)
        if isinstance(frame, Identity):
            self._state_follows = frame.state_follows
        is_introduced = isinstance(frame, State) if self._state_follows else isinstance(frame, Identity)
        if is_introduced and not self.connection.is_ready:
            replies = [*replies, *self.conversation.unfinished()]
            self.connection.introduced()
        for reply in replies:
            await self.connection.send(encode(reply), number)
        self.conversation.registry.announce()

    def _on_lost(self, close_code: int | None) -> None:
        self.calls.lost(Disconnected(close_code=close_code))
        self.conversation.disconnected(Disconnected(close_code=close_code))
        if self.connection.failure is not None:
            self.end(self.connection.failure)

    def end(self, error: ClientError) -> None:
        """There will be no other connection: all waiting callers get this error."""
        self.calls.lost(error)
        self.conversation.lost(error)

    async def close(self) -> None:
        """Close for good."""
        await self.connection.close()
        assert self.connection.failure is not None
        self.end(self.connection.failure)
        await asyncio.sleep(0)  # callers see the error before their resources are gone


class ModelRequests:
    """The part of a client that chooses the model of its conversation."""

    _channel: RequestChannel
    _conversation: ConversationState

    @property
    def model_choice(self) -> JSONObject | None:
        """The conversation's choice as last received; `None`: the agent's own model."""
        return self._conversation.model_choice

    @property
    def model(self) -> str | None:
        """The name of the model that answers the next turn as last received; `None` where it is not known."""
        return self._conversation.model

    @property
    def model_notice(self) -> str:
        """The part of the choice that does not count, and why, as last received; empty when all of it does."""
        return self._conversation.model_notice

    async def choose_model(
        self,
        model: str | None = None,
        *,
        reasoning_effort: str | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        max_output_tokens: int | None = None,
    ) -> None:
        """Choose the model of the conversation and its parameters, from the next turn on; without any the agent's own.

        Replaces the former choice as a whole; stored when this returns. Errors: `RequestRefused` with the server's
        reason, and then nothing has changed; `Refused`.
        """
        choice = {
            "model": model,
            "reasoning_effort": reasoning_effort,
            "temperature": temperature,
            "top_p": top_p,
            "max_output_tokens": max_output_tokens,
        }
        request_id = secrets.token_hex(8)
        errors = self._conversation.choice_errors
        errors[request_id] = ""
        try:
            await self._channel.deliver(ChooseModel(id=request_id, model_choice=choice), repeats=True)
        finally:
            refusal = errors.pop(request_id)
        if refusal:
            raise RequestRefused(refusal)
