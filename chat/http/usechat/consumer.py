"""The AI SDK's own socket, `/agents/{agent}/{name}/chat`: `useChat` with the package's `WebSocketChatTransport`.

The door is that of every socket (`chat/realtime/consumer.py`), the chunks are those of the HTTP transport (`playback`),
and what is asked for is admitted like a post. One socket carries several requests at a time; all are for the
conversation that the URL names. Source: `docs/reference/protocol.md`, "The AI SDK's own socket".
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from django.db import DatabaseError

from chat.access.auth import Credential, OpenedAgent, open_key_for
from chat.agent.base import InstanceKey
from chat.agent.connection import ClientConnection
from chat.agent.registry import is_served
from chat.core.loop.hooks import ChatErrorContext
from chat.core.wire import sdk_frames
from chat.core.wire.limited import with_wait
from chat.core.wire.sdk_frames import Abort, Resume, SdkFrame, Send
from chat.errors import BUSY, FrameInvalid, limit_wait
from chat.http.usechat import posts
from chat.http.usechat.playback import LOST, Playback, Player
from chat.instance.instance import make_agent
from chat.instances.notifications import Notification
from chat.members import policy
from chat.models import TurnTrigger
from chat.realtime.connection import Admitted
from chat.realtime.consumer import AgentSocket
from chat.realtime.inbound import SDK
from chat.realtime.monitor import connections
from chat.user_code.call_hook import user_facing_error
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate

logger = logging.getLogger(__name__)

MAX_REQUESTS: Final = 16
"""Answers that one socket may be sent at a time."""
IDLE_SECONDS: Final = 300.0
"""A socket on which nothing is asked or sent for so long is closed: the SDK opens another with its next request."""


class UseChatConsumer(AgentSocket):
    """One socket of a transport of the AI SDK's."""

    dialect = SDK

    async def let_in(self, credential: Credential, key: InstanceKey, client: ClientConnection) -> None:
        """Wait for requests; nothing is sent before one."""
        admitted = Admitted(credential, key, client)
        if is_served(key.agent):
            admitted.agent = make_agent(key)
        self._commands = PageRequests(admitted)
        self._events = _Authority(admitted)
        self.connection = admitted
        connections.add(admitted)

    async def refuse(self, error: FrameInvalid, context: ChatErrorContext) -> None:
        """Answer every broken frame; one without an id under an id that no request has, which clients ignore."""
        if self.connection is not None:
            text = await user_facing_error(self.connection.agent, error, context)
            await self.send(sdk_frames.error(context.request_id, text))


