"""Searching the web by services on this machine that answer as those of the providers' documentation do."""

import asyncio
import email.utils
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from tests.search_service import Service, serving
from tools_app.core.origins import Origin
from tools_app.core.tool import Tool, ToolContext
from tools_app.errors import ToolDeclarationInvalid, ToolError
from tools_app.fetching.values import FetchLimits
from tools_app.web_search.providers import Brave, SearchProvider, SearXNG, Tavily
from tools_app.web_search.tools import create_search_tools

KEY = "secret-key-123"
LOOPBACK = ("127.0.0.0/8",)

SEARXNG = {
    # https://docs.searxng.org/dev/search_api, and the fields that its JSON has beside these
    "query": "graz",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://a.test/1",
            "title": "First &amp; best",
            "content": "About\n Graz.",
            "publishedDate": "2026-11-01T00:00:00",
        },
        {"url": "https://b.test/", "title": "Second", "content": None, "publishedDate": None, "engine": "x"},
    ],
    "unresponsive_engines": [["other", "timeout"]],
}
BRAVE = {
    # https://api-dashboard.search.brave.com/app/documentation/web-search/responses
    "type": "search",
    "query": {"original": "graz"},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "First &amp; best",
                "url": "https://a.test/1",
                "description": "About <strong>Graz</strong>.",
                "page_age": "2026-11-01T00:00:00",
            },
            {"title": "Second", "url": "https://b.test/", "description": ""},
        ],
    },
}
TAVILY = {
    # https://docs.tavily.com/documentation/api-reference/endpoint/search
    "query": "graz",
    "answer": None,
    "images": [],
    "results": [
        {
            "title": "First & best",
            "url": "https://a.test/1",
            "content": "About Graz.",
            "score": 0.8,
            "published_date": "2026-11-01T00:00:00",
        },
        {"title": "Second", "url": "https://b.test/", "content": "", "score": 0.2, "raw_content": None},
    ],
    "response_time": 1.2,
}
FOUND = [
    {
        "number": 1,
        "title": "First & best",
        "url": "https://a.test/1",
        "text": "About Graz.",
        "published": "2026-11-01T00:00:00",
    },
    {"number": 2, "title": "Second", "url": "https://b.test/", "text": ""},
]


@pytest.fixture
async def search_service() -> AsyncIterator[Service]:
    async with serving() as made:
        yield made


MADE: dict[str, tuple[Callable[[str], SearchProvider], Any]] = {
    "searxng": (lambda url: SearXNG(url, headers={"X-Proxy-Token": KEY}), SEARXNG),
    "brave": (lambda url: Brave(KEY, base_url=url), BRAVE),
    "tavily": (lambda url: Tavily(KEY, base_url=url), TAVILY),
}
EACH = pytest.mark.parametrize("kind", sorted(MADE))


def search_tool(kind: str, search_service: Service, **options: Any) -> Tool:
    options.setdefault("allow_private", LOOPBACK)
    [tool] = create_search_tools(MADE[kind][0](search_service.url), **options)
    return tool


@dataclass
class Caller:
    """A turn that calls the tool, with what it notes and attaches."""

    attempt: int = 1
    most: int = 32
    parts: list[Any] = field(default_factory=list)
    origins: list[tuple[Origin, str]] = field(default_factory=list)

    def attach(self, part: Any) -> None:
        if len(self.parts) >= self.most:
            raise ToolError("At most 32 parts can be attached to one reply.")
        self.parts.append(part)

    async def search(self, tool: Tool, **given: Any) -> Any:
        arguments = tool.parse({"query": "graz", **given})
        arguments["context"] = ToolContext(
            call_id="call-1",
            tool_name=tool.name,
            user_id=None,
            agent="a",
            instance_name="i",
            turn_id="t",
            attempt=self.attempt,
            idempotency_key="key",
            attach=self.attach,
            noter=lambda origin, source: self.origins.append((origin, source)),
        )
        value = await tool(**arguments)
        assert KEY not in json.dumps(value)  # the model reads this
        return value


