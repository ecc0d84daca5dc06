"""The socket at `/agents/{agent}/{name}`: parse, authorise, call, encode.

Frames are handled one after another. What takes long (following a stream) runs in the connection's `Delivery`.
"""

import logging
import time
from dataclasses import replace
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from chat import live
from chat.addresses import parse_address
from chat.agent import Agent, InstanceKey
from chat.auth import Credential, authenticate_scope, open_key_for, recheck
from chat.bells import InstanceBells
from chat.calls import Calls
from chat.core import frames, side_frames
from chat.core.handshake import (
    Action,
    Handshake,
    MarkSeen,
    RemoveUnstored,
    Replay,
    SendRecovering,
    SendTranscript,
    to_frame,
)
from chat.core.hooks import ChatErrorContext
from chat.delivery import Delivery
from chat.doorbell import group_of, user_group
from chat.errors import AgentNotFound, AgentUnavailable, FrameInvalid, OriginDenied, StateRefused, Unauthenticated
from chat.instance_state import READ_ONLY, REJECTED, asked_by, change_state
from chat.live import Snapshot, TurnRef
from chat.making import make_agent
from chat.outbox import Outbox
from chat.realtime.inbound import Inbound, Refusal
from chat.registry import get_agent_class, is_served
from chat.requests import ClientRequests
from chat.resolving import resolve
from chat.think import Think
from chat.told import client_label, client_query, follows_list
from chat.turns.answers import has_pending_interaction
from chat.turns.calling import is_overridden, observe, reworded
from chat.watch import connections
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONValue

logger = logging.getLogger(__name__)

UNAUTHENTICATED, FORBIDDEN, UNKNOWN = 4401, 4403, 4404
FAILED = 1011  # clients reconnect after it


