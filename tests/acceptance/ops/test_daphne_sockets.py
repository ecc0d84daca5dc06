"""The AI SDK's own socket where daphne serves: answers, a server that is killed in the middle, aborts, refusals."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.acceptance.product import Product, wait_for

PATH = "/agents/assistant/daphne/chat"


def opened(product: Product, path: str = PATH, token: str = "") -> ClientConnection:
    address = product.url(path).replace("http", "ws", 1)
    return connect(f"{address}?token={token or product.token('alice')}", proxy=None)


def ask(socket: ClientConnection, kind: str, number: str, **more: Any) -> None:
    socket.send(json.dumps({"type": kind, "requestId": number, "id": "c", "headers": {}, "body": {}, **more}))


def say(socket: ClientConnection, number: str, text: str) -> None:
    message = {"id": f"of-{number}", "role": "user", "parts": [{"type": "text", "text": text}]}
    ask(socket, "send", number, trigger="submit-message", messages=[message])


def frames_until(socket: ClientConnection, is_last: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while not found or not is_last(found[-1]):
        found.append(json.loads(socket.recv(timeout=60)))
    return found


def is_end(frame: dict[str, Any]) -> bool:
    return frame["type"] in {"end", "error", "no-active"}


def text_of(frames: list[dict[str, Any]]) -> str:
    return "".join(frame.get("chunk", {}).get("delta", "") for frame in frames)


@pytest.mark.smoke
def test_the_sdks_socket_works_on_daphne(make_product: Callable[..., Product]) -> None:
    product = make_product(environ={"THINK_WEB_SERVER": "daphne"})
    with opened(product) as socket:
        say(socket, "r1", "say: Hello.")
        first = frames_until(socket, is_end)
        assert (first[-1]["type"], text_of(first)) == ("end", "Hello.")
        chunks = [frame["sequence"] for frame in first if frame["type"] == "chunk"]
        assert chunks == list(range(len(chunks)))
        say(socket, "r2", "stream 60 words at 20/s")
        begun = frames_until(socket, lambda frame: frame.get("sequence") == 6)
        product.webs[0].kill()
        with pytest.raises(ConnectionClosed):
            frames_until(socket, is_end)
    product.webs[0].start()
    wait_for(lambda: product.answers(product.webs[0]), what="the web server")
    with opened(product) as socket:
        ask(socket, "resume", "r3", lastSequence=6)
        rest = frames_until(socket, is_end)
        assert (rest[0]["type"], rest[-1]["type"], rest[1]["sequence"]) == ("start", "end", 7)
        assert len((text_of(begun) + text_of(rest)).split()) == 60  # none is lost, none comes twice
        say(socket, "r4", "stream 400 words at 20/s")
        frames_until(socket, lambda frame: frame.get("sequence") == 4)
        ask(socket, "abort", "r4")
        stopped = frames_until(socket, is_end)
        assert stopped[-2]["chunk"] == {"type": "abort"}
        socket.send("not JSON")
        assert json.loads(socket.recv(timeout=20))["type"] == "error"
    with opened(product, token="think_wrong") as socket, pytest.raises(ConnectionClosed) as refused:
        socket.recv(timeout=20)
    assert refused.value.rcvd is not None
    assert refused.value.rcvd.code == 4401
    assert "daphne" in product.webs[0].log.lower()
