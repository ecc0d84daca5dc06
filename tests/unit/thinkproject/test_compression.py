"""Compression of pages and JSON: for whom, of what, and that events are left alone."""

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import brotli
import pytest

from thinkproject.web.compression import LEAST_BYTES, MOST_BYTES, Compression, chosen_encoding

BODY = json.dumps([f"message {number}" for number in range(400)]).encode()
LARGE = BODY * 20
OWN = {"sec-fetch-site": "same-origin", "accept-encoding": "gzip, deflate, br, zstd"}
JSON = {"content-type": "application/json; charset=utf-8"}


async def serve(
    request: Mapping[str, str], pieces: Sequence[bytes], answer: Mapping[str, str], *, method: str = "GET"
) -> tuple[list[Mapping[str, Any]], dict[str, str], bytes]:
    """Answer a request through the middleware: the messages, the headers and the body of what the client gets."""
    sent: list[Mapping[str, Any]] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        headers = [(name.encode(), value.encode()) for name, value in answer.items()]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, piece in enumerate(pieces, 1):
            await send({"type": "http.response.body", "body": piece, "more_body": number < len(pieces)})

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "headers": [(k.encode(), v.encode()) for k, v in request.items()]}
    await Compression(application)(scope, receive, send)
    headers = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent, headers, b"".join(message["body"] for message in sent[1:])


def sized(body: bytes, **more: str) -> dict[str, str]:
    return {**JSON, "content-length": str(len(body)), **more}


@pytest.mark.parametrize("body", [BODY, LARGE])
@pytest.mark.parametrize(("accepted", "encoding"), [("gzip, br", "br"), ("gzip", "gzip"), ("gzip, br;q=0", "gzip")])
async def test_an_answer_to_the_own_page_is_compressed(body: bytes, accepted: str, encoding: str) -> None:
    pieces = [body[:1000], body[1000:]]  # Django sends a long body in pieces
    _, headers, got = await serve({**OWN, "accept-encoding": accepted}, pieces, sized(body))
    assert headers["content-encoding"] == encoding
    assert headers["content-length"] == str(len(got))
    assert len(got) < len(body) / 4
    assert (brotli.decompress(got) if encoding == "br" else gzip.decompress(got)) == body


async def test_caches_are_told_that_the_encoding_counts() -> None:
    for request in (OWN, {}):
        _, headers, _ = await serve(request, [BODY], sized(BODY, vary="Cookie"))
        assert headers["vary"] == "Cookie, Accept-Encoding"


@pytest.mark.parametrize(
    ("request_headers", "is_compressed"),
    [
        ({"sec-fetch-site": "same-origin"}, True),
        ({"sec-fetch-site": "none"}, True),
        ({"authorization": "Bearer key"}, True),
        ({"sec-fetch-site": "cross-site", "authorization": "Bearer key"}, True),
        ({"sec-fetch-site": "cross-site", "cookie": "session=1"}, False),
        ({"sec-fetch-site": "same-site", "cookie": "session=1"}, False),
        ({"cookie": "session=1"}, False),
    ],
)
async def test_nobody_else_can_watch_the_length(request_headers: dict[str, str], is_compressed: bool) -> None:
    _, headers, body = await serve({**request_headers, "accept-encoding": "br"}, [BODY], sized(BODY))
    assert ("content-encoding" in headers) is is_compressed
    assert (body == BODY) is not is_compressed


@pytest.mark.parametrize(
    "answer",
    [
        {"content-type": "application/json"},  # a stream: no length
        {"content-type": "text/event-stream"},
        sized(BODY, **{"content-type": "image/png"}),
        sized(BODY, **{"content-encoding": "br"}),
        sized(BODY, etag='"1"'),
        sized(BODY, **{"content-disposition": "attachment"}),
        {**JSON, "content-length": str(LEAST_BYTES - 1)},
        {**JSON, "content-length": str(MOST_BYTES + 1)},
    ],
)
async def test_streams_files_and_small_answers_pass_as_they_are(answer: dict[str, str]) -> None:
    pieces = [BODY[:100], BODY[100:200], BODY[200:]]
    sent, headers, body = await serve(OWN, pieces, answer)
    assert headers == answer
    assert [message.get("body") for message in sent[1:]] == pieces
    assert body == BODY


async def test_an_event_leaves_before_the_next_one_exists() -> None:
    order: list[str] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        order.append("next")

    async def send(message: Mapping[str, Any]) -> None:
        order.append(message["type"])

    scope = {"method": "GET", "headers": [(b"sec-fetch-site", b"none"), (b"accept-encoding", b"br")]}
    await Compression(application)(scope, application, send)  # type: ignore[arg-type]  # nothing is received
    assert order == ["http.response.start", "http.response.body", "next"]


async def test_a_head_keeps_its_length() -> None:
    _, headers, _ = await serve(OWN, [b""], sized(BODY), method="HEAD")
    assert headers["content-length"] == str(len(BODY))
    assert "content-encoding" not in headers


@pytest.mark.parametrize("value", ["", "identity", "br;q=0, gzip;q=0.0", "br;q=", "br;q=x", "*"])
def test_what_is_not_accepted_is_not_chosen(value: str) -> None:
    headers = [(b"sec-fetch-site", b"none"), (b"accept-encoding", value.encode())]
    assert chosen_encoding(headers) is None
