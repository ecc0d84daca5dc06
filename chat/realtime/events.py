"""The notifications of an instance, as one connection handles them.

A notification carries names and never content: each handler reads the rows or the log.
"""

from typing import Final

from chat.core.wire import extension_frames
from chat.core.wire.extension_frames import Compacted, SessionPhase
from chat.instance.instance import Instance
from chat.instances.notifications import (
    AuthorityChanged,
    ChatCleared,
    ConversationChanged,
    ConversationDeleted,
    McpChanged,
    MessageChanged,
    ModelChosen,
    Notification,
    PeopleChanged,
    ProjectsChanged,
    RunChanged,
    SessionFailed,
    SessionPhaseChanged,
    SessionSwitched,
    StateChanged,
    TranscriptChanged,
    TurnAccepted,
    TurnRecovering,
    TurnResumed,
    TurnSettled,
)
from chat.reads import snapshots
from chat.realtime.connection import Connection
from chat.realtime.list_lines import ListLines
from thinkproject.kernel.aio import db

OF_THREADS: Final = ("child.accepted", "threads.changed")
"""Types of notifications that concern the threads of a connection, where it has some."""


class InstanceEvents:
    """Handles the notifications that one connection receives, one after another."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lines = ListLines(connection)

    async def close(self) -> None:
        """Send no more of what has been notified."""
        await self._lines.close()

    async def handle(self, event: Notification) -> None:
        """Call the method that is named after the event's type: `turn.accepted` calls `turn_accepted`."""
        handler = self._connection.threads if event["type"] in OF_THREADS else self
        if handler is not None:
            await getattr(handler, event["type"].replace(".", "_"))(event)

    async def turn_accepted(self, event: TurnAccepted) -> None:
        """A turn was admitted."""
        connection = self._connection
        if event["origin"] == connection.client.id:
            return  # its own request has shown it
        turn = await db(snapshots.find_turn, connection.key, turn_id=event["turn_id"])
        if turn is not None and await connection.follows(turn):
            await connection.catch_up_to(turn.position)
            await connection.show(turn)

    async def turn_recovering(self, event: TurnRecovering) -> None:
        """A turn goes on after a crash, or has caught up."""
        connection = self._connection
        turn = await db(snapshots.find_turn, connection.key, request_id=event["request_id"])
        if turn is None or turn.session_id == connection.session_id:
            await connection.sender.recovery.announced(event["request_id"], is_recovering=event["recovering"])

    async def session_phase(self, event: SessionPhaseChanged) -> None:
        """A compaction of the shown session has begun or is over."""
        if event["session_id"] == self._connection.session_id:
            compacted = event.get("compacted")
            phase = SessionPhase(
                phase=event["phase"],
                token_estimate=event["tokens"],
                token_threshold=event["threshold"],
                warning=event.get("warning"),
                compacted=None if compacted is None else Compacted.model_validate(compacted),
            )
            await self._connection.send(extension_frames.session_phase(phase))

    async def state_changed(self, event: StateChanged) -> None:
        """Send the state to everyone but the client that set it, and never an older one."""
        connection = self._connection
        if event["origin"] == connection.client.id and event["version"] == connection.state_version + 1:
            connection.state_version = event["version"]
        else:
            await connection.send_state()

    async def model_chosen(self, event: ModelChosen) -> None:
        """Another model was chosen: clients that read the product's own frames are sent it."""
        connection = self._connection
        if connection.reads_own_frames and event["origin"] != connection.client.id:
            instance_id, view = await Instance(connection.key).model_choice.view_current()
            await connection.send_model_choice(instance_id, view)

    async def conversation_changed(self, event: ConversationChanged) -> None:
        """The line of a conversation in the user's list has changed; only clients that show the list are notified."""
        connection = self._connection
        if event.get("owner") in {None, str(connection.user_id)} or event["instance_id"] in connection.shared:
            self._lines.note(event["instance_id"])

    async def projects_changed(self, _event: ProjectsChanged) -> None:
        """A project was made, changed or removed; only clients that show the list are in this group."""
        await self._connection.send(extension_frames.projects_changed())

    async def turn_settled(self, event: TurnSettled) -> None:
        """A turn ended."""
        await self._connection.feed.turn_finished(event["turn_id"])

    async def turn_resumed(self, event: TurnResumed) -> None:
        """A turn that had ended goes on: offer its stream anew."""
        await self._connection.offer_resumed(event["turn_id"])

    async def chat_cleared(self, event: ChatCleared) -> None:
        """The conversation was cleared."""
        if event["origin"] != self._connection.client.id:
            await self._connection.feed.clear(event["generation"])

    async def transcript_changed(self, _event: TranscriptChanged) -> None:
        """The active path changed outside of a turn, for instance to a sibling."""
        self._connection.feed.path.note()
        self._connection.feed.reordered.set()

    async def session_switched(self, _event: SessionSwitched) -> None:
        """Another session is the current one."""
        await self._connection.follow_current()

    async def session_failed(self, event: SessionFailed) -> None:
        """A compaction of the shown session failed; nothing has changed."""
        if event["session_id"] == self._connection.session_id:
            await self._connection.send(extension_frames.session_error(event["error"]))

    async def message_changed(self, event: MessageChanged) -> None:
        """A stored message was changed in its place: a call of it was answered, or its result has come."""
        await self._connection.sender.message_updated(event["session_id"], event["message_id"])

    async def mcp_changed(self, _event: McpChanged) -> None:
        """An MCP server that the conversation may have has changed."""
        await self._connection.send_mcp_servers()

    async def run_changed(self, event: RunChanged) -> None:
        """A run of another agent for this one was started or has ended."""
        await self._connection.runs.changed(event["run_id"])

    async def people_changed(self, event: PeopleChanged) -> None:
        """A member came or left, has another role, or is here: for clients that read the product's own frames."""
        connection = self._connection
        if connection.reads_own_frames and event.get("origin") != connection.client.id:
            is_here = "author" in event
            sign = extension_frames.person_here(event.get("author", ""), is_typing=event.get("typing", False))
            await connection.send(sign if is_here else extension_frames.people_changed())

    async def conversation_deleted(self, _event: ConversationDeleted) -> None:
        """The conversation was deleted."""
        await self._connection.let_go()

    async def authority_changed(self, _event: AuthorityChanged) -> None:
        """Something about the user changed."""
        await self._connection.check_authority()
