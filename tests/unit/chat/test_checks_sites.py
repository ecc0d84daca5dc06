"""System checks of access."""

from typing import Any

import pytest

from chat.checks import (
    check_files,
    check_numbers,
    check_origins,
    check_removed_settings,
    check_shared_cache,
    check_sign_in,
)
from chat.durable_streams.conf import durable_stream_settings


def ids(found: list[Any]) -> list[str]:
    return [message.id for message in found]


@pytest.mark.parametrize("entry", ["*", "app.example.com", "https://app.example.com/", "null", "ftp://x"])
def test_what_is_no_origin_is_an_error(settings: Any, entry: str) -> None:
    settings.THINK_ALLOWED_ORIGINS = ["http://localhost:5173", entry]
    assert ids(check_origins()) == ["chat.E101"]


def test_an_origin_without_tls_is_reported_in_production(settings: Any) -> None:
    settings.THINK_ALLOWED_ORIGINS = ["http://app.example.com", "http://localhost:5173", "https://ok.example.com"]
    settings.IS_PRODUCTION = False
    assert check_origins() == []
    settings.IS_PRODUCTION = True
    assert ids(check_origins()) == ["chat.W101"]


@pytest.mark.parametrize("value", [-1, "many", 1.5, None, True])
def test_a_limit_that_is_no_number_is_an_error(settings: Any, value: object) -> None:
    assert check_numbers() == []
    settings.THINK_EXTENSIONS_PER_USER = settings.THINK_WORKSPACE_QUOTA_BYTES = value
    assert ids(check_numbers()) == ["chat.E104", "chat.E104"]


@pytest.mark.parametrize(("value", "count"), [(1, 0), (1.5, 0), (-0.5, 1), ("1", 1), (True, 1)])
def test_a_time_may_be_part_of_a_second(settings: Any, value: object, count: int) -> None:
    settings.THINK_FIBER_SWEEP_SECONDS = value
    assert len(check_numbers()) == count


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"streams": 5_000, "sse_seconds": 1.5}, ""),
        ({"stream": 5_000}, "has no 'stream'. It has streams, bytes,"),
        ({"streams": 0}, "has 0 for 'streams'; expected a whole number above 0."),
        ({"readers": True}, "has True for 'readers'"),
        (5_000, "must be an object with some of streams, bytes,"),
        ({"append_bytes": 32 * 1024 * 1024}, "no request may have more than 16777216 bytes"),
        ({"bytes": 1_000_000}, "no room for more than 1000000 bytes"),
    ],
)
def test_limits_of_durable_streams_that_cannot_be_kept_are_errors(settings: Any, value: object, said: str) -> None:
    settings.THINK_DURABLE_STREAMS = value
    found = check_numbers()
    assert [(each.id, each.msg.startswith("THINK_DURABLE_STREAMS "), said in each.msg) for each in found] == (
        [("chat.E104", True, True)] if said else []
    )


def test_appends_of_a_site_that_takes_small_requests_are_as_small(settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2_621_440  # Django's default, in a project of a developer's own
    assert check_numbers() == []
    assert durable_stream_settings.append_bytes == 2_621_440
    settings.THINK_DURABLE_STREAMS = {"append_bytes": 3_000_000}
    assert [each.id for each in check_numbers()] == ["chat.E104"]


def test_a_removed_setting_is_an_error(settings: Any) -> None:
    assert check_removed_settings() == []
    settings.THINK_SANDBOX_RUNS = 4
    assert [(each.id, "THINK_SANDBOX=" in each.msg) for each in check_removed_settings()] == [("chat.E103", True)]


def test_missing_middleware_is_an_error(settings: Any) -> None:
    assert check_sign_in() == []
    settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if "Csrf" not in name]
    assert ids(check_sign_in()) == ["chat.E102"]


def test_sessions_in_cookies_are_reported(settings: Any) -> None:
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    assert ids(check_sign_in()) == ["chat.W102"]


def test_files_below_the_static_folder_are_reported(settings: Any, tmp_path: Any) -> None:
    assert check_files() == []
    settings.STATIC_ROOT = str(tmp_path)
    backend = "django.core.files.storage.FileSystemStorage"
    options = {"location": str(tmp_path / "files")}
    settings.STORAGES = {**settings.STORAGES, "think": {"BACKEND": backend, "OPTIONS": options}}
    assert ids(check_files()) == ["chat.W103"]


def test_a_cache_of_one_process_is_reported_where_there_are_several(settings: Any) -> None:
    assert check_shared_cache() == []
    for backend in ("locmem.LocMemCache", "dummy.DummyCache"):
        settings.CACHES = {"default": {"BACKEND": f"django.core.cache.backends.{backend}"}}
        assert ids(check_shared_cache()) == ["chat.W105"]
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
    assert check_shared_cache() == []
