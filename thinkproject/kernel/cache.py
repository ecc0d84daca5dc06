"""Django's default cache, one object for all of a process.

Django makes a cache object for each context: under ASGI one for each request, each socket and each call through the
bridge. With Redis each has a pool of its own and connects anew. The objects of Redis and of a process's memory may be
used by all threads, so they are shared; those of other backends are Django's.
"""

from functools import lru_cache

from django.conf import settings
from django.core.cache import cache, caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.locmem import LocMemCache
from django.core.cache.backends.redis import RedisCache


def shared_cache() -> BaseCache:
    """The default cache. Errors of its methods are those of the backend."""
    return _made_of(repr(settings.CACHES["default"])) or cache


@lru_cache(maxsize=4)
def _made_of(_configuration: str) -> BaseCache | None:
    """A cache for these settings, where threads may share it."""
    made: BaseCache = caches.create_connection("default")
    return made if isinstance(made, RedisCache | LocMemCache) else None
