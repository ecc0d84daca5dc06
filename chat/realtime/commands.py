"""Commands of one connection's client.

Each command calls one service and sends its outcome. How turns are sent is the business of the connection's feed.
"""

import logging
import time
from dataclasses import replace
from functools import partial
from typing import Final, cast

from django.db import DatabaseError

from chat.core.loop.hooks import ChatErrorContext
from chat.core.wire import frames
from chat.core.wire.client_intent import REGENERATE
from chat.core.wire.limited import with_wait
from chat.errors import BUSY, ModelChoiceInvalid, RoleNeeded, StateRefused, TurnDropped, limit_wait
from chat.instance.instance import Instance
from chat.instances.notifications import PeopleChanged, group_of, send_notification
from chat.members import policy
from chat.members.selectors import author_of
from chat.models import Role
from chat.reads import snapshots
from chat.realtime.connection import Connection
from chat.realtime.rpc import CallDispatcher
from chat.runtime.state import READ_ONLY, REJECTED, acting_for_client, change_state, is_read_only
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.intake import ClientArray
from chat.turns.admission.overlap import delivery_of
from chat.turns.admission.stop import cancel_turn, clear_instance
from chat.turns.admission.tool_answers import has_pending_interaction, reply_of, tools_of
from chat.turns.state.status import TurnStatus
from chat.user_code.call_hook import is_overridden, notify_hook, user_facing_error
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.languages import translate
from tools_app.calls.services import Actor

logger = logging.getLogger(__name__)

PRESENCE_SECONDS: Final = 1.0
"""Between two notices of one connection that its person is here, and between two that the person writes."""


