"""The threads of one connection of their orchestrator: both lists, and what every thread says as it says it.

The turns of one thread are sent one after another, each from its first chunk to its end: `stream_end`, the messages,
the threads. A notification that is lost is made up for by the next look (`catch_up`); the messages that one client
added reach another then with the next change of that thread.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial

from chat.agent.base import InstanceKey
from chat.core.wire import thread_frames
from chat.core.wire.recent_set import RecentSet
from chat.instances.notifications import ChildAccepted, ThreadsChanged
from chat.reads.snapshots import is_final
from chat.realtime.deliveries import Deliveries
from chat.streams.frame_cache import shared_frames
from chat.streams.reader import follow
from chat.streams.records import Record
from chat.threads import registry
from chat.threads.agent import thread_route
from chat.threads.conversation import messages_of
from chat.threads.registry import CLEARED, ENDED, MESSAGES, THREADS, WORKSPACES
from chat.threads.verbs import thread_json, workspace_json
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError


class ThreadFeed:
    """The threads of one connection."""

    def __init__(
        self,
        key: InstanceKey,
        client_id: str,
        send: Callable[[str], Awaitable[None]],
        *,
        give_up: Callable[[], Awaitable[None]],
    ) -> None:
        """`client_id`: of the connection, which is not sent what it added itself."""
        self._key = key
        self._route = thread_route(key.agent)
        self._client_id = client_id
        self._send = send
        self._deliveries = Deliveries(give_up)
        self._known = RecentSet[str]()  # turns that this connection has been sent, or is about to be
        self._turns: dict[str, deque[str]] = {}  # of these, those of each thread that have not ended, in order
        self._lists: dict[str, str] = {}  # frames of the lists as they were sent last

    async def open(self) -> None:
        """Send both lists and what runs, from its beginning. The first connection makes the workspace `default`."""
        with suppress(ThinkError):  # no room for another conversation: then there is nothing to show either
            await db(registry.start, self._key)
        await self.catch_up()

    async def close(self) -> None:
        """Stop. The turns go on without this connection."""
        await self._deliveries.close()

    async def catch_up(self) -> None:
        """Send the lists where they have changed, and turns that were not noticed."""
        await self._send_list(THREADS, is_needed=False)
        await self._send_list(WORKSPACES, is_needed=False)
        for turn in await db(registry.running_turns, self._key, self._route):
            self._follow(turn.thread_id, turn.turn_id)

    async def child_accepted(self, event: ChildAccepted) -> None:
        """A turn of a sub-agent was admitted."""
        if event["agent"] == self._route:
            self._follow(event["name"], event["turn_id"])

    async def threads_changed(self, event: ThreadsChanged) -> None:
        """Send what a change shows, in its order. Messages that this client added are not sent back to it."""
        for what in event["shows"]:
            if what != MESSAGES or event["origin"] != self._client_id:
                await self._show(what, event["thread_id"])

    async def _show(self, what: str, thread_id: str) -> None:
        if what in (THREADS, WORKSPACES):
            await self._send_list(what)
        elif what == CLEARED:
            await self._send(thread_frames.clear(thread_id))
        elif what == ENDED:
            await self._send(thread_frames.stream_end(thread_id))
        elif what == MESSAGES:
            messages = await db(messages_of, self._key.below(self._route, thread_id))
            await self._send(thread_frames.sync(thread_id, messages))

    async def _send_list(self, what: str, *, is_needed: bool = True) -> None:
        if what == THREADS:
            found = await db(registry.threads_of, self._key, self._route)
            text = thread_frames.threads([thread_json(thread) for thread in found])
        else:
            text = thread_frames.workspaces(
                [workspace_json(each) for each in await db(registry.workspaces_of, self._key)]
            )
        if is_needed or self._lists.get(what) != text:
            self._lists[what] = text
            await self._send(text)

    def _follow(self, thread_id: str, turn_id: str) -> None:
        if turn_id in self._known:
            return
        self._known.add(turn_id)
        turns = self._turns.setdefault(thread_id, deque())
        turns.append(turn_id)
        if len(turns) == 1:
            self._deliveries.start(self._serve(thread_id, turns))

    async def _serve(self, thread_id: str, turns: deque[str]) -> None:
        while turns:
            await self._relay(thread_id, turns[0])
            for what in (ENDED, MESSAGES, THREADS):
                await self._show(what, thread_id)
            turns.popleft()
        del self._turns[thread_id]

    async def _relay(self, thread_id: str, turn_id: str) -> None:
        """Send the chunks of a turn to its end. Those of a log that was lost and begins anew are not sent twice."""
        next_offset = 0
        frame = partial(_frame_of, thread_id)
        async with aclosing(follow(turn_id, 0, is_over=partial(db, is_final, turn_id))) as events:
            async for event in events:
                for record in event if isinstance(event, list) else ():
                    if record.offset >= next_offset:
                        next_offset = record.offset + 1
                        text = shared_frames.frame(turn_id, record, frame, "thread")
                        if text:
                            await self._send(text)


def _frame_of(thread_id: str, record: Record) -> str:
    return thread_frames.of_chunk(thread_id, record.text)
