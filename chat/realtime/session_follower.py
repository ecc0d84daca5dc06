"""Which session a connection follows: the current one of its instance. Frames do not say which one they are about."""

from chat.reads.snapshots import Snapshot, TurnRef
from chat.realtime.turn_feed import TurnFeed
from thinkproject.kernel.jsonvalue import JSONObject


class SessionFollower:
    """Mixin of the consumer, which supplies what it needs."""

    session_id: str | None
    delivery: TurnFeed | None

    async def snapshot(self) -> Snapshot:
        """Read the instance as it is now."""
        raise NotImplementedError

    async def follows(self, turn: TurnRef) -> bool:
        """Whether a turn that was just accepted is of the session that is followed; another may be current by now."""
        if self.session_id is None:
            self.session_id = turn.session_id  # the first one: there is nothing to take back
        elif self.session_id != turn.session_id:
            await self.follow_current()
        if self.session_id != turn.session_id and self.delivery is not None:
            self.delivery.heard.add(turn.position)
        return self.session_id == turn.session_id

    async def session_switched(self, _event: JSONObject) -> None:
        """Another session is the current one."""
        await self.follow_current()

    async def follow_current(self) -> None:
        """Follow the current session, if it is another one than before: its messages come, and what runs in it."""
        snapshot = await self.snapshot()
        if self.delivery is not None and snapshot.session_id != self.session_id:
            self.session_id = snapshot.session_id
            await self.delivery.follow(snapshot.turns, last_position=snapshot.last_position)
