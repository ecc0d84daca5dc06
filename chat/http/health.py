"""`/health/live` and `/health/ready`: whether the process answers, and whether database, Redis and a worker do.

For load balancers and supervisors, without sign-in. The answers contain no secrets.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import redis
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from chat.operations.missing_walls import SILENCE_SECONDS, note_walls, redis_client, redis_url
from fibers.process.interrupts import CHANNEL
from thinkproject.kernel import threads

WORKER_KEY = "think:worker-seen"
BUSY_KEY = "think:worker-busy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Results by check: "ok", or a word for the problem.

    A worker is "busy" while all its threads for hooks or tools are taken: turns go on, and some wait for a thread.
    """

    parts: dict[str, str]

    @property
    def is_ready(self) -> bool:
        """Whether everything answers."""
        return all(state in {"ok", "busy"} for state in self.parts.values())


def readiness() -> Health:
    """Look at everything that a turn needs. Never raises; bounded by short timeouts."""
    checks: dict[str, Callable[[], str]] = {"database": _database, "redis": _redis, "worker": _worker}
    return Health(parts={name: check() for name, check in checks.items()})


def note_worker() -> None:
    """Record a worker's heartbeat; called by each worker every few seconds. Never raises: the next beat follows."""
    if not redis_url():
        return
    try:
        with redis_client() as client:
            client.set(WORKER_KEY, repr(time.time()), ex=int(SILENCE_SECONDS * 4))
            if threads.hooks.is_saturated or threads.tools.is_saturated:
                client.set(BUSY_KEY, "1", ex=int(SILENCE_SECONDS))
            note_walls(client)
    except redis.RedisError:
        return


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    except DatabaseError:
        return "unreachable"
    return "ok"


def _redis() -> str:
    if not redis_url():
        return "not configured"
    try:
        with redis_client() as client:
            client.ping()
    except redis.RedisError:
        return "unreachable"
    return "ok"


def _worker() -> str:
    """The state of the workers together.

    Each listens for interrupts over a connection of its own, which it closes when it begins to stop, and its system
    when it is killed: so workers that are gone are noticed at once. Ones that hang, or whose machine is lost, keep the
    connection and send no heartbeat.
    """
    if not redis_url():
        return "unknown"
    try:
        with redis_client() as client:
            seen, is_busy = client.mget(WORKER_KEY, BUSY_KEY)
            ((_, listening),) = client.pubsub_numsub(CHANNEL)
    except redis.RedisError:
        return "unknown"
    if not isinstance(seen, bytes):
        return "never seen"
    if not listening:
        return "gone"
    if time.time() - float(seen) > SILENCE_SECONDS:
        return "silent"
    return "busy" if is_busy else "ok"


@never_cache
@require_safe
def live(_request: HttpRequest) -> JsonResponse:
    """The process answers. Looks at nothing else, so that a slow database does not restart web servers."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def ready(_request: HttpRequest) -> JsonResponse:
    """Readiness: 200 if the process can serve turns, else 503 with the missing parts."""
    health = readiness()
    status = "ok" if health.is_ready else "unavailable"
    return JsonResponse({"status": status, "parts": health.parts}, status=200 if health.is_ready else 503)
