"""The time zone of the person: by the header of a request, by the query of a socket, in metadata of a client's own."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from chat.models import AgentInstance, Turn
from sessions_app.messages import selectors
from tests.db.chat.conftest import ApiClient
from tests.db.chat.sockets import connection, cookie_of, frames_until
from thinkproject.kernel.aio import db
from thinkproject.kernel.zones import current_zone

pytestmark = pytest.mark.django_db(transaction=True)

PARTS = [{"type": "text", "text": "hello"}]


def metadata_of(turn: Turn) -> Any:
    [message] = selectors.find_messages(turn.session_id, turn.input_ids).values()
    return message.metadata


@pytest.mark.parametrize(
    ("headers", "metadata"),
    [
        ({"X-Time-Zone": "Europe/Vienna"}, {"timeZone": "Europe/Vienna"}),
        ({"X-Time-Zone": " Asia/Calcutta "}, {"timeZone": "Asia/Calcutta"}),
        ({"X-Time-Zone": "Mars/Base"}, None),
        ({"X-Time-Zone": "../../etc/passwd"}, None),
        ({}, None),
    ],
)
def test_a_request_names_the_zone_in_a_header(
    as_alice: ApiClient, conversation: AgentInstance, headers: dict[str, str], metadata: Any
) -> None:
    message = {"message": {"parts": PARTS}, "request_id": "r1"}
    reply = as_alice.send("POST", f"/instances/{conversation.id}/turns", message, **headers)
    assert reply.status_code == 202, reply.content
    assert metadata_of(Turn.objects.get(request_id="r1")) == metadata
    assert current_zone() == ""  # it was that of the request alone


async def test_a_request_under_asgi_names_it_too(alice: User, talk: AgentInstance) -> None:
    client = AsyncClient()
    await client.aforce_login(alice)
    address = f"/api/v1/instances/{talk.id}/turns"
    for number, zone in enumerate(("Europe/Vienna", "Asia/Tokyo")):
        body = json.dumps({"message": {"parts": PARTS}, "request_id": f"r{number}"})
        reply = await client.post(address, body, "application/json", headers={"X-Time-Zone": zone})
        assert reply.status_code == 202, reply.content
        assert await db(metadata_of, await db(Turn.objects.get, request_id=f"r{number}")) == {"timeZone": zone}
    assert current_zone() == ""


@pytest.mark.parametrize(
    ("query", "own", "stored"),
    [
        ("timeZone=Europe%2FVienna", None, {"timeZone": "Europe/Vienna"}),
        ("timeZone=Europe%2FVienna", {"timeZone": "UTC", "mine": 1}, {"timeZone": "Europe/Vienna", "mine": 1}),
        ("timeZone=Vienna", None, None),
        ("", {"timeZone": "Asia/Tokyo"}, {"timeZone": "Asia/Tokyo"}),  # of a published client's own metadata
        ("", None, None),
    ],
)
async def test_a_socket_names_the_zone_in_its_query(
    alice: User, talk: AgentInstance, query: str, own: Any, stored: Any
) -> None:
    socket = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice), query=query)
    assert (await socket.connect(timeout=15))[0]
    await frames_until(socket, "cf_agent_mcp_servers")
    message = {"id": "u1", "role": "user", "parts": PARTS, **({"metadata": own} if own else {})}
    body = json.dumps({"messages": [message], "trigger": "submit-message"})
    request = {"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}}
    await socket.send_to(json.dumps(request))
    while not await db(Turn.objects.filter(request_id="r1").exists):
        await socket.receive_nothing(timeout=0.05)
    assert await db(metadata_of, await db(Turn.objects.get, request_id="r1")) == stored
    await socket.disconnect()
