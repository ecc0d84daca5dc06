"""Ask for turns, and answer the calls of a turn: run tools, send results and decisions, find the turn that follows.

The turn that goes on has an id of the server's, so it is found by asking which stream there is to join. A stream that
existed before the answer was given belongs to another request and is waited for.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Sequence
from typing import Literal, cast

from chat.client.client_tools import ClientTools
from chat.client.errors import ClientError, RequestRefused
from chat.client.requests import RequestChannel
from chat.client.turn import Turn
from chat.core.wire.frames import ChatRequest, ToolApproval, ToolResult
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject

logger = logging.getLogger(__name__)


class Answering:
    """Answers to tool calls, given by one client."""

    def __init__(self, channel: RequestChannel, tools: ClientTools) -> None:
        self._channel = channel
        self._registry = channel.conversation.registry
        self._tools = tools

    async def ask(
        self,
        messages: list[Message],
        body: JSONObject,
        *,
        trigger: Literal["submit-message", "regenerate-message"] = "submit-message",
    ) -> Turn:
        """Ask for a turn; it is accepted when this returns. Errors: `RequestRefused`, `Refused`."""
        request = ChatRequest(
            id=secrets.token_hex(8),
            messages=cast("list[JSONObject]", messages),
            trigger=trigger,
            body=body,
            client_tools=self._tools.declared,
        )
        turn = self._registry.begin(request.id)

        def on_try(connection: int, is_first: bool) -> None:  # a first request receives everything over that connection
            turn.connection = connection if is_first else None

        try:
            await self._channel.deliver(request, repeats=True, on_try=on_try)
            if turn.refusal is not None:
                raise RequestRefused(turn.refusal)
        except BaseException:
            self._registry.drop(turn)
            raise
        turn.is_accepted = True
        return turn

    def concerns(self, turn: Turn) -> bool:
        """Whether the answer calls a tool that runs here."""
        return any(call.tool_name in self._tools for call in turn.open_calls)

    async def run(self, turn: Turn) -> None:
        """Run the calls of an answer concurrently, then find the turn that continues it."""
        calls = [call for call in turn.open_calls if call.tool_name in self._tools]
        try:
            results = await asyncio.gather(*(self._tools.run(call) for call in calls))
            turn.continue_with(await self.deliver(results))
        except ClientError as error:
            logger.warning("results not delivered", extra={"action": "client_results_lost", "reason": error.message})
            turn.lose(error)

    async def deliver(self, frames: Sequence[ToolResult | ToolApproval]) -> Turn | None:
        """Send answers to calls; returns the turn that goes on from them, if one does."""

        async def send() -> None:
            for frame in frames:
                await self._channel.deliver(frame, repeats=True)

        return await self.after(send())

    async def after(self, answering: Awaitable[None]) -> Turn | None:
        """Wait until answers are given, in whatever way; returns the turn that goes on from them, if one does."""
        known = set(self._registry.running)
        self._registry.holds += 1
        try:
            await answering
            return await self._following(known)
        finally:
            self._registry.holds -= 1
            self._registry.announce()

    async def _following(self, known: set[str]) -> Turn | None:
        while True:
            request_id = await self._channel.probe()
            if request_id is None:
                begun = self._registry.observed_since(known)
                return None if begun is None else self._registry.claim(begun.request_id)
            other = self._registry.running.get(request_id) if request_id in known else None
            if other is None:
                return self._registry.claim(request_id)
            with self._channel.backpressure.awaiting():
                await other.ended()
