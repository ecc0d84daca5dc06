"""What a connection does with the requests of its client: submit, stop, clear, answer a call.

Each calls one service and says what came of it; how turns are told is the delivery's.
"""

import logging

from django.db import DatabaseError

from chat.agent.base import Agent, InstanceKey
from chat.core.loop.hooks import ChatErrorContext
from chat.core.wire import frames
from chat.core.wire.client_intent import REGENERATE
from chat.errors import TurnDropped
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.realtime.turn_feed import TurnFeed
from chat.turns.admission.admission import TurnRequest, admit, cancel_turn, clear_instance
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.intake import ClientArray
from chat.turns.admission.wire_replies import reply_of, tools_of
from chat.turns.state.status import TurnStatus
from chat.user_code.calls import user_facing_error
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id
from tools_app.services import Actor

logger = logging.getLogger(__name__)

BUSY = "The server is very busy at the moment. Please try again."


class ClientRequests:
    """Mixin of the consumer, which supplies what the requests need."""

    key: InstanceKey
    user_id: int
    channel_name: str
    delivery: TurnFeed | None
    agent: Agent | None
    expects_turn = False
    """This client answered a call last and waits for the turn that follows."""

    async def send_text(self, text: str) -> None:
        """Send one frame."""
        raise NotImplementedError

    async def send_transcript(self, *, connect: bool = False) -> None:
        """Send the window of messages."""
        raise NotImplementedError

    async def follows(self, turn: TurnRef) -> bool:
        """Whether a turn is of the session that this connection follows."""
        raise NotImplementedError

    async def hear_before(self, position: int) -> None:
        """Hear of the turns before this one."""
        raise NotImplementedError

    async def cancel(self, request_id: str) -> None:
        """Stop a turn. One that is unknown or over is left alone."""
        turn = await db(snapshots.find_turn, self.key, request_id=request_id)
        if turn is not None and self.delivery is not None:
            is_over = not await db(cancel_turn, turn.turn_id)
            await self.delivery.outbox.stopped(turn, is_over=is_over)

    async def chat(self, frame: frames.ChatRequest) -> None:
        """Accept a request, or end it with an error."""
        request = TurnRequest(
            intake=ClientArray(messages=frame.messages, is_regenerate=frame.trigger == REGENERATE),
            request_id=frame.id,
            body=frame.body,
            origin=self.channel_name,
            via="socket",
            client_tools=tools_of(frame),
        )
        try:
            admission = await db(admit, self.key, request)
        except TurnDropped:
            await self.send_transcript()  # takes back what the client shows already
            await self.send_text(frames.done(frame.id, TurnStatus.SKIPPED))
            return
        except ThinkError as error:
            told = ChatErrorContext(request_id=frame.id, stage="persist", messages_persisted=False, code=error.code)
            await self.send_text(frames.error(frame.id, await user_facing_error(self.agent, error, told)))
            await self.send_transcript()
            return
        except DatabaseError:  # one refused request, and no reason to lose the socket
            logger.exception("turn not admitted", extra={"action": "turn_not_admitted", "agent": self.key.agent})
            await self.send_text(frames.error(frame.id, BUSY))
            return
        turn = snapshots.turn_ref(admission.turn)
        assert self.delivery is not None
        if not admission.is_new:
            # Sent again over a new line, which may not have heard of it: the old one had it admitted just now. Where
            # its delivery is still to come or at work, that ends it, and once.
            if await self.follows(turn):
                await self.hear_before(turn.position + 1)
            if turn.is_final and not self.delivery.is_delivering(turn):
                await self.send_text(frames.done(frame.id, turn.status, message_ids=turn.message_ids))
            return
        if await self.follows(turn):
            await self.hear_before(turn.position)
            await self.delivery.accepted(turn, listed=[message["id"] for message in frame.messages])
        else:  # another session became current right after: it is answered there, and not to this client
            await self.send_text(frames.done(frame.id, TurnStatus.SKIPPED))

    async def answer_call(self, frame: frames.ToolResult | frames.ToolApproval) -> None:
        """Take an answer to a call. A late, second or strange one changes nothing; its sender is told what holds."""
        reply, tools = reply_of(frame), tools_of(frame)
        actor = Actor(user_id=self.user_id, via="socket")
        try:
            replied = await db(reply_to_call, self.key, reply, actor, origin=self.channel_name, client_tools=tools)
        except ThinkError as error:
            logger.info("answer refused", extra={"action": "answer_refused", "reason": error.message})
            await self.send_transcript()
            return
        except DatabaseError:  # nothing is stored, so the client must not go on showing it as if it were
            logger.exception("answer not stored", extra={"action": "answer_not_stored", "agent": self.key.agent})
            await self.send_transcript()
            return
        self.expects_turn = reply.continues and replied.is_new
        assert self.delivery is not None
        if replied.late_for is not None:  # this client shows its own answer, which does not count
            late = replied.late_for
            await self.delivery.outbox.message_updated(late.session_id, late.assistant_id)
        if replied.turn is not None:
            turn = snapshots.turn_ref(replied.turn)
            if await self.follows(turn):
                await self.hear_before(turn.position)
                self.delivery.tell(turn)  # not a request of its own: it asks for this one by a probe
        elif replied.refusal:
            await self.send_text(frames.error(new_id("req"), replied.refusal, continuation=True))

    async def clear(self) -> None:
        """Empty the conversation."""
        generation = await db(clear_instance, self.key, origin=self.channel_name)
        assert self.delivery is not None
        await self.delivery.clear(generation, is_own=True)
