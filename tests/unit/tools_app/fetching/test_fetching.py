"""Fetching from real servers on this machine, which are allowed explicitly."""

import asyncio
import contextlib
import gzip
import ipaddress
import json
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.unit.tools_app.core.files.calling import call
from tools_app.core.tool import Tool
from tools_app.errors import ToolDeclarationInvalid
from tools_app.fetching.connecting import PinnedConnector
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import resolve
from tools_app.fetching.tools import create_fetch_tools
from tools_app.fetching.values import FetchLimits
from tools_app.workspace.stores.memory import MemoryWorkspace

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
LOOPBACK = ("127.0.0.0/8",)


class Server:
    """A server with answers by path. `requests`: what it was asked for."""

    def __init__(self) -> None:
        self.answers: dict[str, Handler] = {}
        self.requests: list[web.BaseRequest] = []
        self.port = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        return await self.answers[request.path](request)


def reply(**options: Any) -> Handler:
    """An answer that is always the same."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(**options)

    return answer


@pytest.fixture
async def web_server() -> AsyncIterator[Server]:
    made = Server()
    runner = web.ServerRunner(web.Server(made.answer), shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


def fetch_tool(server: Server, *, host: str = "127.0.0.1", **options: Any) -> Tool:
    options.setdefault("allow_private", LOOPBACK)
    [tool] = create_fetch_tools([f"http://{host}:{server.port}"], **options)
    return tool


# what comes back


async def test_text_comes_as_it_is(web_server: Server) -> None:
    web_server.answers["/a"] = reply(body="caf\xe9".encode("latin-1"), content_type="text/plain", charset="latin-1")
    assert await call(fetch_tool(web_server), url=web_server.url("/a?b=c#d")) == {
        "ok": True,
        "status": 200,
        "finalUrl": web_server.url("/a?b=c"),
        "contentType": "text/plain",
        "bytes": 4,
        "truncated": False,
        "response": "text",
        "body": "caf\xe9",
    }
    [request] = web_server.requests
    assert request.method == "GET"
    assert request.headers["Accept"].startswith("text/markdown")
    assert request.headers["Host"] == f"127.0.0.1:{web_server.port}"
    assert "Cookie" not in request.headers


async def test_pages_come_as_markdown(web_server: Server) -> None:
    page = (
        "<html><head><title>T</title><style>p{}</style></head><body><h1>Head</h1><p>Some <b>bold</b> "
        "<a href='/x'>link</a><script>alert(1)</script><span style='display:none'>hidden words</span>"
        "<img src='data:image/png;base64,AAAA'></p>"
        "<table><tr><th>a</th></tr><tr><td>1</td></tr></table></body></html>"
    )
    web_server.answers["/"] = reply(text=page, content_type="text/html")
    body = (await call(fetch_tool(web_server), url=web_server.url("/")))["body"]
    assert "# Head" in body
    assert "Some **bold** [link](/x)" in body
    assert "| 1 |" in body
    assert not [word for word in ("alert", "p{}", "hidden", "base64", "<") if word in body]
    source = await call(fetch_tool(web_server), url=web_server.url("/"), response="text")
    assert source["body"] == page


async def test_a_page_may_name_its_charset_itself(web_server: Server) -> None:
    page = "<meta charset=windows-1251><p>\u043f\u0440\u0438\u0432\u0435\u0442".encode("windows-1251")
    web_server.answers["/"] = reply(body=page, headers={"Content-Type": "text/html"})
    assert (await call(fetch_tool(web_server), url=web_server.url("/")))[
        "body"
    ] == "\u043f\u0440\u0438\u0432\u0435\u0442"


@pytest.mark.parametrize("charset", ["punycode", "rot13", "zip", "no-such", "unicode_escape", "../x"])
async def test_charsets_that_are_none_are_read_as_utf8(web_server: Server, charset: str) -> None:
    headers = {"Content-Type": f'text/plain; charset="{charset}"'}
    web_server.answers["/"] = reply(body="\xe9\\n".encode(), headers=headers)
    assert (await call(fetch_tool(web_server), url=web_server.url("/")))["body"] == "\xe9\\n"


async def test_json_comes_as_a_value(web_server: Server) -> None:
    web_server.answers["/a"] = reply(text='{"a": [1, null]}', content_type="application/json")
    web_server.answers["/bad"] = reply(text="{oops", content_type="application/json")
    web_server.answers["/deep"] = reply(text="[" * 20_000 + "]" * 20_000, content_type="application/json")
    tool = fetch_tool(web_server)
    found = await call(tool, url=web_server.url("/a"))
    assert (found["response"], found["json"]) == ("json", {"a": [1, None]})
    assert (await call(tool, url=web_server.url("/bad")))["body"] == "{oops"
    for path in ("/bad", "/deep"):
        assert (await call(tool, url=web_server.url(path), response="json"))["code"] == "invalid_json"


async def test_long_texts_are_cut_and_kept_in_the_workspace(web_server: Server) -> None:
    web_server.answers["/docs/long.html"] = reply(text="<p>" + "word " * 6_000 + "end", content_type="text/html")
    workspace = MemoryWorkspace()
    url = web_server.url("/docs/long.html")
    cut = await call(fetch_tool(web_server), url=url)
    assert (cut["truncated"], cut["body"][:4], cut["body"][-4:], "path" in cut) == (True, "word", " end", False)
    assert len(cut["body"]) <= 24_000
    kept = await call(fetch_tool(web_server, workspace=workspace), url=url)
    assert kept["body"] == cut["body"]
    assert kept["path"].startswith("/fetched/127.0.0.1/long.html-")
    assert kept["path"].endswith(".md")
    whole = await workspace.read_file(kept["path"])
    assert whole is not None
    assert whole.endswith("word end")
    again = await call(fetch_tool(web_server, workspace=workspace), url=url)
    assert again["path"] == kept["path"]


async def test_long_json_is_kept_as_it_is(web_server: Server) -> None:
    web_server.answers["/a"] = reply(text=json.dumps(["x" * 30_000]), content_type="application/json")
    workspace = MemoryWorkspace()
    found = await call(fetch_tool(web_server, workspace=workspace), url=web_server.url("/a"))
    assert (found["response"], found["truncated"]) == ("text", True)
    assert json.loads(await workspace.read_file(found["path"]) or "") == ["x" * 30_000]


async def test_other_types_need_a_workspace(web_server: Server) -> None:
    web_server.answers["/pic.png"] = reply(body=b"\x89PNG", content_type="image/png")
    assert (await call(fetch_tool(web_server), url=web_server.url("/pic.png")))["code"] == "unsupported_content_type"
    workspace = MemoryWorkspace()
    found = await call(fetch_tool(web_server, workspace=workspace), url=web_server.url("/pic.png"))
    assert (found["response"], found["contentType"]) == ("workspace", "image/png")
    assert await workspace.read_bytes(found["path"]) == b"\x89PNG"
    assert "body" not in found


async def test_a_body_may_be_wanted_as_a_file(web_server: Server) -> None:
    web_server.answers["/"] = reply(text="short")
    workspace = MemoryWorkspace()
    found = await call(fetch_tool(web_server, workspace=workspace), url=web_server.url("/"), response="workspace")
    assert await workspace.read_file(found["path"]) == "short"
    without = await call(fetch_tool(web_server), url=web_server.url("/"), response="workspace")
    assert (without["ok"], without["code"]) == (False, "request_failed")


async def test_a_status_that_is_no_success_is_an_error(web_server: Server) -> None:
    web_server.answers["/"] = reply(status=404, text="secret words")
    failed = await call(fetch_tool(web_server), url=web_server.url("/"))
    assert (failed["ok"], failed["code"], failed["status"]) == (False, "non_2xx", 404)
    assert "secret" not in str(failed)


# limits


async def test_bodies_that_are_too_large_are_refused(web_server: Server) -> None:
    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65_536)
        return response

    web_server.answers["/endless"] = endless
    web_server.answers["/exact"] = reply(body=b"x" * 1_000_000, content_type="text/plain")
    web_server.answers["/more"] = reply(body=b"x" * 1_000_001, content_type="text/plain")
    tool = fetch_tool(web_server)
    assert (await call(tool, url=web_server.url("/exact")))["bytes"] == 1_000_000
    for path in ("/endless", "/more"):
        assert (await call(tool, url=web_server.url(path)))["code"] == "too_large"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw"])
async def test_compressed_bodies_are_decompressed(web_server: Server, encoding: str) -> None:
    raw = zlib.compressobj(wbits=-15)
    body = {
        "gzip": gzip.compress(b"plain", mtime=0),
        "deflate": zlib.compress(b"plain"),
        "raw": raw.compress(b"plain") + raw.flush(),
    }[encoding]
    web_server.answers["/"] = reply(
        body=body, headers={"Content-Encoding": encoding.replace("raw", "deflate"), "Content-Type": "text/plain"}
    )
    assert (await call(fetch_tool(web_server), url=web_server.url("/")))["body"] == "plain"


@pytest.mark.parametrize(
    ("body", "encoding", "code"),
    [
        (gzip.compress(b"\x00" * 50_000_000), "gzip", "too_large"),
        (zlib.compress(b"\x00" * 50_000_000), "deflate", "too_large"),
        (gzip.compress(b"plain", mtime=0)[:-9], "gzip", "request_failed"),
        (b"no gzip", "gzip", "request_failed"),
        (b"whatever", "br", "request_failed"),
        (gzip.compress(gzip.compress(b"x")), "gzip, gzip", "request_failed"),
    ],
    ids=["gzip bomb", "deflate bomb", "cut", "no gzip", "unknown", "twice"],  # a compressed body has the time in it
)
async def test_bombs_and_damaged_bodies_are_refused(web_server: Server, body: bytes, encoding: str, code: str) -> None:
    web_server.answers["/"] = reply(body=body, headers={"Content-Encoding": encoding, "Content-Type": "text/plain"})
    assert (await call(fetch_tool(web_server), url=web_server.url("/")))["code"] == code


@pytest.mark.parametrize("when", ["before the head", "within the body", "between redirects"])
async def test_a_slow_server_is_given_up(web_server: Server, when: str) -> None:
    given_up = asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        if when == "within the body":
            await response.prepare(request)
            await response.write(b"some")
        await given_up.wait()
        return response

    web_server.answers["/"] = slow if when != "between redirects" else reply(status=302, headers={"Location": "/b"})
    web_server.answers["/b"] = slow
    try:
        failed = await call(fetch_tool(web_server, limits=FetchLimits(seconds=0.3)), url=web_server.url("/"))
    finally:
        given_up.set()
    assert failed["code"] == "timeout"


@pytest.mark.parametrize("answer", [b"", b"no HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort"])
async def test_what_is_no_answer_is_an_error(answer: bytes) -> None:
    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    listening = await asyncio.start_server(reply, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with listening:
        [tool] = create_fetch_tools([f"http://127.0.0.1:{port}"], allow_private=LOOPBACK)
        assert (await call(tool, url=f"http://127.0.0.1:{port}/"))["code"] == "request_failed"


# where it may go


async def test_private_addresses_are_refused_without_a_connection(web_server: Server) -> None:
    tool = fetch_tool(web_server, allow_private=())
    failed = await call(tool, url=web_server.url("/"))
    assert failed["code"] == "disallowed_url"
    assert web_server.requests == []


async def test_names_that_lead_to_private_addresses_are_refused(web_server: Server) -> None:
    async def resolver(host: str) -> list[str]:
        return {"one.test": ["127.0.0.1"], "mixed.test": ["93.184.216.34", "::ffff:127.0.0.1"]}[host]

    for host in ("one.test", "mixed.test"):
        tool = fetch_tool(web_server, host=host, resolver=resolver, allow_private=())
        assert (await call(tool, url=web_server.url("/", host)))["code"] == "disallowed_url"
    assert web_server.requests == []


@pytest.mark.parametrize("answer", [[], ["no address"], OSError("unknown")])
async def test_names_that_are_not_known_are_refused(web_server: Server, answer: Any) -> None:
    async def resolver(host: str) -> list[str]:
        if isinstance(answer, OSError):
            raise answer
        return list(answer)

    failed = await call(fetch_tool(web_server, host="a.test", resolver=resolver), url=web_server.url("/", "a.test"))
    assert failed["code"] in {"request_failed", "disallowed_url"}


class Rebinding:
    """A resolver that answers differently each time."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str) -> list[str]:
        self.asked += 1
        return [self.answers[min(self.asked, len(self.answers)) - 1]]


