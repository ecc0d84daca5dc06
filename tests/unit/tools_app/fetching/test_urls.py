"""URLs that are refused whatever the list says, and the rules of the list."""

import pytest
from yarl import URL

from tools_app.errors import ToolDeclarationInvalid
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.urls import check_allowed, checked_url, parse_rules


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "https:/example.com",
        "https:example.com",
        "https:///path",
        "https://",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://example.com@evil.com/",
        "https://@example.com/",
        "https://example.com\\@evil.com/",
        "https:\\\\example.com/",
        "https://example.com/a b",
        "https://example.com/\n",
        "https://exam\tple.com/",
        "https://example.com/\x00",
        "https://example.com/\x7f",
        "https://example.com/\u202e",
        "https://example.com/\ud800",
        " https://example.com/",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:x/",
        "https://127.1/",
        "https://0x7f.0.0.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://017700000001/",
        "https://127.0.0.01/",
        "https://127.0.0.1./",
        "https://example.com./",
        "https://example..com/",
        "https://.example.com/",
        "https://-example.com/",
        "https://exa%6dple.com/",
        "https://example.com%00.evil.com/",
        "https://[fe80::1%25eth0]/",
        "https://[::1",
        "https://" + "a" * 64 + ".com/",
        "https://" + "a." * 130 + "com/",
        "https://example.com/" + "a" * 5_000,
    ],
)
def test_odd_urls_are_refused(text: str) -> None:
    with pytest.raises(FetchFailed) as caught:
        checked_url(text)
    assert caught.value.reason == "disallowed_url"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("https://Example.COM/a?b=c#d", "example.com", 443),
        ("http://example.com:8080", "example.com", 8080),
        ("https://93.184.216.34/", "93.184.216.34", 443),
        ("https://[2606:4700::1111]:444/", "2606:4700::1111", 444),
        ("https://a_b.example.com/", "a_b.example.com", 443),
        ("https://b\u00fccher.example/", "xn--bcher-kva.example", 443),
        ("https://\u2460\u2461.com/", "12.com", 443),
        ("HTTPS://example.com/\u00e9", "example.com", 443),
    ],
)
def test_usual_urls_are_parsed(text: str, host: str, port: int) -> None:
    url = checked_url(text)
    assert (url.raw_host, url.port, url.raw_fragment) == (host, port, "")


def test_wide_digits_are_what_they_are_read_as() -> None:
    assert checked_url("https://\uff11\uff12\uff17.0.0.1/").raw_host == "127.0.0.1"


@pytest.mark.parametrize(
    ("rule", "allowed", "refused"),
    [
        (
            "example.com",
            ["https://example.com/", "https://example.com:443/x?y"],
            [
                "http://example.com/",
                "https://example.com:444/",
                "https://www.example.com/",
                "https://evil-example.com/",
                "https://example.com.evil.com/",
            ],
        ),
        (
            "*.example.com",
            ["https://a.example.com/", "https://a.b.example.com/"],
            ["https://example.com/", "https://evilexample.com/", "https://a.example.com.evil.com/"],
        ),
        ("*", ["https://anything.test/"], ["http://anything.test/"]),
        ("http://*:8080", ["http://anything.test:8080/"], ["http://anything.test/"]),
        ("http://intranet", ["http://intranet/"], ["https://intranet/", "http://intranet:81/"]),
        ("http://10.0.0.1:81", ["http://10.0.0.1:81/"], ["http://10.0.0.1/"]),
        ("[2606:4700::1111]", ["https://[2606:4700:0::1111]/"], ["https://[2606:4700::1112]/"]),
        ("b\u00fccher.example", ["https://xn--bcher-kva.example/", "https://B\u00dcCHER.example/"], []),
        (
            "example.com/docs",
            ["https://example.com/docs", "https://example.com/docs/a", "https://example.com/docs?x=/../"],
            [
                "https://example.com/docsx",
                "https://example.com/",
                "https://example.com/docs/../admin",
                "https://example.com/docs/%2e%2e/admin",
                "https://example.com/docs/%252e%252e/admin",
                "https://example.com/docs/%2e%2e%2fadmin",
                "https://example.com/docs/..%5cadmin",
            ],
        ),
        (
            "https://example.com/v1/*/text/**",
            ["https://example.com/v1/a/text/b/c"],
            ["https://example.com/v1/a/b/text/c", "https://example.com/v1/a/text"],
        ),
        ("https://example.com/**", ["https://example.com/a/b"], ["https://example.org/a"]),
        ("https://example.com/", ["https://example.com", "https://example.com/x"], []),
    ],
)
def test_rules(rule: str, allowed: list[str], refused: list[str]) -> None:
    rules = parse_rules([rule])
    for text in allowed:
        check_allowed(checked_url(text), rules)
    for text in refused:
        with pytest.raises(FetchFailed):
            check_allowed(checked_url(text), rules)


@pytest.mark.parametrize(
    "allow",
    [
        [],
        "example.com",
        [""],
        ["https://"],
        ["ftp://example.com"],
        ["*example.com"],
        ["a.*.com"],
        ["*.*"],
        ["user@example.com"],
        ["example.com:0"],
        ["example.com:99999"],
        ["0x7f.1"],
        ["*.[::1]"],
        ["exa mple.com"],
        ["example.com/" + "{a,b}" * 20],
    ],
)
def test_lists_that_are_none_fail_at_once(allow: list[str]) -> None:
    with pytest.raises(ToolDeclarationInvalid):
        parse_rules(allow)


def test_the_parsed_url_is_what_is_asked_for() -> None:
    """The check and the client use the same value, so no two parsers can read it differently."""
    assert isinstance(checked_url("https://example.com/"), URL)
