"""Requests of a page over a socket: frames, and messages that begin turns."""

import json
from typing import Any

from chat.models import Turn
from fibers.testing import run_until_idle
from tests.db.chat.conftest import text_message
from tests.db.chat.sockets import frames_until
from thinkproject.kernel.aio import db

UPDATED, RESPONSE = "cf_agent_message_updated", "cf_agent_use_chat_response"


async def send(socket: Any, kind: str, **values: Any) -> None:
    await socket.send_to(json.dumps({"type": kind, **values}))


async def ask(socket: Any, script: str, request_id: str = "r1") -> list[dict[str, Any]]:
    """Send a message and run its turn; returns the frames up to its end."""
    message = {"id": f"u-{request_id}", "role": "user", "parts": [{"type": "text", "text": script}]}
    body = json.dumps({"messages": [message], "trigger": "submit-message"})
    await send(socket, "cf_agent_use_chat_request", id=request_id, init={"method": "POST", "body": body})
    while not await db(Turn.objects.filter(request_id=request_id).exists):
        await frames_until_quiet(socket)
    await run_until_idle(skip_delays=True)
    return await frames_until(socket, "done")


async def frames_until_quiet(socket: Any) -> None:
    """Let the consumer work; nothing is read."""
    await socket.receive_nothing(timeout=0.05)


async def submit(
    socket: Any,
    request_id: str,
    message_id: str,
    *,
    trigger: str = "submit-message",
    text: str = "",
    **more: Any,
) -> None:
    message = text_message(message_id, "user")
    if text:
        message["parts"] = [{"type": "text", "text": text}]
    body = json.dumps({"messages": [message], "trigger": trigger, **more})
    request = {"type": "cf_agent_use_chat_request", "id": request_id, "init": {"method": "POST", "body": body}}
    await socket.send_to(json.dumps(request))
