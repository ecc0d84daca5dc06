"""The Origin rule: scheme, host and port are ours or listed, and nothing looks like them."""

import pytest

from chat.access.origins import is_allowed, own_origin, parse_origin

HERE = own_origin("wss", "chat.example.com")


@pytest.mark.parametrize(
    "origin", ["https://chat.example.com", "https://chat.example.com:443", "https://CHAT.example.com"]
)
def test_our_own_page_may(origin: str) -> None:
    assert is_allowed(origin, own=HERE, listed=())


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "http://chat.example.com",
        "https://chat.example.com:8443",
        "https://evil-chat.example.com",
        "https://chat.example.com.evil.example",
        "https://chat.example.com@evil.example",
        "https://evil.example#https://chat.example.com",
        "https://evil.example/https://chat.example.com",
        "https://example.com",
        "https://localhost",
        "http://127.0.0.1",
        "file://",
        "chrome-extension://abcdef",
        "https://chat.example.com/",
        "https://chat.example.com, https://evil.example",
        " https://chat.example.com",
        "https://chat.example.com\\@evil.example",
        "https://[::1",
        "https://chat.example.com:99999",
        "*",
    ],
)
def test_any_other_page_may_not(origin: str | None) -> None:
    assert not is_allowed(origin, own=HERE, listed=())


def test_a_listed_page_may_and_only_exactly_it() -> None:
    listed = ["http://localhost:5173"]
    assert is_allowed("http://localhost:5173", own=HERE, listed=listed)
    assert not is_allowed("http://localhost:5174", own=HERE, listed=listed)
    assert not is_allowed("https://localhost:5173", own=HERE, listed=listed)


def test_a_star_lists_none() -> None:
    assert not is_allowed("https://evil.example", own=HERE, listed=["*"])


def test_ports_of_one_host_are_different_origins() -> None:
    own = own_origin("ws", "127.0.0.1:8000")
    assert is_allowed("http://127.0.0.1:8000", own=own, listed=())
    assert not is_allowed("http://127.0.0.1:9000", own=own, listed=())
    assert not is_allowed("http://127.0.0.1", own=own, listed=())


def test_an_unknown_own_origin_allows_none() -> None:
    assert own_origin("ws", "a b") is None
    assert not is_allowed("https://chat.example.com", own=None, listed=())


def test_ipv6_hosts_compare() -> None:
    assert parse_origin("http://[::1]:8000") == own_origin("ws", "[::1]:8000")
