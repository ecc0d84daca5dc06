"""One cache object for all contexts, where the backend allows it."""

import contextvars
import threading
from typing import Any

import pytest
from django.core.cache import cache

from thinkproject.kernel.cache import shared_cache

REDIS = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": "redis://127.0.0.1:1"}
LOCAL = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "test-cache"}
FILES = {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": "/nowhere"}


def of_all_contexts() -> set[int]:
    """Identities of what contexts and threads are given."""
    found = [shared_cache(), contextvars.Context().run(shared_cache)]
    thread = threading.Thread(target=lambda: found.append(shared_cache()))
    thread.start()
    thread.join()
    return {id(each) for each in found}


@pytest.mark.parametrize("configuration", [REDIS, LOCAL], ids=["redis", "memory"])
def test_contexts_and_threads_share_it(settings: Any, configuration: dict[str, str]) -> None:
    settings.CACHES = {"default": configuration}
    assert len(of_all_contexts()) == 1


def test_it_is_the_default_cache(settings: Any) -> None:
    settings.CACHES = {"default": LOCAL}
    shared_cache().set("told", "yes")
    assert cache.get("told") == "yes"
    settings.CACHES = {"default": {**LOCAL, "LOCATION": "another"}}
    assert shared_cache().get("told") is None


def test_other_backends_are_left_to_django(settings: Any) -> None:
    settings.CACHES = {"default": FILES}
    assert shared_cache() is cache
