"""A small ASGI application behind our server: `python -m tests.acceptance.ops.echo_app FD`."""

import json
import logging
import sys
from typing import Any

from thinkproject.server import ThinkServer, log_action, server_options

FRAME = "x" * 65_536
FRAMES = 20_000  # 1.3 GB: more than any buffer

sent = {"frames": 0}


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer by path: /length says how long a message was, /flood sends far more than anybody reads, / counts."""
    if scope["type"] == "http":
        body = json.dumps(sent).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        await send({"type": "http.response.body", "body": body})
        return
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/flood":
        for _ in range(FRAMES):
            await send({"type": "websocket.send", "text": FRAME})
            sent["frames"] += 1
    while (message := await receive())["type"] == "websocket.receive":
        said = {"length": len(message.get("text") or ""), "scheme": scope.get("scheme")}
        await send({"type": "websocket.send", "text": json.dumps(said)})


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    ThinkServer(
        application=application, endpoints=[f"fd:fileno={sys.argv[1]}"], action_logger=log_action, **server_options()
    ).run()
