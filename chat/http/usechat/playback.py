"""Turns as the AI SDK's UI message stream: the chunks that a page of `useChat` is sent, whatever carries them.

Over HTTP they are `data:` lines, and `[DONE]` once the turns are stored (`lines`); over the AI SDK's own socket they
are frames (`consumer`). The chunks are those of the log. What differs is what such a page needs:

- framing waits for the first content, since the SDK shows an empty message on `start` that would stay;
  what is transient, such as a retry of the model, does not wait and is no content;
- a continuation goes on in the message that the page has, with the outputs that its calls have got since;
- a page that reconnects is first sent the messages that a continuation extends, each under its own id;
- the end of the turn is a chunk: `error` with the text for people, or `abort`.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from chat.agent.base import InstanceKey
from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.core.wire.rebuild import rebuild, settlement
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.streams.reader import follow
from chat.streams.records import CaughtUp, End, Record, Reset
from chat.turns.state.status import TurnStatus
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump, load

DONE = b"data: [DONE]\n\n"
LOST: Final = "The connection to the answer was lost. Please load the page again."
_FRAMING = frozenset({"start", "start-step", "finish-step", "finish", "message-metadata"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Extended:
    """The page's message that a continuation goes on in.

    Shape: `pending` are its calls that have no result on the page, `stored_in` the messages where they may have one.
    """

    message_id: str
    session_id: str
    stored_in: tuple[str, ...] = ()
    pending: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback:
    """A turn and its form for one page. `before`: the answer it continues, for a page that may lack it.

    `is_stored`: play the answer as its row has it, which changes after the turn, and not as the log does.
    """

    turn: TurnRef
    extends: Extended | None = None
    before: tuple[Message, ...] = ()
    is_stored: bool = False


async def lines(playbacks: Sequence[Playback], *, key: InstanceKey, user_id: Any) -> AsyncGenerator[bytes, None]:
    """Play turns one after another, as server-sent events. Ends without `[DONE]` where one could not be played."""
    for playback in playbacks:
        player = Player(playback, key, user_id)
        async with aclosing(player.play()) as pieces:
            async for texts in pieces:
                yield "".join(f"data: {text}\n\n" for text in texts).encode()
        if not player.has_ended:
            yield CUT
            return
    yield DONE


class Player:
    """One turn of one response, to one person.

    After `play`, `has_ended` says whether the page was sent the end, and `has_failed` whether that was an error.
    """

    def __init__(self, playback: Playback, key: InstanceKey, user_id: Any) -> None:
        self.has_ended = False
        self.has_failed = False
        self._playback = playback
        self._turn = playback.turn
        self._key = key
        self._user_id = user_id
        self._pending = set(playback.extends.pending) if playback.extends else set()
        self._framing: list[Chunk] = []
        self._has_shown = False

    async def play(self) -> AsyncGenerator[list[str], None]:
        """Yield the turn's chunks, each as the text of its JSON, in lists as they come."""
        for message in self._playback.before:
            yield [dump(chunk) for chunk in rebuild(message)]
        self.has_ended = self._playback.is_stored
        async with aclosing(self._followed()) as pieces:
            async for texts in pieces:
                yield texts
        if self.has_ended:
            yield [dump(chunk) for chunk in await self._end()]

    async def _followed(self) -> AsyncGenerator[list[str], None]:
        if self.has_ended:
            return
        async with aclosing(follow(self._turn.turn_id, is_over=self._is_over)) as events:
            async for event in events:
                if isinstance(event, End):
                    self.has_ended = True
                elif isinstance(event, Reset):
                    self._framing.clear()
                    if self._has_shown:  # the page cannot take back what it shows; after a reload it is right
                        return
                elif not isinstance(event, CaughtUp):
                    texts = await self._records(event)
                    if texts:
                        yield texts

    async def _records(self, records: list[Record]) -> list[str]:
        texts: list[str] = []
        for record in records:
            if not self._has_shown:
                chunk = load(record.text)
                if chunk.get("transient"):  # the SDK reports it and shows no message
                    texts.append(record.text)
                    continue
                self._framing.append(self._labelled(chunk))
                if chunk["type"] in _FRAMING:
                    continue
                self._has_shown = True
                *framing, _ = self._framing
                texts += [dump(chunk) for chunk in [*framing[:1], *await self._outputs(), *framing[1:]]]
            texts.append(record.text)
        return texts

    def _labelled(self, chunk: Chunk) -> Chunk:
        extends = self._playback.extends
        return {**chunk, "messageId": extends.message_id} if extends and chunk["type"] == "start" else chunk

    async def _outputs(self) -> list[Chunk]:
        """Results that calls of the page's message have got since it posted them."""
        extends = self._playback.extends
        if extends is None or not self._pending:
            return []
        stored = await db(selectors.find_messages, extends.session_id, extends.stored_in)
        parts = [
            part for message in stored.values() for part in message.parts if part.get("toolCallId") in self._pending
        ]
        settled = [chunk for part in parts if (chunk := settlement(part)) is not None]
        self._pending -= {chunk["toolCallId"] for chunk in settled}
        return settled

    async def _end(self) -> list[Chunk]:
        turn = await db(snapshots.find_turn, self._key, turn_id=self._turn.turn_id)
        ending: list[Chunk] = await self._outputs() if self._has_shown else []
        if not self._has_shown:  # the answer is empty, or the log is gone and the row is not
            answer = await db(snapshots.answer_of, self._turn.turn_id)
            ending = [] if answer is None else [self._labelled(chunk) for chunk in rebuild(answer)]
        if turn is None or turn.status in {TurnStatus.ABORTED, TurnStatus.SKIPPED}:
            ending.append(chunks.abort())
        elif turn.status is TurnStatus.ERROR:
            self.has_failed = True
            ending.append(chunks.error(turn.error_text))
            await self._note_seen(turn)
        return ending

    async def _note_seen(self, turn: TurnRef) -> None:
        await db(snapshots.mark_seen, turn.turn_id, self._user_id)

    async def _is_over(self) -> bool:
        return await db(snapshots.is_final, self._turn.turn_id)


CUT: Final = f"data: {dump(chunks.error(LOST))}\n\n".encode()
"""The last event for a page that cannot be sent the end."""
