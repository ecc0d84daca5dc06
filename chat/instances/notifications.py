"""Notifications: small control messages to every connection of an instance.

They travel through the channel layer, which may lose them; whoever hears one reads the database or the log, and whoever
waits for one looks again by itself. Content never travels here. Ringing works from any thread and never raises: sending
runs on one loop of its own per process.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Coroutine
from functools import cache, partial
from typing import Any

from channels.layers import get_channel_layer
from django.db import transaction

from chat.agent.base import InstanceKey
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint

logger = logging.getLogger(__name__)


def group_of(key: InstanceKey) -> str:
    """Name of an instance's group. It exists before the row does and cannot be guessed into somebody else's."""
    owner_id: int | str | None = key.owner_id
    if owner_id is not None and not isinstance(owner_id, int):
        owner_id = str(owner_id)  # a user model whose key is a UUID
    above = [[parent.agent, parent.name] for parent in key.ancestors]
    return f"think.{fingerprint([owner_id, key.agent, key.name, *above])}"


def user_group(user_id: int) -> str:
    """Name of the group of all of a user's connections."""
    return f"think.user.{user_id}"


def turn_group(turn_id: str) -> str:
    """Name of the group of code that waits for a step of one turn."""
    return f"think.turn.{turn_id}"


def notify_waiters(turn_id: str) -> None:
    """Wake code that waits for a step of this turn, once the present transaction is committed."""
    notify_on_commit(turn_group(turn_id), {"type": "turn.stepped"})


def notify_on_commit(group: str, event: JSONObject) -> None:
    """Ring once the present transaction is committed; at once when there is none."""
    transaction.on_commit(partial(send_notification, group, event), robust=True)


def notify_message_changed(key: InstanceKey, session_id: str, message_id: str) -> None:
    """Ring once the present transaction is committed: a stored message has changed in its place."""
    notify_on_commit(group_of(key), {"type": "message.changed", "session_id": session_id, "message_id": message_id})


def notify_context_usage(key: InstanceKey, session_id: str, tokens: int, threshold: int | None) -> None:
    """Ring once the present transaction is committed: a session has so many tokens now, and nothing compacts it."""
    event = {"type": "session.phase", "phase": "idle", "tokens": tokens, "threshold": threshold}
    notify_on_commit(group_of(key), {**event, "session_id": session_id})


def send_notification(group: str, event: JSONObject) -> None:
    """Ring now, from any thread, without waiting."""
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
