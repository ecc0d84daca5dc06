"""Pages that show the list of conversations are sent what one of them is called now; no one else is sent anything."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.conversations.services import list_line, rename_instance
from chat.models import AgentInstance
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

from .test_access_sockets import connection, cookie_of

pytestmark = pytest.mark.django_db(transaction=True)


async def opened(user: User, query: str) -> Any:
    socket = connection("/agents/assistant/elsewhere", cookie=await sync_to_async(cookie_of)(user), query=query)
    connected, _ = await socket.connect(timeout=5)
    assert connected
    return socket


async def frames_until(socket: Any, kind: str) -> list[JSONObject]:
    found: list[JSONObject] = []
    while not found or found[-1]["type"] != kind:
        found.append(json.loads((await socket.receive_output(timeout=5))["text"]))
    return found


async def test_open_lists_receive_a_title(alice: User, bob: User, talk: AgentInstance) -> None:
    assert await db(list_line, talk.id, bob.pk) is None
    page, client, stranger = await opened(alice, "_list=1"), await opened(alice, ""), await opened(bob, "_list=1")
    await db(rename_instance, talk, "Balcony tomatoes")
    sent = (await frames_until(page, "think_conversation"))[-1]
    line = {"title": "Balcony tomatoes", "isRunning": False, "waitingCount": 0, "hasFailed": False}
    assert sent == {"type": "think_conversation", "id": talk.id, **line}
    for other in (client, stranger):
        received: set[str] = set()
        for probe in ("p", "q"):  # what was published before has been received when the second is answered
            await other.send_to(text_data=json.dumps({"type": "cf_agent_stream_resume_request", "probeId": probe}))
            received |= {frame["type"] for frame in await frames_until(other, "cf_agent_stream_resume_none")}
        assert "think_conversation" not in received
    for socket in (page, client, stranger):
        await socket.disconnect()
