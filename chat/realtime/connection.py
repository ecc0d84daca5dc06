"""One client at one instance: the session that it follows, the turns that it is sent, the state that it has.

The consumer is the socket. `ClientCommands` carries out what the client asks for, and `InstanceEvents` what the
instance notifies of; both act on a `Connection`.
"""

import time
from collections.abc import Collection, Iterable

from chat.access.auth import Credential, recheck
from chat.agent.base import Agent, InstanceKey
from chat.agent.connection import ClientConnection
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.core.wire import extension_frames, frames
from chat.core.wire.extension_frames import ModelChosen
from chat.core.wire.handshake import (
    Action,
    Handshake,
    MarkSeen,
    RemoveUnstored,
    Replay,
    SendRecovering,
    SendTranscript,
    to_frame,
)
from chat.errors import AgentNotFound
from chat.instance.instance import Instance, make_agent
from chat.mcp_servers.frames import mcp_state
from chat.members.selectors import role_in
from chat.models import Role, TurnTrigger
from chat.reads import snapshots
from chat.reads.snapshots import Snapshot, TurnRef
from chat.realtime.frame_sender import FrameSender
from chat.realtime.monitor import connections
from chat.realtime.runs.feed import RunFeed
from chat.realtime.threads.feed import ThreadFeed
from chat.realtime.turn_feed import TurnFeed
from chat.runtime.model_choice import ChoiceView
from chat.threads.agent import thread_route
from chat.user_code.call_hook import notify_hook
from thinkproject.kernel.aio import db

UNAUTHENTICATED, UNKNOWN = 4401, 4404
FAILED = 1011  # clients reconnect after it


class Admitted:
    """A client that was let in to an instance, for as long as its user may be there."""

    def __init__(self, credential: Credential, key: InstanceKey, client: ClientConnection) -> None:
        self.key = key
        self.client = client
        self.user_id = credential.user_id
        self.credential = credential
        self.agent: Agent | None = None
        self.is_member = key.owner_id != credential.user_id  # of another's conversation
        self.role: Role | None = Role.READER if self.is_member else Role.OWNER  # as the last check found it
        self._checked_at = time.monotonic()
        self._is_shut = False

    async def leave(self, code: int) -> None:
        """Stop sending. Turns belong to the server and go on."""
        del code
        connections.discard(self)

    def authority_held(self) -> None:
        """Note that the credential was read, and holds."""
        self._checked_at = time.monotonic()

    async def check_authority(self, *, max_age_seconds: float = 0.0) -> bool:
        """Check that the user may still be here and close the socket when not. Reads a member's role again.

        `max_age_seconds`: how old the last check may be to count.
        """
        now = time.monotonic()
        if now - self._checked_at <= max_age_seconds:
            return True
        self._checked_at = now
        if not await db(recheck, self.credential):
            await self.client.close(UNAUTHENTICATED, "Your session has ended.")
            return False
        if self.is_member:
            self.role = await db(role_in, self.user_id, self.key.instance_id or "")
        if self.role is None:
            await self.let_go()
        return self.role is not None

    async def let_go(self) -> None:
        """Close the socket: what it is about is gone."""
        await self._shut()
        await self.client.close(UNKNOWN, AgentNotFound().message)

    async def _shut(self) -> None:
        """Send nothing more of the conversation, not even what is on its way."""
        self._is_shut = True
        connections.discard(self)

    async def send(self, text: str) -> None:
        """Send one frame, while the user may be there."""
        if not self._is_shut:
            await self.client.send(text)