async def test_a_name_is_resolved_once_and_the_connection_goes_where_was_checked(web_server: Server) -> None:
    web_server.answers["/"] = reply(text="it")
    resolver = Rebinding("127.0.0.1", "169.254.169.254")
    tool = fetch_tool(web_server, host="rebind.test", resolver=resolver)
    assert (await call(tool, url=web_server.url("/", "rebind.test")))["body"] == "it"
    assert resolver.asked == 1
    assert web_server.requests[0].headers["Host"] == f"rebind.test:{web_server.port}"


async def test_a_redirect_is_resolved_and_checked_anew(web_server: Server) -> None:
    web_server.answers["/"] = reply(status=302, headers={"Location": "/again"})
    resolver = Rebinding("127.0.0.1", "169.254.169.254")
    tool = fetch_tool(web_server, host="rebind.test", resolver=resolver)
    assert (await call(tool, url=web_server.url("/", "rebind.test")))["code"] == "disallowed_redirect"
    assert [request.path for request in web_server.requests] == ["/"]


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://localhost/",
        "//169.254.169.254/",
        "https://127.0.0.1/",
        "http://127.0.0.1:1/",
        "http://user@127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http:\\\\127.0.0.1",
        "http://2130706433/",
    ],
)
@pytest.mark.parametrize("status", [301, 307])
async def test_redirects_elsewhere_are_refused(web_server: Server, location: str, status: int) -> None:
    web_server.answers["/"] = reply(status=status, headers={"Location": location})
    assert (await call(fetch_tool(web_server), url=web_server.url("/")))["code"] == "disallowed_redirect"
    assert len(web_server.requests) == 1


