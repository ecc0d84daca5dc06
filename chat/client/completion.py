"""Finish a turn: fetch the missing rest after a disconnect, then answer its tool calls."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress

from chat.client.answering import Answering
from chat.client.conversation_state import ConversationState
from chat.client.errors import ClientError
from chat.client.http_api import HttpApi
from chat.client.options import Options
from chat.client.turn import Turn

ATTEMPTS = 5


class Completion:
    """Works in the background, until `close`."""

    def __init__(self, http_api: HttpApi, options: Options) -> None:
        self._http_api = http_api
        self._options = options
        self._tasks: set[asyncio.Task[None]] = set()
        self.conversation: ConversationState | None = None
        self.answering: Answering | None = None

    def ended(self, turn: Turn) -> None:
        """A turn has ended and everything of it is here."""
        if self.answering is not None and turn.is_own and self.answering.concerns(turn):
            turn.finish("completed", is_final=False)
            self._start(self.answering.run(turn))

    def fetch_rest(self, turn: Turn, outcome: str) -> None:
        """A turn has ended and this client may lack a piece of it."""
        self._start(self._finish(turn, outcome))

    async def close(self) -> None:
        """Cancel the running tasks."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _finish(self, turn: Turn, outcome: str) -> None:
        """Fetch the missing chunks of a turn, then end it. If there are none, the answer is the stored message.

        The transcript that has the answer may still be on its way over the new connection.
        """
        assert self.conversation is not None
        found = await self._rest(turn)
        if found is None or not self.conversation.lists(turn.message_id):
            with suppress(ClientError):
                self.conversation.messages = await self._http_api.messages()
        self.conversation.finish(turn, found or outcome)

    async def _rest(self, turn: Turn) -> str | None:
        """Fetch the chunks; returns how the turn ended (empty: not known), or nothing when they cannot be had."""
        assert self.conversation is not None
        for attempt in range(ATTEMPTS):
            try:
                bodies, outcome = await self._http_api.rest(turn.request_id, turn.next_seq)
            except ClientError as error:
                if not error.retryable:
                    return None
                await asyncio.sleep(self._options.delay(attempt))
            else:
                self.conversation.take_rest(turn, bodies)
                return outcome
        return None

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