class Connection(Admitted):
    """A connection that was let in. `open` has to be called once the socket receives the instance's notifications."""

    def __init__(
        self, credential: Credential, key: InstanceKey, client: ClientConnection, *, label: str, shows_list: bool
    ) -> None:
        """`label`: the client's own, kept over its reconnects. `shows_list`: it shows the list of conversations."""
        super().__init__(credential, key, client)
        self.shows_list = shows_list
        self.shared: frozenset[str] = frozenset()  # conversations of others that are in its list
        self.reads_own_frames = shows_list  # those that no published client knows; also once it has sent one
        self.session_id: str | None = None
        self.state_version = 0
        self.handshake = Handshake()
        self.sender = FrameSender(self.send, key, credential.user_id, label=label, reads_pages=shows_list)
        self.feed = TurnFeed(self.sender, self.handshake, give_up=self._give_up)
        self.runs = RunFeed(key, self.send, give_up=self._give_up)
        self.threads: ThreadFeed | None = None
        if thread_route(key.agent):
            self.threads = ThreadFeed(key, client.id, self.send, give_up=self._give_up)
        self._has_conversation = _has_conversation(key.agent)

    async def open(self) -> None:
        """Send the client a snapshot, then follow live events."""
        snapshot = await self.snapshot()
        await self.sender.end_interrupted_answer(snapshot)
        self.feed.seen.add_up_to(snapshot.last_position)
        self.state_version = snapshot.state_version
        self.session_id = snapshot.session_id
        for turn in snapshot.turns:
            self.feed.enqueue(turn)
        connections.follow(self)  # not before the snapshot: the monitor would take the whole history for missed turns
        await self.carry_out(self.handshake.connected(snapshot.view()), snapshot=snapshot)
        if is_served(self.key.agent):  # an instance whose class is gone can be read, and has no code to run
            self.agent = make_agent(self.key)
        await self._introduce(snapshot)
        if self.agent is not None:
            await notify_hook(self.agent, "on_connect", self.client)

    async def _introduce(self, snapshot: Snapshot) -> None:
        initial = None if self.agent is None else self.agent.initial_state
        state = snapshot.state if snapshot.state_version else initial
        has_state = snapshot.state_version > 0 or initial is not None
        await self.send(frames.identity(self.key.name, self.key.agent, state_follows=has_state))
        if has_state:
            await self.send(frames.state(state))
        await self.send_mcp_servers(has_servers=snapshot.has_mcp_servers)
        self.runs.open(has_runs=snapshot.has_runs)
        if self.threads is not None:
            await self.threads.open()
        if self.reads_own_frames and self._has_conversation:
            view = await Instance(self.key).model_choice.view(snapshot.model_choice)
            await self.send_model_choice(snapshot.instance_id, view)

    async def leave(self, code: int) -> None:
        """Stop sending. Turns belong to the server and go on."""
        await super().leave(code)
        await self._close_feeds()
        if self.agent is not None:
            await notify_hook(self.agent, "on_close", self.client, code)

    async def _shut(self) -> None:
        await super()._shut()
        await self._close_feeds()

    async def _close_feeds(self) -> None:
        await self.feed.close()
        await self.runs.close()
        if self.threads is not None:
            await self.threads.close()

    async def _give_up(self) -> None:
        """The feed failed. The client reconnects and resumes; an open socket that stays silent would prevent that."""
        await self.client.close(FAILED, "Please connect again.")

    # Sending

    async def send_transcript(self, *, connect: bool = False, snapshot: Snapshot | None = None) -> None:
        """Send the window of messages; nothing for an agent that has no conversation.

        `snapshot`: read since this client has been notified of changes, so that the version need not be read again.
        """
        if self._has_conversation:
            await self.sender.transcript(connect=connect, snapshot=snapshot)

    async def send_state(self) -> None:
        """Send the state if it is newer than the last one sent.

        Changes in quick succession share one frame with the newest value: the state is a value, not a log of changes,
        and a slow reader must not fall behind.
        """
        snapshot = await self.snapshot()
        if snapshot.state_version > self.state_version:
            self.state_version = snapshot.state_version
            await self.send(frames.state(snapshot.state))

    async def send_mcp_servers(self, *, has_servers: bool = True) -> None:
        """Send the MCP servers that the conversation has. Without any no query is needed."""
        state = await db(mcp_state, self.key) if has_servers and not self.is_member else None  # they are the owner's
        await self.send(extension_frames.mcp_servers(state))

    async def send_model_choice(self, instance_id: str | None, view: ChoiceView) -> None:
        """Send the conversation's choice of a model and what answers next."""
        frame = ModelChosen(
            instance_id=instance_id, model_choice=view.model_choice, model=view.model, model_notice=view.notice
        )
        await self.send(extension_frames.model_chosen(frame))

    async def carry_out(
        self, actions: list[Action], turn: TurnRef | None = None, *, snapshot: Snapshot | None = None
    ) -> None:
        """Carry out the handshake's decisions. `turn`: the one named by the client; `snapshot`: read just now."""
        for action in actions:
            match action:
                case SendTranscript():
                    await self.send_transcript(connect=True, snapshot=snapshot)
                case Replay(then_live=True) if turn is not None:
                    self.feed.acknowledged(turn)
                case Replay() if turn is not None:
                    await self.sender.replay(turn)
                case SendRecovering(request_id=request_id):
                    if turn is None:
                        await self.sender.recovery.begin(request_id)
                    else:
                        self.sender.recovery.begin_after_replay(request_id)
                case MarkSeen() if turn is not None:
                    await db(snapshots.mark_seen, turn.turn_id, self.user_id)
                case RemoveUnstored() if turn is not None:
                    await self.sender.mend(turn, unless_stored=True)
                case _:
                    text = to_frame(action)
                    if text is not None:
                        await self.send(text)

    async def snapshot(self, *, request_id: str = "") -> Snapshot:
        """Read the instance as it is now, and the turn of one request besides."""
        return await db(snapshots.snapshot, self.key, self.user_id, request_id=request_id)

    # Which turns it is sent

    async def follows(self, turn: TurnRef) -> bool:
        """Whether a turn that was just accepted is of the followed session; another may be current by now."""
        if self.session_id is None:
            self.session_id = turn.session_id  # the first session: there is nothing to take back
        elif self.session_id != turn.session_id:
            await self.follow_current()
        if self.session_id != turn.session_id:
            self.feed.seen.add(turn.position)
        return self.session_id == turn.session_id

    async def follow_current(self) -> None:
        """Follow the instance's current session. If it is another one, send its messages and running turns."""
        snapshot = await self.snapshot()
        if snapshot.session_id != self.session_id:
            self.session_id = snapshot.session_id
            await self.feed.follow(snapshot.turns, last_position=snapshot.last_position)

    async def catch_up_to(self, position: int) -> None:
        """Enqueue the turns before this position whose notifications are late or lost: they are answered first."""
        if self.feed.seen.up_to < position - 1:
            for turn in await db(snapshots.turns_after, self.key, self.feed.seen.up_to):
                if self.session_id is None:  # there was no session when this client connected
                    self.session_id = turn.session_id
                if turn.position < position and turn.session_id == self.session_id:
                    await self.show(turn)
            self.feed.seen.add_up_to(position - 1)

    async def offer_resumed(self, turn_id: str) -> None:
        """Offer the stream of a turn that had ended and goes on; nothing where it is being sent already."""
        is_sent = any(turn.turn_id == turn_id for turn in self.feed.pending.values())
        for turn in () if is_sent else (await self.snapshot()).turns:
            if turn.turn_id == turn_id and turn.session_id == self.session_id and not self.sender.is_cleared(turn_id):
                self.take_up_resumed([turn], frozenset({turn_id}))
                await self.carry_out(self.handshake.resumed(turn.request_id, has_begun=turn.has_begun))

    def take_up_resumed(self, running: Iterable[TurnRef], ended: Collection[str]) -> None:
        """Deliver those once more, from their beginning, that run although their end was sent.

        `ended`: read before `running` was. An end that was sent meanwhile is the last one.
        """
        for turn in running:
            if turn.turn_id in ended and not self.sender.is_cleared(turn.turn_id):
                self.feed.ended.discard(turn.turn_id)
                self.feed.enqueue(turn)

    async def show(self, turn: TurnRef) -> None:
        """Send the question and enqueue the answer, also when the turn ended before its notification came."""
        if turn.position in self.feed.seen:
            return  # or it had ended before this client connected, and the first transcript has it
        if turn.trigger is not TurnTrigger.REGENERATE:
            await self.send_transcript()
        self.feed.enqueue(turn)


def _has_conversation(agent: str) -> bool:
    """Whether instances of a class hold messages; assumed for a removed class."""
    return not is_served(agent) or issubclass(get_agent_class(agent), Think)
