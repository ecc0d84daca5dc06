"""The last turn that was streamed to each client, so that a client that reconnects is sent its terminal frame.

Published clients that observe a turn keep a partial answer over a reconnect until they receive its end, also where
another path is shown by then. Nothing in the protocol says what a client holds, but it keeps a label of its own (`_pk`
in the socket's query). The entries are in Django's cache for a day; with one that is lost the half stays on screen
until its path is shown again or the page is loaded.
"""

import logging
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from redis.exceptions import RedisError

from chat.agent.base import InstanceKey
from chat.instances.notifications import group_of
from thinkproject.kernel.aio import db
from thinkproject.kernel.cache import shared_cache
from thinkproject.kernel.jsonvalue import fingerprint
from thinkproject.kernel.zones import QUERY, zone_in

logger = logging.getLogger(__name__)

KEEP_SECONDS = 86_400
MAX_LABEL = 64
_OURS = frozenset({"_pk", "_list", "_frames", "token", "instance"})


class ResumeMemory:
    """The memory of one client at one instance; empty for ever when the client has no label."""

    def __init__(self, key: InstanceKey, user_id: int, label: str) -> None:
        self._name = f"think.told.{fingerprint([group_of(key), str(user_id), label])}" if label else ""
        self._noted = ""

    async def note(self, request_id: str) -> None:
        """Remember that this turn is streamed to the client. Costs nothing when it is known."""
        if self._name and request_id != self._noted:
            self._noted = request_id
            try:
                await db(shared_cache().set, self._name, request_id, KEEP_SECONDS)
            except (RedisError, OSError):
                logger.warning("resume point not stored", extra={"action": "resume_memory_not_written"})

    @property
    def is_kept(self) -> bool:
        """Whether the client has a label, so that anything can be known of it."""
        return bool(self._name)

    def last(self) -> str:
        """The request whose answer was streamed to the client last; empty when it is unknown. Not for the loop."""
        try:
            return str(shared_cache().get(self._name, "")) if self._name else ""
        except (RedisError, OSError):
            logger.warning("resume point not read", extra={"action": "resume_memory_not_read"})
            return ""


def client_label(scope: dict[str, Any]) -> str:
    """The label that a client keeps over its reconnects; empty when it has none, or none that can be believed."""
    label = _query(scope).get("_pk", "")
    return label if len(label) <= MAX_LABEL else ""


def client_query(scope: dict[str, Any]) -> Mapping[str, str]:
    """Query parameters for the agent, the first value of each name; empty if they exceed the limit."""
    return {name: value for name, value in _query(scope).items() if name not in _OURS}


def shows_list(scope: dict[str, Any]) -> bool:
    """Whether a client shows the list of conversations and is to be notified of its changes (`_list=1`)."""
    return _query(scope).get("_list") == "1"


def named_instance(scope: dict[str, Any]) -> str:
    """The id of a conversation that a client opens as its member; empty for an address of the client's own."""
    return _query(scope).get("instance", "")


def reads_own_frames(scope: dict[str, Any]) -> bool:
    """Whether a client reads the product's own frames (`_frames=1`), as all do that show the list."""
    return _query(scope).get("_frames") == "1" or shows_list(scope)


def zone_of_scope(scope: dict[str, Any]) -> str:
    """The time zone that a client names: in the socket's query, or in the header of clients that set one."""
    headers = {name.decode("latin1").title(): value.decode("latin1") for name, value in scope["headers"]}
    return _query(scope).get(QUERY, "") or zone_in(headers)


def _query(scope: dict[str, Any]) -> dict[str, str]:
    text = scope.get("query_string", b"").decode("latin-1")
    try:
        return {name: values[0] for name, values in parse_qs(text, max_num_fields=100).items()}
    except ValueError:  # too many fields
        return {}