@EACH
async def test_results_are_numbered_sources_of_strangers(kind: str, search_service: Service) -> None:
    search_service.gives(MADE[kind][1])
    caller, tool = Caller(), search_tool(kind, search_service)
    assert await caller.search(tool) == {"ok": True, "results": FOUND}
    assert [(part["type"], part["sourceId"], part["url"]) for part in caller.parts] == [
        ("source-url", "1", "https://a.test/1"),
        ("source-url", "2", "https://b.test/"),
    ]
    assert caller.origins == [(Origin.WEB, MADE[kind][0](search_service.url).name)]
    assert (tool.origin, tool.read_only, tool.open_world) == (Origin.WEB, True, True)
    assert KEY not in repr(MADE[kind][0](search_service.url)) + str(tool.description) + json.dumps(tool.input_schema)


async def test_each_service_is_asked_as_it_wants(search_service: Service) -> None:
    for kind in sorted(MADE):
        search_service.gives(MADE[kind][1])
        await Caller().search(search_tool(kind, search_service), query="Graz & Linz", count=20)
    (brave, _), (searxng, _), (tavily, body) = search_service.requests
    assert (brave.method, brave.path) == ("GET", "/res/v1/web/search")
    assert dict(brave.query) == {"q": "Graz & Linz", "count": "20", "text_decorations": "false"}
    assert (brave.headers["X-Subscription-Token"], brave.headers["Accept"]) == (KEY, "application/json")
    assert (searxng.method, searxng.path) == ("GET", "/search")
    assert dict(searxng.query) == {"q": "Graz & Linz", "format": "json"}
    assert (tavily.method, tavily.path, tavily.headers["Authorization"]) == ("POST", "/search", f"Bearer {KEY}")
    assert json.loads(body) == {"query": "Graz & Linz", "max_results": 20, "search_depth": "basic"}


@EACH
async def test_numbers_go_on_in_a_turn_and_an_address_keeps_its_own(kind: str, search_service: Service) -> None:
    search_service.gives(MADE[kind][1])
    tool = search_tool(kind, search_service)
    caller = Caller(most=3)
    first, second = await caller.search(tool, count=1), await caller.search(tool)
    assert [each["number"] for each in first["results"]] == [1]
    assert [each["number"] for each in second["results"]] == [1, 2]
    assert len(caller.parts) == 3  # a reply that takes no more parts is no error
    lost = await Caller(attempt=2).search(search_tool(kind, search_service))
    assert [each["number"] for each in lost["results"]] == [101, 102]  # no number of the attempt before


@EACH
@pytest.mark.parametrize(
    ("status", "headers", "code", "words"),
    [
        (429, {"Retry-After": "17"}, "rate_limited", "17 seconds"),
        (429, {"Retry-After": "999999999999"}, "rate_limited", "86400 seconds"),
        (429, {"Retry-After": "soon"}, "rate_limited", "later"),
        (429, {"X-RateLimit-Reset": "1, 1419704"}, "rate_limited", "1 seconds"),
        (429, {}, "rate_limited", "later"),
        (401, {}, "refused", "key"),
        (500, {}, "unavailable", "status 500"),
        (503, {}, "unavailable", "later"),
        (302, {"Location": "https://elsewhere.test/"}, "unavailable", "redirects"),
        (400, {}, "refused", "query"),
    ],
)
async def test_errors_are_in_words(
    kind: str, search_service: Service, status: int, headers: Mapping[str, str], code: str, words: str
) -> None:
    search_service.gives(f"<html>the key {KEY} was bad</html>", status=status, headers=headers)
    caller = Caller()
    value = await caller.search(search_tool(kind, search_service))
    assert (value["ok"], value["code"]) == (False, code)
    assert words in value["message"]
    assert caller.parts == []
    assert len(search_service.requests) == 1  # a redirect would take the key along


async def test_a_date_to_wait_for_is_in_seconds(search_service: Service) -> None:
    later = email.utils.formatdate(time.time() + 60, usegmt=True)
    search_service.gives("", status=429, headers={"Retry-After": later})
    value = await Caller().search(search_tool("brave", search_service))
    assert 50 <= value["retryAfterSeconds"] <= 61


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [("searxng", 403, "search.formats"), ("tavily", 432, "used up"), ("tavily", 433, "used up"), ("brave", 422, "50")],
)
async def test_a_status_of_its_own_has_its_own_words(
    kind: str, status: int, words: str, search_service: Service
) -> None:
    search_service.gives({"detail": {"error": "as it says"}}, status=status)
    value = await Caller().search(search_tool(kind, search_service))
    assert (value["code"], words in value["message"]) == ("refused", True), value