class AgentConsumer(InstanceBells, ClientRequests, AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    """One connection of one user to one instance."""

    async def connect(self) -> None:
        """Let in who may come in. Refusals are accepted and closed, since a refused upgrade is retried for ever."""
        self.delivery: Delivery | None = None
        self.agent: Agent | None = None
        try:
            credential = await db(authenticate_scope, self.scope)
        except OriginDenied:
            await self.close()  # before accepting: 403
            return
        await self.accept()
        if credential is None:
            await self.close(UNAUTHENTICATED, "Sign in first.")
            return
        try:
            address = parse_address(self.scope.get("raw_path") or self.scope["path"].encode())
            key = await resolve(credential.user_id, address)
            await db(open_key_for, credential.user_id, key)
        except AgentNotFound as error:
            await self.close(UNKNOWN, error.message)
        except AgentUnavailable as error:
            await self.close(FAILED, error.message)
        except Unauthenticated as error:  # gone since the credential was read
            await self.close(UNAUTHENTICATED, error.message)
        else:
            await self._enter(credential, key)

    async def _enter(self, credential: Credential, key: InstanceKey) -> None:
        self._credential, self.key, self.user_id = credential, key, credential.user_id
        self._inbound = Inbound(credential.user_id)
        self._checked_at = time.monotonic()
        self._has_conversation = _has_conversation(key.agent)
        self._handshake = Handshake()
        self.query = client_query(self.scope)
        self.follows_list = follows_list(self.scope)
        self._calls = Calls(key, self, self.send_text, self.tell_state)
        label, reads_pages = client_label(self.scope), self.follows_list
        outbox = Outbox(self.send_text, key, credential.user_id, label=label, reads_pages=reads_pages)
        self.delivery = Delivery(outbox, self._handshake, give_up=self._give_up)
        # Listen first, look second: what happens in between is heard, and hearing it twice does no harm.
        await self.channel_layer.group_add(group_of(key), self.channel_name)
        await self.channel_layer.group_add(user_group(credential.user_id), self.channel_name)
        snapshot = await self.snapshot()
        await outbox.end_what_was_left(snapshot)
        self.delivery.heard.add_up_to(snapshot.last_position)
        self.state_version = snapshot.state_version
        self.session_id = snapshot.session_id
        for turn in snapshot.turns:
            self.delivery.tell(turn)
        connections.add(self)  # not before it is known what was heard: a look would tell the whole history
        await self._act(self._handshake.connected(snapshot.view()))
        if is_served(key.agent):  # an instance whose class is gone is read, and has no code to tell
            self.agent = make_agent(key)
        await self._introduce(snapshot)
        if self.agent is not None:
            await observe(self.agent, "on_connect", self)

    async def _introduce(self, snapshot: Snapshot) -> None:
        initial = None if self.agent is None else self.agent.initial_state
        state = snapshot.state if snapshot.state_version else initial
        has_state = snapshot.state_version > 0 or initial is not None
        await self.send_text(frames.identity(self.key.name, self.key.agent, state_follows=has_state))
        if has_state:
            await self.send_text(frames.state(state))
        await self.send_text(side_frames.mcp_servers())

    async def _give_up(self) -> None:
        """A delivery failed. The client comes back and resumes; an open socket that says nothing would keep it away."""
        await self.close(FAILED, "Please connect again.")

    async def disconnect(self, code: int) -> None:
        """Leave. Nothing stops: turns belong to the server."""
        connections.discard(self)
        if self.delivery is None:
            return
        await self._calls.close()
        await self.delivery.close()
        await self.channel_layer.group_discard(group_of(self.key), self.channel_name)
        await self.channel_layer.group_discard(user_group(self._credential.user_id), self.channel_name)
        if self.agent is not None:
            await observe(self.agent, "on_close", self, code)

    # What clients send

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle one frame. Binary is ignored; a broken frame changes nothing and never closes the socket."""
        del bytes_data
        if text_data is None or self.delivery is None or not await self._may_go_on(self._inbound.refusal(text_data)):
            return
        try:
            frame = await self._inbound.parse(text_data)
            if await self._may_go_on(self._inbound.refusal_of_kind(text_data, frame)):
                await self._handle(frame)
        except FrameInvalid as error:
            logger.info("frame refused", extra={"action": "frame_refused", "reason": error.message})
            request_id = error.data.get("request_id")
            if request_id:
                told = ChatErrorContext(request_id=request_id, stage="parse", messages_persisted=False, code=error.code)
                await self.send_text(frames.error(request_id, await reworded(self.agent, error, told)))

    async def _may_go_on(self, refusal: Refusal | None) -> bool:
        if refusal is not None:
            logger.info("socket closed", extra={"action": "frame_refused", "reason": refusal.reason})
            await self.close(refusal.code, refusal.reason)
            return False
        if time.monotonic() - self._checked_at > 1:
            return await self.check_authority()
        return True

    async def check_authority(self) -> bool:
        """Ask again whether the user may be here; close when not."""
        self._checked_at = time.monotonic()
        if await db(recheck, self._credential):
            return True
        await self.close(UNAUTHENTICATED, "Your session has ended.")
        return False

    async def _handle(self, frame: frames.ClientFrame | frames.Foreign) -> None:
        match frame:
            case frames.ChatRequest():
                await self.chat(frame)
            case frames.Cancel(id=request_id):
                await self.cancel(request_id)
            case frames.Clear():
                await self.clear()
            case frames.ResumeRequest(probe_id=probe_id):
                await self._probe(probe_id)
            case frames.ResumeAck(id=request_id):
                await self._acknowledge(request_id)
            case frames.ToolResult() | frames.ToolApproval():
                await self.answer_call(frame)
            case frames.StateUpdate(state=value):
                await self._change_state(value)
            case frames.Rpc():
                await self._calls.start(frame)
            case frames.Foreign(text=text):
                await self._foreign(text)
            case _:
                logger.debug("frame ignored", extra={"action": "frame_ignored", "kind": type(frame).__name__})

    async def _probe(self, probe_id: str | None) -> None:
        view = (await self.snapshot()).view()
        assert self.delivery is not None
        untold = self.delivery.untold
        if view.is_idle and untold:
            # It is over, and this client has heard nothing of it yet: its delivery tells it, to who takes the offer.
            view = replace(view, active=untold[min(untold)].request_id)
        if self.expects_turn and view.is_idle and await db(has_pending_interaction, self.key):
            await self._act(self._handshake.wait_for_answers(probe_id))
        else:
            await self._act(self._handshake.resume_requested(probe_id, view))

    async def _acknowledge(self, request_id: str) -> None:
        snapshot = await self.snapshot()
        turn = await db(live.find_turn, self.key, request_id=request_id)
        actions = self._handshake.acked(request_id, snapshot.view(turn))
        assert self.delivery is not None
        if turn is not None and turn.is_final:
            # A probe may have found it before its bell was heard, which would tell it after an end that is told here.
            await self.hear_before(turn.position + 1)
            if self.delivery.is_delivering(turn):
                # It ended between the offer and this answer: its own delivery says everything, the end included, once.
                self.delivery.acknowledged(turn)
                return
        await self._act(actions, turn)

    async def _change_state(self, value: JSONValue) -> None:
        try:
            if self.agent is None:
                raise StateRefused(READ_ONLY)
            with asked_by(self.key, self):
                await change_state(self.agent, value, "client", origin=self.channel_name)
        except ThinkError as error:
            text = error.message if isinstance(error, StateRefused) else REJECTED
            await self.send_text(frames.state_error(text))

    async def _foreign(self, text: str) -> None:
        if self.agent is not None and is_overridden(self.agent, "on_message"):
            with asked_by(self.key, self):
                await observe(self.agent, "on_message", self, text)
        else:
            logger.info("unknown frame", extra={"action": "frame_unknown", "agent": self.key.agent})

    # Sending

    async def _act(self, actions: list[Action], turn: TurnRef | None = None) -> None:
        for action in actions:
            match action:
                case SendTranscript():
                    await self.send_transcript(connect=True)
                case Replay(then_live=True) if turn is not None:
                    assert self.delivery is not None
                    self.delivery.acknowledged(turn)
                case Replay() if turn is not None:
                    assert self.delivery is not None
                    await self.delivery.outbox.replay(turn)
                case SendRecovering(request_id=request_id):
                    assert self.delivery is not None
                    if turn is None:
                        await self.delivery.outbox.recovery.begin(request_id)
                    else:
                        self.delivery.outbox.recovery.begin_after_replay(request_id)
                case MarkSeen() if turn is not None:
                    await db(live.mark_seen, turn.turn_id, self._credential.user_id)
                case RemoveUnstored() if turn is not None:
                    assert self.delivery is not None
                    await self.delivery.outbox.mend(turn, unless_stored=True)
                case _:
                    text = to_frame(action)
                    if text is not None:
                        await self.send_text(text)

    async def snapshot(self) -> Snapshot:
        """Read the instance as it is now."""
        return await db(live.snapshot, self.key, self._credential.user_id)

    async def send_transcript(self, *, connect: bool = False) -> None:
        """Send the window of messages; nothing for an agent that has no conversation."""
        assert self.delivery is not None
        if self._has_conversation:
            await self.delivery.outbox.transcript(connect=connect)

    async def send_text(self, text: str) -> None:
        """Send one frame."""
        await self.send(text)

    # `Connection`, as the agent's hooks get it: `send(text)` and `close(code, reason)` are the consumer's own.

    @property
    def id(self) -> str:
        """Label of the connection."""
        return str(self.channel_name)

    async def send(self, text_data: str | None = None, bytes_data: bytes | None = None, close: Any = False) -> None:
        """Send one text frame."""
        await super().send(text_data=text_data, bytes_data=bytes_data, close=close)


def _has_conversation(agent: str) -> bool:
    """Whether instances of a class hold messages; those of a class that is gone may."""
    return not is_served(agent) or issubclass(get_agent_class(agent), Think)
