"""Notifications: small control messages to every connection of an instance.

They travel through the channel layer, which may lose them. A receiver reads the database or the log, and code that
waits asks again by itself, so a lost notification costs time and nothing else. Content never travels here. Sending
works from any thread and never raises: it runs on one loop of its own per process.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from functools import cache, partial
from typing import Any, Final, Literal, NotRequired, TypedDict

from channels.layers import get_channel_layer
from django.db import transaction

from chat.agent.base import InstanceKey
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint

logger = logging.getLogger(__name__)


class TurnAccepted(TypedDict):
    """A turn was admitted. `origin`: the connection that asked for it."""

    type: Literal["turn.accepted"]
    turn_id: str
    origin: str


class TurnSettled(TypedDict):
    """A turn has ended."""

    type: Literal["turn.settled"]
    turn_id: str


class TurnResumed(TypedDict):
    """A turn that had ended goes on: a person had it resumed."""

    type: Literal["turn.resumed"]
    turn_id: str


class TurnRecovering(TypedDict):
    """A turn goes on after a crash, or has ended the attempt that did."""

    type: Literal["turn.recovering"]
    request_id: str
    recovering: bool


class TurnStepped(TypedDict):
    """A turn has reached a step that code may wait for."""

    type: Literal["turn.stepped"]


class ChatCleared(TypedDict):
    """The conversation was cleared. `origin`: the connection that cleared it."""

    type: Literal["chat.cleared"]
    origin: str
    generation: int


class TranscriptChanged(TypedDict):
    """The active path changed outside of a turn."""

    type: Literal["transcript.changed"]


class SessionSwitched(TypedDict):
    """Another session of the instance is the current one."""

    type: Literal["session.switched"]


class SessionPhaseChanged(TypedDict):
    """A compaction has begun or is over, or the number of tokens was counted again."""

    type: Literal["session.phase"]
    session_id: str
    phase: Literal["idle", "compacting"]
    tokens: int
    threshold: int | None
    compacted: NotRequired[JSONObject]
    warning: NotRequired[int]


class SessionFailed(TypedDict):
    """A compaction failed; nothing has changed."""

    type: Literal["session.failed"]
    session_id: str
    error: str


class MessageChanged(TypedDict):
    """A stored message was changed in its place."""

    type: Literal["message.changed"]
    session_id: str
    message_id: str


class StateChanged(TypedDict):
    """The synced state has a new version. `origin`: the connection that set it."""

    type: Literal["state.changed"]
    version: int
    origin: str


class ModelChosen(TypedDict):
    """Another model was chosen for the conversation. `origin`: the connection that chose it."""

    type: Literal["model.chosen"]
    origin: str


class ConversationChanged(TypedDict):
    """The line of a conversation in lists has changed: its title, or whether it runs, waits or failed.

    `owner`: whose conversation it is; without it, the one's to whom this is sent.
    """

    type: Literal["conversation.changed"]
    instance_id: str
    owner: NotRequired[str]


class McpChanged(TypedDict):
    """An MCP server was added, changed or removed, or has another state."""

    type: Literal["mcp.changed"]


class RunChanged(TypedDict):
    """A run of another agent for this one was started or has ended. `run_id`: key of its row."""

    type: Literal["run.changed"]
    run_id: str


class ChildAccepted(TypedDict):
    """A turn of a sub-agent was admitted. `agent` and `name`: the sub-agent's."""

    type: Literal["child.accepted"]
    agent: str
    name: str
    turn_id: str


class ThreadsChanged(TypedDict):
    """Something of the threads of a `ThreadsAgent` has changed. `origin`: the connection that did it, or nothing.

    `shows`: names of the frames to send, in this order; `thread_id`: of those about one thread.
    """

    type: Literal["threads.changed"]
    shows: list[str]
    thread_id: str
    origin: str


class AuthorityChanged(TypedDict):
    """A user's permissions have changed, or may have."""

    type: Literal["authority.changed"]


class ProjectsChanged(TypedDict):
    """A project of the user's was made, changed or removed."""

    type: Literal["projects.changed"]


class PeopleChanged(TypedDict):
    """A member was added, has another role, or is none any more; with an author, that person has the conversation open.

    `author`: as messages name this person. Nothing of it is kept.
    """

    type: Literal["people.changed"]
    author: NotRequired[str]
    typing: NotRequired[bool]
    origin: NotRequired[str]


class ConversationDeleted(TypedDict):
    """The conversation was deleted: who follows it is let go."""

    type: Literal["conversation.deleted"]


class StreamChanged(TypedDict):
    """A durable stream has new entries, was closed or deleted."""

    type: Literal["stream.changed"]


Notification = (
    TurnAccepted
    | TurnSettled
    | TurnResumed
    | TurnRecovering
    | TurnStepped
    | ChatCleared
    | TranscriptChanged
    | SessionSwitched
    | SessionPhaseChanged
    | SessionFailed
    | MessageChanged
    | StateChanged
    | ModelChosen
    | ConversationChanged
    | McpChanged
    | RunChanged
    | ChildAccepted
    | ThreadsChanged
    | AuthorityChanged
    | PeopleChanged
    | ProjectsChanged
    | ConversationDeleted
    | StreamChanged
)