class ClientCommands:
    """Carries out a client's commands in order; method calls run concurrently."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls = CallDispatcher(connection.key, connection.client, connection.send, connection.send_state)
        self._presented_at = {False: float("-inf"), True: float("-inf")}  # by whether the person writes
        self._expects_turn = False  # the client answered a call last and waits for the turn that follows

    async def close(self) -> None:
        """Cancel the calls that run."""
        await self._calls.close()

    async def handle(self, frame: frames.ClientFrame | frames.Foreign) -> None:
        """Carry out one frame, if the user's role lets it."""
        needs = policy.role_for_frame(frame)
        if policy.allows(self._connection.role, needs):
            await self._carry_out(frame)
        else:
            await self._refuse(frame, policy.role_needed(needs))

    async def _carry_out(self, frame: frames.ClientFrame | frames.Foreign) -> None:
        match frame:
            case frames.ChatRequest():
                await self._submit(frame)
            case frames.Cancel(id=request_id):
                await self._cancel(request_id)
            case frames.Clear():
                await self._clear()
            case frames.ResumeRequest() | frames.ResumeAck():
                await self._follow(frame)
            case frames.ToolResult() | frames.ToolApproval():
                await self._answer_call(frame)
            case frames.StateUpdate() | frames.ChooseModel():
                await self._set(frame)
            case frames.Rpc():
                await self._calls.start(frame)
            case frames.Ping(typing=is_typing):
                await self._connection.send(frames.PONG)
                self._present(is_typing)
            case frames.Foreign(text=text):
                await self._foreign(text)
            case _:
                logger.debug("frame ignored", extra={"action": "frame_ignored", "kind": type(frame).__name__})

    async def _refuse(self, frame: frames.ClientFrame | frames.Foreign, error: RoleNeeded) -> None:
        """Answer a frame that the user's role does not let, as its sender waits for it; what it shows is taken back."""
        connection, text = self._connection, translate(error.phrase)
        logger.info("frame refused", extra={"action": "frame_refused", "reason": error.message})
        match frame:
            case frames.ChatRequest(id=request_id):
                await connection.send(frames.refusal(request_id, text))
                await connection.send_transcript()
            case frames.Clear() | frames.ToolResult() | frames.ToolApproval():
                await connection.send_transcript()
            case frames.StateUpdate():
                await connection.send(frames.state_error(text))
            case frames.ChooseModel(id=request_id):
                await connection.send(frames.error(request_id, text))
            case frames.Rpc(id=call_id):
                await connection.send(frames.rpc_error(call_id, text))
            case _:  # nothing is shown for it, and no answer is waited for
                pass

    async def _submit(self, frame: frames.ChatRequest) -> None:
        """Admit a request, or end it with an error."""
        connection = self._connection
        messages = cast("list[Message]", frame.messages)
        asked = [message["id"] for message in messages[-1:] if message["role"] == "user"]
        request = TurnRequest(
            intake=ClientArray(messages=messages, is_regenerate=frame.trigger == REGENERATE),
            request_id=frame.id,
            body=frame.body,
            origin=connection.client.id,
            via="socket",
            actor_id=connection.user_id,
            client_tools=tools_of(frame),
            delivery=delivery_of(frame.delivery),
        )
        try:
            admission = await db(admit, connection.key, request)
        except TurnDropped:
            await connection.send_transcript()  # takes back what the client shows already
            await connection.send(frames.done(frame.id, TurnStatus.SKIPPED, message_ids=asked))
            return
        except ThinkError as error:
            context = ChatErrorContext(request_id=frame.id, stage="persist", messages_persisted=False, code=error.code)
            text = await user_facing_error(connection.agent, error, context)
            await connection.send(with_wait(frames.refusal(frame.id, text, message_ids=asked), limit_wait(error)))
            await connection.send_transcript()
            return
        except DatabaseError:  # one refused request is no reason to lose the socket
            logger.exception("turn not admitted", extra={"action": "turn_not_admitted", "agent": connection.key.agent})
            await connection.send(frames.refusal(frame.id, translate(BUSY), message_ids=asked))
            return
        turn = snapshots.turn_ref(admission.turn)
        if not admission.is_new:
            await self._sent_again(frame.id, turn)
        elif await connection.follows(turn):
            await connection.catch_up_to(turn.position)
            await connection.feed.request_accepted(turn, listed=[message["id"] for message in frame.messages])
        else:  # another session became current meanwhile: the turn is answered there, and not to this client
            await connection.send(frames.done(frame.id, TurnStatus.SKIPPED, message_ids=turn.message_ids))

    async def _sent_again(self, request_id: str, turn: snapshots.TurnRef) -> None:
        """End a request that was admitted before, exactly once.

        The client sends it again over a new connection. The notification of its admission may not have come here yet,
        and where the feed has the turn, it sends the end.
        """
        connection = self._connection
        if await connection.follows(turn):
            await connection.catch_up_to(turn.position + 1)
        if turn.is_final and not connection.feed.is_delivering(turn):
            await connection.send(frames.done(request_id, turn.status, message_ids=turn.message_ids))

    async def _cancel(self, request_id: str) -> None:
        """Stop a turn. Unknown and ended turns are ignored."""
        turn = await db(snapshots.find_turn, self._connection.key, request_id=request_id)
        if turn is not None:
            is_delivering = partial(self._connection.feed.is_delivering, turn)
            stop = partial(db, cancel_turn, turn.turn_id)
            await self._connection.sender.stop(turn, stop, is_delivering=is_delivering)

    async def _clear(self) -> None:
        """Empty the conversation.

        The client has emptied its list by itself. Frames that were under way to it then may have brought messages back,
        also of answers whose end was sent already: so it gets the transcript after all of them.
        """
        connection = self._connection
        generation = await db(clear_instance, connection.key, origin=connection.client.id)
        await connection.feed.clear(generation, is_own=True)
        await connection.send_transcript()

    async def _follow(self, frame: frames.ResumeRequest | frames.ResumeAck) -> None:
        """Say what runs, or send what was offered."""
        if isinstance(frame, frames.ResumeRequest):
            await self._resume(frame.probe_id)
        else:
            await self._acknowledge(frame.id)

    async def _resume(self, probe_id: str | None) -> None:
        """Report whether there is a stream to resume."""
        connection = self._connection
        ended = frozenset(connection.feed.ended)
        snapshot = await connection.snapshot()
        connection.take_up_resumed(snapshot.turns, ended)  # the notification of that may be lost
        view, pending = snapshot.view(), connection.feed.pending
        if view.is_idle and pending:
            # The turn is over and nothing of it was sent yet: if the client takes the offer, the feed sends all of it.
            view = replace(view, active=pending[min(pending)].request_id)
        if self._expects_turn and view.is_idle and await db(has_pending_interaction, connection.key):
            await connection.carry_out(connection.handshake.wait_for_answers(probe_id))
        else:
            await connection.carry_out(connection.handshake.resume_requested(probe_id, view))

    async def _acknowledge(self, request_id: str) -> None:
        """Send the stream that the client agreed to resume."""
        connection = self._connection
        snapshot = await connection.snapshot(request_id=request_id)
        turn = snapshot.named
        if turn is not None and turn.is_final:
            # A probe may have found the turn before its notification, which would enqueue it after the end sent here.
            await connection.catch_up_to(turn.position + 1)
        # The gate opens here: nothing may be awaited between this and the feed's knowing.
        actions = connection.handshake.acked(request_id, snapshot.view(turn))
        if turn is not None and turn.is_final and connection.feed.is_delivering(turn):
            # It ended between the offer and this frame. The feed sends everything, the end included, once.
            connection.feed.acknowledged(turn)
            return
        await connection.carry_out(actions, turn)

    async def _answer_call(self, frame: frames.ToolResult | frames.ToolApproval) -> None:
        """Store the answer to a call. A late or duplicate answer changes nothing; its sender gets the stored one."""
        connection = self._connection
        reply, tools = reply_of(frame), tools_of(frame)
        actor, origin = Actor(user_id=connection.user_id, via="socket"), connection.client.id
        try:
            replied = await db(reply_to_call, connection.key, reply, actor, origin=origin, client_tools=tools)
        except ThinkError as error:
            logger.info("answer refused", extra={"action": "answer_refused", "reason": error.message})
            await connection.send_transcript()
            return
        except DatabaseError:  # nothing is stored, so the client must not go on showing it as if it were
            logger.exception("answer not stored", extra={"action": "answer_not_stored", "agent": connection.key.agent})
            await connection.send_transcript()
            return
        self._expects_turn = reply.continues and replied.is_new
        if replied.late_for is not None:  # this client shows its own answer, which does not count
            late = replied.late_for
            await connection.sender.message_updated(late.session_id, late.assistant_id)
        if replied.turn is not None:
            turn = snapshots.turn_ref(replied.turn)
            if await connection.follows(turn):
                await connection.catch_up_to(turn.position)
                connection.feed.enqueue(turn)  # not a request of the client's own: it asks for this turn by a probe
        elif replied.refusal:
            await connection.send(frames.error(new_id("req"), translate(replied.refusal), continuation=True))

    async def _set(self, frame: frames.StateUpdate | frames.ChooseModel) -> None:
        """Set what belongs to the instance."""
        if isinstance(frame, frames.ChooseModel):
            await self._choose_model(frame)
        else:
            await self._change_state(frame.state)

    async def _change_state(self, value: JSONValue) -> None:
        connection = self._connection
        try:
            if connection.agent is None:
                raise StateRefused(READ_ONLY)
            with acting_for_client(connection.key, connection.client):
                await change_state(connection.agent, value, "client", origin=connection.client.id)
        except ThinkError as error:
            text = error.phrase if isinstance(error, StateRefused) else REJECTED
            await connection.send(frames.state_error(translate(text)))

    async def _choose_model(self, frame: frames.ChooseModel) -> None:
        """Set the conversation's choice of a model; this client gets the outcome, the others are notified."""
        connection = self._connection
        choices = Instance(connection.key).model_choice
        try:
            if connection.agent is not None:
                with acting_for_client(connection.key, connection.client):
                    if await is_read_only(connection.agent):
                        raise ModelChoiceInvalid(READ_ONLY, field="model_choice")
            instance_id, view = await choices.choose(frame.model_choice, origin=connection.client.id)
        except ThinkError as error:
            await connection.send(with_wait(frames.error(frame.id, translate(error.phrase)), limit_wait(error)))
            return
        except DatabaseError:  # nothing is stored
            logger.exception("choice not stored", extra={"action": "choice_not_stored", "agent": connection.key.agent})
            await connection.send(frames.error(frame.id, translate(BUSY)))
            return
        connection.reads_own_frames = True  # it has sent one
        await connection.send_model_choice(instance_id, view)

    def _present(self, is_typing: bool | None) -> None:
        """Notify the others that this person is here or writes: each at most once a second, by the channel layer alone.

        A person who begins to write right after a sign of life is seen to: clients do not say it again for seconds.
        """
        now, connection = time.monotonic(), self._connection
        if is_typing is None or now - self._presented_at[is_typing] < PRESENCE_SECONDS:
            return
        self._presented_at[is_typing] = now
        event: PeopleChanged = {
            "type": "people.changed",
            "author": author_of(connection.user_id, connection.key.owner_id),
            "typing": is_typing and policy.allows(connection.role, Role.WRITER),
            "origin": connection.client.id,
        }
        send_notification(group_of(connection.key), event)

    async def _foreign(self, text: str) -> None:
        """Give the agent a frame that is none of the protocol's."""
        connection = self._connection
        if connection.agent is not None and is_overridden(connection.agent, "on_message"):
            with acting_for_client(connection.key, connection.client):
                await notify_hook(connection.agent, "on_message", connection.client, text)
        else:
            logger.info("unknown frame", extra={"action": "frame_unknown", "agent": connection.key.agent})
