"""Cancellation between requests, for revisions of the protocol in which a client cancels with a message of its own.

Django's cache has, for each running request of a client, the turn that it waits for. The name of an entry has the user,
so a person's programs stop only what is theirs. A cancellation that arrives before the turn is known leaves a mark.

Cancellations are read here. The transport of the protocol's authors accepts a notification and ends before it
handles it: without sessions there is nothing that it could cancel.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from redis.exceptions import RedisError

from chat.access.auth import open_turn
from chat.errors import TurnNotFound
from chat.http.mcp.callers import McpCaller
from chat.turns.admission.stop import cancel_turn
from thinkproject.kernel.aio import db
from thinkproject.kernel.cache import shared_cache
from thinkproject.kernel.jsonvalue import fingerprint

logger = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
CANCELLED: Final = "notifications/cancelled"
SESSION: Final = "mcp-session-id"
_SECONDS: Final = 24 * 3600
_MARK: Final = "cancelled"
_MARK_SECONDS: Final = 60


async def note_turn(caller: McpCaller, request: Any, request_id: object, turn_id: str) -> None:
    """Note the turn that a request waits for; one that has been cancelled meanwhile is stopped."""
    name = _name_of(caller, request, request_id)
    if name is not None and await db(_exchange, name, turn_id, _SECONDS) == _MARK:
        await db(cancel_turn, turn_id)


async def forget_turn(caller: McpCaller, request: Any, request_id: object) -> None:
    """Forget what a request waited for, once it is answered: a client may use the id again."""
    name = _name_of(caller, request, request_id)
    if name is not None:
        await db(_forget, name)


def watch_cancellations(caller: McpCaller, session: str, receive: Receive) -> Receive:
    """Read the body of a request on its way, and do what it cancels before its end is passed on."""
    pieces: list[bytes] = []

    async def watched() -> Mapping[str, Any]:
        message = await receive()
        if message["type"] == "http.request":
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                await _cancel(caller, session, b"".join(pieces))
                pieces.clear()
        return message

    return watched


async def _cancel(caller: McpCaller, session: str, body: bytes) -> None:
    """Stop the turn that a request of the same client waits for. Does nothing for any other body."""
    try:
        note = json.loads(body) if CANCELLED.encode() in body else None
        name = _name(caller, session, note["params"]["requestId"]) if note and note["method"] == CANCELLED else None
    except (ValueError, RecursionError, LookupError, TypeError):
        return
    turn_id = None if name is None else await db(_exchange, name, _MARK, _MARK_SECONDS)
    if turn_id not in (None, _MARK):
        await db(_stop, caller, turn_id)


def _stop(caller: McpCaller, turn_id: str) -> None:
    with suppress(TurnNotFound):  # deleted meanwhile
        cancel_turn(open_turn(caller.user, turn_id).pk)


def _exchange(name: str, value: str, seconds: int) -> Any:
    try:
        if shared_cache().add(name, value, seconds):
            return None
        return shared_cache().get(name)
    except (RedisError, OSError):
        logger.warning("not noted", extra={"action": "mcp_request_not_noted"})
        return None


def _forget(name: str) -> None:
    with suppress(RedisError, OSError):
        shared_cache().delete(name)


def _name_of(caller: McpCaller, request: Any, request_id: object) -> str | None:
    return _name(caller, "" if request is None else request.headers.get(SESSION, ""), request_id)


def _name(caller: McpCaller, session: str, request_id: Any) -> str | None:
    if not session or request_id is None:
        return None
    return f"think.mcp.running.{caller.user.pk}.{fingerprint([session, request_id])}"
