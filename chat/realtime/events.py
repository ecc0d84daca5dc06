"""Notifications of an instance, handled by one connection.

A notification carries names, never content: each handler reads the rows or the log. The methods are named as Channels
derives them from an event's type: `turn.accepted` calls `turn_accepted`.
"""

from chat.agent.base import InstanceKey
from chat.conversations.services import title_of
from chat.core.wire import extension_frames, frames
from chat.core.wire.extension_frames import Compacted, SessionPhase
from chat.models import TurnTrigger
from chat.reads import snapshots
from chat.reads.snapshots import TurnRef
from chat.realtime.session_follower import SessionFollower
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject


class InstanceEvents(SessionFollower):
    """Mixin of the consumer, which supplies what the handlers need."""

    key: InstanceKey
    channel_name: str
    user_id: int
    follows_list: bool
    state_version: int

    async def send_text(self, text: str) -> None:
        """Send one frame."""
        raise NotImplementedError

    async def send_transcript(self, *, connect: bool = False) -> None:
        """Send the window of messages."""
        raise NotImplementedError

    async def check_authority(self) -> bool:
        """Ask again whether the user may be here; close when not."""
        raise NotImplementedError

    async def turn_accepted(self, event: JSONObject) -> None:
        """Somebody's request was accepted."""
        if self.delivery is None or event["origin"] == self.channel_name:
            return
        turn = await db(snapshots.find_turn, self.key, turn_id=event["turn_id"])
        if turn is not None and await self.follows(turn):
            await self._hear(turn)

    async def _hear(self, turn: TurnRef) -> None:
        await self.hear_before(turn.position)
        await self._show(turn)

    async def hear_before(self, position: int) -> None:
        """Take up the turns before this one whose notifications are late or lost: they are answered and sent first."""
        assert self.delivery is not None
        if self.delivery.heard.up_to < position - 1:
            for turn in await db(snapshots.turns_after, self.key, self.delivery.heard.up_to):
                if self.session_id is None:  # there was nothing when this connection came
                    self.session_id = turn.session_id
                if turn.position < position and turn.session_id == self.session_id:
                    await self._show(turn)
            self.delivery.heard.add_up_to(position - 1)

    async def _show(self, turn: TurnRef) -> None:
        """Show the question, then deliver the answer, also when the turn ended before its notification came."""
        assert self.delivery is not None
        if turn.position in self.delivery.heard:
            return  # or it had ended before this connection came, which began with the whole transcript
        if turn.trigger is not TurnTrigger.REGENERATE:
            await self.send_transcript()
        self.delivery.tell(turn)

    async def turn_settled(self, event: JSONObject) -> None:
        """A turn ended."""
        if self.delivery is not None:
            await self.delivery.settle(event["turn_id"])

    async def turn_recovering(self, event: JSONObject) -> None:
        """A turn that a crash cut goes on."""
        turn = await db(snapshots.find_turn, self.key, request_id=event["request_id"])
        if self.delivery is None or (turn is not None and turn.session_id != self.session_id):
            return
        await self.delivery.outbox.recovery.announced(event["request_id"], is_recovering=event["recovering"])

    async def chat_cleared(self, event: JSONObject) -> None:
        """Somebody cleared the conversation."""
        if self.delivery is None or event["origin"] == self.channel_name:
            return
        await self.delivery.clear(event["generation"])

    async def transcript_changed(self, _event: JSONObject) -> None:
        """The shown path changed outside a turn, for instance to a sibling."""
        if self.delivery is not None:
            self.delivery.path.note()

    async def session_phase(self, event: JSONObject) -> None:
        """A compaction of the shown session has begun or is over, or a summary was changed."""
        if self._shows(event):
            compacted = event.get("compacted")
            phase = SessionPhase(
                phase=event["phase"],
                token_estimate=event["tokens"],
                token_threshold=event["threshold"],
                compacted=None if compacted is None else Compacted.model_validate(compacted),
            )
            await self.send_text(extension_frames.session_phase(phase))

    async def session_failed(self, event: JSONObject) -> None:
        """A compaction of the shown session failed; nothing was changed."""
        if self._shows(event):
            await self.send_text(extension_frames.session_error(event["error"]))

    def _shows(self, event: JSONObject) -> bool:
        return self.delivery is not None and event["session_id"] == self.session_id

    async def message_changed(self, event: JSONObject) -> None:
        """A stored message has changed in its place: a call of it was answered, or its result has come."""
        if self.delivery is not None:
            await self.delivery.outbox.message_updated(event["session_id"], event["message_id"])

    async def state_changed(self, event: JSONObject) -> None:
        """The synced state has a new version: told to everyone but the client that set it, and never an older one."""
        if event["origin"] == self.channel_name and event["version"] == self.state_version + 1:
            self.state_version = event["version"]
        else:
            await self.tell_state()

    async def tell_state(self) -> None:
        """Send the state if it is newer than the one that was sent.

        Changes in quick succession share one frame with the newest value: the state is a value, not a log of changes,
        and a slow reader must not fall behind.
        """
        snapshot = await self.snapshot()
        if snapshot.state_version > self.state_version:
            self.state_version = snapshot.state_version
            await self.send_text(frames.state(snapshot.state))

    async def conversation_changed(self, event: JSONObject) -> None:
        """One of the user's conversations has another title: told to clients that show the list."""
        if self.delivery is not None and self.follows_list:
            title = await db(title_of, event["instance_id"], self.user_id)
            if title is not None:
                await self.send_text(extension_frames.conversation_changed(event["instance_id"], title))

    async def authority_changed(self, _event: JSONObject) -> None:
        """Something about the user changed: ask again now."""
        if self.delivery is not None:
            await self.check_authority()

    async def look(self, turn_count: int) -> None:
        """Read the rows again after a lost notification. The instance has had this many turns."""
        if self.delivery is not None:
            await self.hear_before(turn_count + 1)