async def test_a_redirect_to_the_metadata_service_is_refused_though_every_host_is_listed(web_server: Server) -> None:
    web_server.answers["/"] = reply(status=302, headers={"Location": "http://169.254.169.254/latest/meta-data/"})
    [tool] = create_fetch_tools(["http://*", f"http://*:{web_server.port}"], allow_private=LOOPBACK)
    assert (await call(tool, url=web_server.url("/")))["code"] == "disallowed_redirect"


async def test_five_redirects_are_followed_and_no_more(web_server: Server) -> None:
    async def hop(request: web.BaseRequest) -> web.StreamResponse:
        left = int(request.query["left"])
        if not left:
            return web.Response(text="there")
        return web.Response(status=302, headers={"Location": f"/hop?left={left - 1}"})

    web_server.answers["/hop"] = hop
    tool = fetch_tool(web_server)
    found = await call(tool, url=web_server.url("/hop?left=5"))
    assert (found["body"], found["finalUrl"]) == ("there", web_server.url("/hop?left=0"))
    assert (await call(tool, url=web_server.url("/hop?left=6")))["code"] == "request_failed"


async def test_no_cookie_is_kept_between_redirects(web_server: Server) -> None:
    web_server.answers["/"] = reply(status=302, headers={"Location": "/b", "Set-Cookie": "a=b"})
    web_server.answers["/b"] = reply(text="it")
    await call(fetch_tool(web_server), url=web_server.url("/"))
    assert "Cookie" not in web_server.requests[1].headers