class _Authority:
    """Of the instance's notifications, the one about the user."""

    def __init__(self, admitted: Admitted) -> None:
        self._admitted = admitted

    async def handle(self, event: Notification) -> None:
        if event["type"] == "authority.changed":
            await self._admitted.check_authority()

    async def close(self) -> None:
        """Nothing runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """A request that is being answered. `turn_ids`: what an abort stops."""

    turn_ids: tuple[str, ...]
    task: asyncio.Task[None]


class PageRequests:
    """The requests of one socket: each is admitted or looked up in its turn, and answered by a task of its own."""

    def __init__(self, admitted: Admitted) -> None:
        self._admitted = admitted
        self._running: dict[str, _Running] = {}
        self._closing: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._rest)

    async def handle(self, frame: SdkFrame) -> None:
        """Carry out one frame."""
        self._stir()
        match frame:
            case Abort():
                await self._abort(frame)
            case Send() | Resume() if frame.request_id in self._running:
                logger.info("request repeated", extra={"action": "frame_ignored"})  # an error would end the first
            case Send():
                await self._answer(frame.request_id, partial(db, self._admit, frame))
            case Resume():
                await self._answer(frame.request_id, partial(db, self._find, frame), frame.last_sequence, resumes=True)

    async def close(self) -> None:
        """Stop sending. Nothing else stops: turns belong to the server."""
        self._timer.cancel()
        tasks = [running.task for running in self._running.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stir(self) -> None:
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._rest)

    def _rest(self) -> None:
        if not self._running:  # else the end of the last answer begins the time anew
            closed = self._admitted.client.close(1000, "Nothing was asked for in a while.")
            self._closing = asyncio.get_running_loop().create_task(closed)

    async def _answer(
        self,
        request_id: str,
        ask: Callable[[], Awaitable[list[Playback]]],
        last_sequence: int | None = None,
        *,
        resumes: bool = False,
    ) -> None:
        try:
            if len(self._running) >= MAX_REQUESTS:
                raise FrameInvalid(f"A connection may have {MAX_REQUESTS} requests at a time.")
            playbacks = await ask()
        except ThinkError as error:
            context = ChatErrorContext(
                request_id=request_id, stage="persist", messages_persisted=False, code=error.code
            )
            text = await user_facing_error(self._admitted.agent, error, context)
            await self._send(with_wait(sdk_frames.error(request_id, text), limit_wait(error)))
            return
        except DatabaseError:  # one refused request is no reason to lose the socket
            logger.exception("turn not admitted", extra={"action": "turn_not_admitted"})
            await self._send(sdk_frames.error(request_id, translate(BUSY)))
            return
        if not playbacks:
            await self._send(sdk_frames.no_active(request_id))
            return
        if resumes:
            await self._send(sdk_frames.start(request_id))
        after = -1 if last_sequence is None else last_sequence
        task = asyncio.get_running_loop().create_task(self._play(request_id, playbacks, after))
        self._running[request_id] = _Running(turn_ids=tuple(each.turn.turn_id for each in playbacks), task=task)

    async def _play(self, request_id: str, playbacks: Sequence[Playback], after: int) -> None:
        [outcome] = await asyncio.gather(self._stream(request_id, playbacks, after), return_exceptions=True)
        if isinstance(outcome, BaseException):
            logger.error("answer not sent", exc_info=outcome, extra={"action": "event_stream_failed"})
        # In the same step of the loop as the last frame: an abort that comes now is of a request that has ended.
        self._running.pop(request_id, None)
        self._stir()
        last = sdk_frames.end(request_id) if outcome is True else sdk_frames.error(request_id, LOST)
        await asyncio.gather(self._send(last), return_exceptions=True)  # a client that is gone needs none

    async def _stream(self, request_id: str, playbacks: Sequence[Playback], after: int) -> bool:
        """Send turns one after another; false where one could not be sent to its end.

        After a failed turn comes no other: clients leave at its error with an abort, which must not stop the next.
        """
        sequence = 0
        for playback in playbacks:
            player = Player(playback, self._admitted.key, self._admitted.user_id)
            async with aclosing(player.play()) as pieces:
                async for texts in pieces:
                    for text in texts:
                        if sequence > after:
                            await self._send(sdk_frames.chunk(request_id, sequence, text))
                        sequence += 1
            if not player.has_ended:
                return False
            if player.has_failed:
                break
        return True

    async def _abort(self, frame: Abort) -> None:
        """Stop the turns of a request. Unknown and ended ones are ignored."""
        running = self._running.get(frame.request_id)
        if running is not None:
            try:
                await db(self._stop, frame, running.turn_ids)
            except ThinkError as error:
                logger.info("not stopped", extra={"action": "frame_refused", "reason": error.message})

    async def _send(self, text: str) -> None:
        await self._admitted.send(text)

    # What follows asks the database and runs off the loop.

    def _admit(self, frame: Send) -> list[Playback]:
        opened = self._opened(frame)
        idempotency_key = frame.headers.get("idempotency-key") or None
        post = posts.read_post(frame.as_post())
        user_id = self._admitted.user_id
        playback = posts.accept_post(
            opened.key, opened.instance, post, actor_id=user_id, idempotency_key=idempotency_key, via="socket"
        )
        return [playback]

    def _stop(self, frame: Abort, turn_ids: Sequence[str]) -> None:
        posts.stop_turns(self._opened(frame).instance, turn_ids=turn_ids)

    def _find(self, frame: Resume) -> list[Playback]:
        instance = self._opened(frame).instance
        playbacks = posts.find_playbacks(instance, self._admitted.user_id) or posts.find_retained(instance)
        if frame.last_sequence is None or not playbacks:
            return playbacks
        return [_continued(playbacks[0], frame.body.get("messageId")), *playbacks[1:]]

    def _opened(self, frame: SdkFrame) -> OpenedAgent:
        admitted = self._admitted
        return open_key_for(admitted.user_id, admitted.key, needs=policy.role_for_frame(frame))


def _continued(playback: Playback, message_id: object) -> Playback:
    """A turn as it was numbered when it was asked for. Errors: `FrameInvalid` where the numbers are of something else.

    `message_id`: of the message that the client has of it, if the client names one.
    """
    if playback.turn.trigger is TurnTrigger.CONTINUE:
        raise FrameInvalid("This answer continues another and is sent as a whole: resume without lastSequence.")
    if message_id not in (None, playback.turn.assistant_id):
        raise FrameInvalid("Another answer is being sent now: resume without lastSequence.")
    return replace(playback, is_stored=False)
