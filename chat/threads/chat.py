"""`ThreadChat`: a session and a loop together, without an agent, a worker or a socket.

    chat = ThreadChat(SessionManager(scope="docs").create("A question"), AgentLoop(model="default"))
    await chat.persist_messages([{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hello"}]}])
    await chat.run()

Durability: messages are; a run is not. Where its process ends, ask again: nothing of the answer is stored before its
end. Agents (`Think`) have turns instead, which go on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from django.db import transaction

from chat.core.wire.ndjson import line_of
from chat.errors import ModelError
from chat.threads.loop import AgentLoop, LoopResult, result_of, until_set
from chat.threads.messages import flat
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.shapes import Message, NewMessage, Part
from sessions_app.errors import MessageInvalid
from sessions_app.messages import selectors, services
from sessions_app.public.handle import SessionHandle
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase

PAGE = 500


class ThreadChat:
    """One conversation: its stored messages, and answers of a loop to them."""

    def __init__(self, session: SessionHandle, loop: AgentLoop, *, max_messages: int | None = None) -> None:
        """`max_messages`: the oldest beyond so many are archived: kept, and not read any more."""
        self.session = session
        self.loop = loop
        self._max_messages = max_messages

    async def messages(self) -> list[JSONObject]:
        """The shown path, oldest first, flat: `{id, role, content, reasoning?, createdAt}`."""
        return [flat(message) for message in await db(_path_of, self.session)]

    async def persist_messages(self, messages: Sequence[NewMessage]) -> list[str]:
        """Make the shown path equal to these messages, in one transaction; returns their ids.

        What is unchanged is not written; what has changed gets the new content. Messages that are missing at the end
        stay stored, on a branch of their own; one that is missing before others is deleted. New ones go to the end. One
        that is too large for a row is shortened. Errors: `MessageInvalid` for an order that the path does not have, an
        id twice, and messages of another branch; then nothing has changed.
        """
        named: list[Message] = [
            {**message, "id": message.get("id") or new_id("msg"), "role": message.get("role", "user")}
            for message in messages
        ]
        await db(_persist, self.session, named)
        await self._archive()
        return [message["id"] for message in named]

    async def run_step(self) -> LoopResult:
        """Ask the model once, run no call, and store what it said."""
        return await self._stored(await self.loop.step(await self._history()))

    async def run(self, *, signal: asyncio.Event | None = None) -> LoopResult:
        """Have the conversation answered, and store the answer."""
        return await self._stored(await self.loop.run(await self._history(), signal=signal))

    async def stream_into(
        self, write: Callable[[str], Awaitable[None]], *, signal: asyncio.Event | None = None
    ) -> LoopResult:
        """Have the conversation answered, hand each line of NDJSON to `write`, and store the answer.

        What `write` raises ends the run; then nothing is stored.
        """
        run = self.loop.begin(await self._history())
        error = ""
        try:
            async with aclosing(until_set(signal, run.chunks())) as chunks:
                async for chunk in chunks:
                    if line := line_of(chunk):
                        await write(line)
        except ModelError as failure:
            error = failure.message
        return await self._stored(result_of(run, error=error))

    async def _history(self) -> list[NewMessage]:
        return [message.to_ui() for message in await db(self.session.history)]

    async def _stored(self, result: LoopResult) -> LoopResult:
        """Store the text and the reasoning of an answer, and nothing else of it; nothing where both are empty."""
        parts: list[Part] = []
        if result.reasoning:
            parts.append({"type": "reasoning", "text": result.reasoning})
        if result.text:
            parts.append({"type": "text", "text": result.text})
        if parts:
            answer: Message = {"id": result.message["id"], "role": "assistant", "parts": parts}
            await db(self.session.append, answer)
            await self._archive()
        return result

    async def _archive(self) -> None:
        if self._max_messages is not None:
            await db(services.archive_beyond, self.session.id, self._max_messages)


def _path_of(session: SessionHandle) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    before: str | None = None
    while True:
        page = session.page(before=before, limit=PAGE)
        found = [*page.messages, *found]
        if not page.has_more or not page.messages:
            return found
        before = page.messages[0].id


@transaction.atomic
def _persist(session: SessionHandle, messages: list[Message]) -> None:
    ids = [message["id"] for message in messages]
    path = _path_of(session)
    wanted = set(ids)
    if len(wanted) < len(ids):
        raise MessageInvalid("An id stands twice in the list.")
    kept = [message for message in path if message.id in wanted]
    if [message.id for message in kept] != ids[: len(kept)]:
        raise MessageInvalid("The messages that are stored have another order, or new ones stand between them.")
    last = kept[-1].id if kept else ""
    upper = path[: [message.id for message in path].index(last) + 1] if kept else []
    session.delete_messages([message.id for message in upper if message.id not in wanted])
    for stored, message in zip(kept, messages, strict=False):
        if list(stored.parts) != message["parts"]:
            session.upsert(message)
    if len(path) > len(upper):
        services.end_path_at(session.id, last)
    for message in messages[len(kept) :]:
        last = _append(session, message, last)


def _append(session: SessionHandle, message: Message, last: str) -> str:
    """Put one message to the end of the path; one that stands there already is shown again."""
    known = selectors.get_message(session.id, message["id"])
    if known is None:
        return session.append(message, parent=last or None)
    if (known.parent_id or "") != last:
        raise MessageInvalid(Phrase("Message {id!r} stands on another branch.", id=known.id))
    services.end_path_at(session.id, known.id)
    session.upsert(message)
    return known.id
