"""Both hot logs, and writers with a transaction that no one fences."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from chat.streams.logs.memory_log import MemoryLog
from chat.streams.logs.port import StreamLog
from chat.streams.logs.redis_log import RedisLog
from thinkproject.kernel.ids import new_id


@pytest.fixture
def stream() -> str:
    return new_id("trn")


@pytest.fixture
async def redis_log(redis_url: str) -> AsyncIterator[RedisLog]:
    log = RedisLog(redis_url)
    yield log
    await log.aclose()


@pytest.fixture(params=["memory", "redis"])
async def log(request: pytest.FixtureRequest, redis_url: str) -> AsyncIterator[StreamLog]:
    if request.param == "memory":
        yield MemoryLog()
        return
    redis_log = RedisLog(redis_url)
    yield redis_log
    await redis_log.aclose()


@pytest.fixture
def quick(settings: Any) -> None:
    """Followers look again after a fifth of a second of silence."""
    settings.THINK_STREAM_IDLE_SECONDS = 0.2


@pytest.fixture
async def redis_client(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url, decode_responses=True) as client:
        yield client
