"""A small ASGI application behind our servers: `python -m tests.acceptance.ops.echo_app uvicorn FD [0.5] [proxied]`."""

import asyncio
import json
import logging
import sys
from typing import Any

from thinkproject.logs import TextFormatter
from thinkproject.run.servers.shared import ListenAddress

FRAME = "x" * 65_536
FRAMES = 20_000  # 1.3 GB: more than any buffer

sent = {"frames": 0, "sockets": 0}


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer by path: /length says how long a message was, /flood sends far more than anybody reads, / counts.

    /events never ends, /slow takes a second and a half, /closed/CODE closes with it and without a word, /broken fails
    in the middle of its answer. /late sends after it has closed, /deaf receives nothing, /fails fails, /large/N sends N
    characters and then as many bytes.
    """
    if scope["type"] == "http" and scope["path"] == "/broken":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"the first half", "more_body": True})
        raise TypeError("nobody foresaw this")
    if scope["type"] == "http" and scope["path"] == "/events":
        head = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        while True:
            await send({"type": "http.response.body", "body": b": still here\n\n", "more_body": True})
            await asyncio.sleep(0.1)  # between two events of a stream without an end
    if scope["type"] == "http":
        if scope["path"] == "/slow":
            await asyncio.sleep(1.5)  # an answer that takes its time
        body = json.dumps(sent).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})
        return
    await receive()
    await send({"type": "websocket.accept"})
    await serve_socket(scope, receive, send)


async def serve_socket(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve an accepted socket by its path."""
    if scope["path"].startswith("/closed/"):
        await send({"type": "websocket.close", "code": int(scope["path"].rpartition("/")[2]), "reason": "Because."})
        return
    if scope["path"] == "/late":
        await send({"type": "websocket.close", "code": 4000})
        await send({"type": "websocket.send", "text": "too late"})
        sent["frames"] += 1
        return
    if scope["path"] == "/fails":
        raise TypeError("nobody foresaw this")
    if scope["path"].startswith("/large/"):
        count = int(scope["path"].rpartition("/")[2])
        await send({"type": "websocket.send", "text": "ü" * count})
        await send({"type": "websocket.send", "bytes": b"b" * count})
    sent["sockets"] += 1
    if scope["path"] == "/deaf":
        try:
            await asyncio.sleep(3600)  # it receives nothing
        finally:
            sent["sockets"] -= 1
    if scope["path"] == "/flood":
        for _ in range(FRAMES):
            await send({"type": "websocket.send", "text": FRAME})
            sent["frames"] += 1
    while (message := await receive())["type"] == "websocket.receive":
        said = {"length": len(message.get("text") or ""), "scheme": scope.get("scheme")}
        await send({"type": "websocket.send", "text": json.dumps(said)})
    sent["sockets"] -= 1


def serve_uvicorn(fd: int, heartbeat: float | None, *, is_proxied: bool) -> int:
    """Serve with our uvicorn."""
    from thinkproject.run.servers.uvicorn_server import create_server, run_server  # only one server is loaded

    options: dict[str, Any] = {} if heartbeat is None else {"ws_ping_interval": heartbeat, "ws_ping_timeout": heartbeat}
    return run_server(create_server(application, behind_proxy=is_proxied, **options), ListenAddress(fd=fd))


def serve_daphne(fd: int, heartbeat: float | None, *, is_proxied: bool) -> int:
    """Serve with our daphne, with a limit on bodies that needs no project."""
    from thinkproject.run.servers.daphne_server import ThinkServer, log_action, server_options  # isort: skip
    from thinkproject.run.bounded_requests import BodyPolicy  # isort: skip - the one above installs the reactor

    options = server_options(behind_proxy=is_proxied)
    if heartbeat is not None:
        options |= {"ping_interval": heartbeat, "ping_timeout": heartbeat}
    ThinkServer(
        application=application,
        endpoints=[f"fd:fileno={fd}"],
        action_logger=log_action,
        body_policy=BodyPolicy(lambda _path: 1024, lambda _limit: ([], b""), smallest=1024, linger_seconds=1.0),
        **options,
    ).run()
    return 0


if __name__ == "__main__":
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # as `thinkproject.logs` does
    kind, fd_text, *words = sys.argv[1:]
    paces = [float(word) for word in words if word != "proxied"]  # heartbeats that a test need not wait for
    serve = {"uvicorn": serve_uvicorn, "daphne": serve_daphne}[kind]
    sys.exit(serve(int(fd_text), paces[0] if paces else None, is_proxied="proxied" in words))