EVERYONE: Final = "think.everyone"
"""Name of the group of all connections."""


def group_of(key: InstanceKey) -> str:
    """Name of an instance's group. It exists before the row does, and cannot be guessed."""
    owner_id: int | str | None = key.owner_id
    if owner_id is not None and not isinstance(owner_id, int):
        owner_id = str(owner_id)  # a user model whose key is a UUID
    above = [[parent.agent, parent.name] for parent in key.ancestors]
    return f"think.{fingerprint([owner_id, key.agent, key.name, *above])}"


def user_group(user_id: int) -> str:
    """Name of the group of all of a user's connections."""
    return f"think.user.{user_id}"


def list_group(user_id: Any) -> str:
    """Name of the group of connections that show a user's conversations: in lists of the user's, or of members."""
    return f"think.list.{user_id}"


def turn_group(turn_id: str) -> str:
    """Name of the group of code that waits for a step of one turn."""
    return f"think.turn.{turn_id}"


def stream_group(stream_id: int) -> str:
    """Name of the group of processes with readers that wait at a durable stream."""
    return f"think.stream.{stream_id}"


def notify_waiters(turn_id: str) -> None:
    """Wake code that waits for a step of this turn, after the present transaction."""
    notify_on_commit(turn_group(turn_id), {"type": "turn.stepped"})


def notify_on_commit(group: str, event: Notification) -> None:
    """Send a notification when the present transaction is committed; at once when there is none."""
    transaction.on_commit(partial(send_notification, group, event), robust=True)


def notify_accepted(key: InstanceKey, turn_id: str, *, origin: str) -> None:
    """Notify of an accepted turn, after the present transaction; of a sub-agent's, its parent's connections as well."""
    notify_on_commit(group_of(key), {"type": "turn.accepted", "turn_id": turn_id, "origin": origin})
    if key.parent is not None:
        accepted: ChildAccepted = {"type": "child.accepted", "agent": key.agent, "name": key.name, "turn_id": turn_id}
        notify_on_commit(group_of(key.parent), accepted)


def notify_message_changed(key: InstanceKey, session_id: str, message_id: str) -> None:
    """Notify of a stored message that was changed in its place, after the present transaction."""
    notify_on_commit(group_of(key), {"type": "message.changed", "session_id": session_id, "message_id": message_id})


def notify_run(key: InstanceKey, run_id: str) -> None:
    """Notify a parent's connections of a run that was started or has ended, after the present transaction.

    `key`: address of the parent. `run_id`: key of the run's row, not the caller's id of it.
    """
    notify_on_commit(group_of(key), {"type": "run.changed", "run_id": run_id})


def notify_context_usage(
    key: InstanceKey, session_id: str, tokens: int, threshold: int | None, warning: int | None = None
) -> None:
    """Notify of a session's number of tokens when nothing compacts it, after the present transaction.

    `warning`: the percent of the threshold that was passed just now.
    """
    event: SessionPhaseChanged = {
        "type": "session.phase",
        "session_id": session_id,
        "phase": "idle",
        "tokens": tokens,
        "threshold": threshold,
    }
    if warning is not None:
        event["warning"] = warning
    notify_on_commit(group_of(key), event)


def notify_conversation(owner_id: Any, instance_id: str) -> None:
    """Notify open lists of a conversation whose line has changed, after the present transaction.

    A conversation without an owner is in no list.
    """
    if owner_id is not None:
        notify_on_commit(list_group(owner_id), _line_changed(owner_id, instance_id))


def notify_projects(owner_id: Any) -> None:
    """Notify open lists that a project was made, changed or removed, after the present transaction."""
    notify_on_commit(list_group(owner_id), {"type": "projects.changed"})


def send_conversation(owner_id: Any, instance_id: str) -> None:
    """Do the same now, from any thread."""
    if owner_id is not None:
        send_notification(list_group(owner_id), _line_changed(owner_id, instance_id))


def _line_changed(owner_id: Any, instance_id: str) -> ConversationChanged:
    return {"type": "conversation.changed", "instance_id": instance_id, "owner": str(owner_id)}


def send_notification(group: str, event: Notification) -> None:
    """Send a notification now, from any thread, without waiting."""
    layer = get_channel_layer()
    if layer is not None:
        asyncio.run_coroutine_threadsafe(_send(layer.group_send(group, event)), _loop())


async def _send(sending: Coroutine[Any, Any, None]) -> None:
    try:
        async with asyncio.timeout(5):
            await sending
    except (OSError, TimeoutError, ConnectionError) as error:
        logger.warning("notification lost", extra={"action": "notification_lost", "error": type(error).__name__})


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="chat-notifications", daemon=True).start()
    return loop


os.register_at_fork(after_in_child=_loop.cache_clear)  # the thread that runs the loop stays with the parent
