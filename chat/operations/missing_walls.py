"""Workers whose code of models lacks walls: each notes it while it runs, and the admin reads it."""

import json
import os
import socket
import time
from dataclasses import dataclass

import redis
from django.conf import settings

from tools_app.sandbox.starting import found_walls
from tools_app.sandbox.walls import Wall

WALLS_KEY = "think:worker-walls"
SILENCE_SECONDS = 30.0  # after which workers that are still connected count as gone
_TIMEOUT_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingWalls:
    """A worker whose code of models lacks walls. `runs`: whether it runs such code all the same."""

    worker: str
    runs: bool
    lacks: tuple[Wall, ...]


def missing_walls() -> list[MissingWalls]:
    """Workers that were seen lately and lack walls, by name. Empty where that is unknown."""
    if not redis_url():
        return []
    oldest = time.time() - SILENCE_SECONDS
    try:
        with redis_client() as client:
            rows = {name.decode(): json.loads(row) for name, row in client.hgetall(WALLS_KEY).items()}
            if gone := [name for name, row in rows.items() if row["at"] < oldest]:
                client.hdel(WALLS_KEY, *gone)
    except redis.RedisError:
        return []
    return [
        MissingWalls(worker=name, runs=row["runs"], lacks=tuple(Wall(word) for word in row["lacks"]))
        for name, row in sorted(rows.items())
        if name not in gone
    ]


def note_walls(client: "redis.Redis") -> None:
    """Note what is missing, in a row of this worker. What is read removes the rows of workers that are gone."""
    found = found_walls()
    if found is None or not found.caution:
        return
    row = {"at": time.time(), "runs": not found.fault, "lacks": sorted(found.lacks)}
    client.hset(WALLS_KEY, f"{socket.gethostname()}:{os.getpid()}", json.dumps(row))
    client.expire(WALLS_KEY, int(SILENCE_SECONDS * 4))


def redis_client() -> "redis.Redis":
    """Connect to Redis, with short timeouts."""
    return redis.Redis.from_url(redis_url(), socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS)


def redis_url() -> str:
    """The address of Redis; empty in a project that has none."""
    return getattr(settings, "REDIS_URL", "") or ""