@EACH
@pytest.mark.parametrize("body", ["<!doctype html><p>Checking your browser", b"\xff\xfe\x00", "", "[1]", "[" * 50_000])
async def test_what_is_no_json_object_is_an_error(kind: str, body: Any, search_service: Service) -> None:
    search_service.gives(body)
    value = await Caller().search(search_tool(kind, search_service))
    assert (value["ok"], value["code"]) == (False, "no_results")


@EACH
@pytest.mark.parametrize("answer", [{}, {"results": [], "web": {"results": []}}, {"results": {}, "web": 7}])
async def test_nothing_found_is_said(kind: str, answer: Any, search_service: Service) -> None:
    search_service.gives(answer)
    assert await Caller().search(search_tool(kind, search_service)) == {
        "ok": True,
        "results": [],
        "message": "Nothing was found.",
    }


@pytest.mark.parametrize("silent", [[["google", "CAPTCHA"], ["bing", "timeout"]], ["google", "bing"]])
async def test_engines_that_do_not_answer_are_no_search_without_results(silent: Any, search_service: Service) -> None:
    search_service.gives({"results": [], "unresponsive_engines": silent})
    value = await Caller().search(search_tool("searxng", search_service))
    assert (value["ok"], value["code"]) == (False, "unavailable")
    assert "google, bing" in value["message"]


@EACH
async def test_odd_entries_are_left_out_and_long_ones_cut(kind: str, search_service: Service) -> None:
    text = {"content": "<b>x</b>" + "y" * 50_000, "description": "<b>x</b>" + "y" * 50_000}
    odd: list[Any] = [
        *(7, None, [], {}, {"url": 7}, {"url": "javascript:alert(1)", "title": "t"}),
        {"url": "https://x.test/" + "a" * 5_000, "title": "t"},
        {"url": "https://x.test/a b", "title": "t"},
        {"url": "https://ok.test/", "title": ["no text"], **text},
        {"url": "https://ok.test/", "title": "the same again", **text},
    ]
    search_service.gives({"results": odd, "web": {"results": odd}})
    [result] = (await Caller().search(search_tool(kind, search_service)))["results"]
    assert (result["url"], result["title"]) == ("https://ok.test/", "https://ok.test/")
    assert len(result["text"]) == 600
    assert result["text"].startswith("xyyy")
    assert result["text"].endswith("…")


@EACH
async def test_an_answer_of_ten_megabytes_is_too_large(kind: str, search_service: Service) -> None:
    search_service.gives({"results": [{"url": "https://a.test/", "content": "z" * 10_000_000}]})
    value = await Caller().search(search_tool(kind, search_service))
    assert (value["ok"], value["code"]) == (False, "too_large")


@EACH
async def test_a_silent_service_is_given_up_in_time(kind: str, search_service: Service) -> None:
    async def never(_request: web.BaseRequest) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    search_service.answer = never
    value = await Caller().search(search_tool(kind, search_service, limits=FetchLimits(seconds=0.3)))
    assert (value["code"], "within 0.3 s" in value["message"]) == ("unavailable", True), value


@EACH
async def test_a_private_address_has_to_be_allowed(kind: str, search_service: Service) -> None:
    search_service.gives(MADE[kind][1])
    value = await Caller().search(search_tool(kind, search_service, allow_private=()))
    assert value["ok"] is False
    assert search_service.requests == []


@pytest.mark.parametrize("make", [Brave, Tavily])
@pytest.mark.parametrize("key", ["", "  ", "a\nb", "schlüssel"])
def test_a_key_that_is_none_is_refused_where_it_is_declared(make: Callable[[str], SearchProvider], key: str) -> None:
    with pytest.raises(ToolDeclarationInvalid, match="environment variable"):
        make(key)


@pytest.mark.parametrize("url", ["", "searx.test", "ftp://searx.test", "http://user:pw@searx.test", "http://"])
def test_an_address_that_is_none_is_refused_where_it_is_declared(url: str) -> None:
    with pytest.raises(ToolDeclarationInvalid, match="search service"):
        create_search_tools(SearXNG(url))
