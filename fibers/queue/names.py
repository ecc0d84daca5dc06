"""Names of fibers that wait in Redis for a worker with room: the quick way beside Celery's tasks.

A worker that takes names announces it every few seconds. While one does, a name goes to the list of its queue, and the
first worker with room takes it. A task of Celery costs several times as much on both sides. Celery carries what has to
wait for a while, and everything when no worker takes names.
"""

import logging
from collections.abc import Sequence
from typing import Final

import redis

from fibers.conf import fiber_settings

logger = logging.getLogger(__name__)

SAYING_SECONDS: Final = 5
"""How often a worker says that it takes names; after three times as long without a word none does."""

_PUSH: Final = """
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('RPUSH', KEYS[1], unpack(ARGV))
return 1
"""
_clients: dict[str, "redis.Redis"] = {}


def list_of(queue: str) -> str:
    """The key of the names of a queue; of functions without one it is empty."""
    return f"think:fibers:names:{queue}"


def taken_key(queue: str) -> str:
    """The key that exists while a worker takes names of a queue."""
    return f"think:fibers:taken:{queue}"


def push(fiber_ids: Sequence[str], queue: str) -> bool:
    """Leave names for the workers of a queue. False: none takes any, or Redis does not answer. Never raises.

    **Durability:** as a task of Celery: a name may be lost, late or doubled, and the sweeper sends the fiber again.
    """
    if not fiber_settings.redis_url:
        return False
    try:
        client = client_of(fiber_settings.redis_url)
        return bool(client.eval(_PUSH, 2, list_of(queue), taken_key(queue), *fiber_ids))
    except redis.RedisError as error:
        logger.warning("names not left", extra={"action": "names_not_left", "error": type(error).__name__})
        return False


def client_of(url: str) -> "redis.Redis":
    """The client of this process: short answers only."""
    if url not in _clients:
        _clients[url] = redis.Redis.from_url(
            url, socket_connect_timeout=0.5, socket_timeout=5, health_check_interval=15
        )
    return _clients[url]
