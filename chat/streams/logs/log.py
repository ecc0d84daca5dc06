"""Facade of the log: chooses this process's hot log, and re-exports the functions callers need.

Redis where `REDIS_URL` is set, else the memory of this process. Redis connections belong to the running loop.
"""

import asyncio
from weakref import WeakKeyDictionary

from chat.streams.conf import stream_settings
from chat.streams.logs.memory_log import MemoryLog
from chat.streams.logs.port import StreamLog
from chat.streams.logs.redis_log import RedisLog

_redis_logs: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, RedisLog]] = WeakKeyDictionary()
_memory_log = MemoryLog()


def get_log() -> StreamLog:
    """Return the hot log for the running loop."""
    url = stream_settings.redis_url
    if not url:
        return _memory_log
    logs = _redis_logs.setdefault(asyncio.get_running_loop(), {})
    log = logs.get(url)
    if log is None:
        log = logs[url] = RedisLog(url)
    return log


async def close_logs() -> None:
    """Close the running loop's connections. For orderly shutdown and tests."""
    for log in _redis_logs.pop(asyncio.get_running_loop(), {}).values():
        await log.aclose()