async def test_a_connection_to_another_address_is_refused_before_the_request(web_server: Server) -> None:
    """Two checks, each alone: of the address that is about to be connected to, and of the other end."""

    class WithoutTheFirst(PinnedConnector):
        def _socket(self, info: Any) -> socket.socket:
            made = socket.socket(family=info[0], type=info[1], proto=info[2])
            made.setblocking(False)
            return made

    for connector_class in (PinnedConnector, WithoutTheFirst):
        connector = connector_class([ipaddress.ip_address("127.0.0.2")])
        async with aiohttp.ClientSession(connector=connector) as session:
            with pytest.raises(FetchFailed) as caught:
                await session.get(web_server.url("/"))
        assert caught.value.reason == "disallowed_url"
    assert web_server.requests == []


async def test_the_system_resolves_this_machine() -> None:
    assert "127.0.0.1" in await resolve("localhost")


# declaration


@pytest.mark.parametrize(("allow", "private"), [([], ()), (["a b"], ()), (["a.com"], ("10.0.0.1/8",)), ("a.com", ())])
def test_a_tool_without_a_usable_list_is_not_made(allow: Any, private: tuple[str, ...]) -> None:
    with pytest.raises(ToolDeclarationInvalid):
        create_fetch_tools(allow, allow_private=private)


def test_the_description_names_what_is_allowed() -> None:
    [tool] = create_fetch_tools(["docs.python.org", "*.example.com/docs"])
    assert (tool.name, tool.title) == ("fetch_url", "Read a web page")
    assert tool.description.endswith("Allowed: docs.python.org, *.example.com/docs")
    assert tool.input_schema["required"] == ["url"]
