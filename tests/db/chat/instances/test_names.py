"""One rule says what a conversation may be called: the API makes exactly what a socket opens."""

from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient
from tests.db.chat.notes import opener

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = ["talk", "Sub", "subs", "a b", "c/d", "é", "名前", "...", "a.b", "?x=1", "#1", "%2F", "a\nb", "x" * 255]
BAD = ["sub", ".", "..", "x" * 256, "a\x00b"]


def create(user: User, name: str) -> Any:
    return ApiClient(user).send("POST", "/instances", {"agent": "assistant", "name": name})


async def opens(user: User, name: str) -> bool:
    """Whether a socket at this name is accepted for good."""
    async with opener(user) as connect:
        socket = await connect(f"/agents/assistant/{quote(name, safe='')}", is_ready=False)
        first = await socket.receive_output(timeout=15)
        assert first["type"] == "websocket.send" or first["code"] == 4404
        return bool(first["type"] == "websocket.send")


@pytest.mark.parametrize("name", GOOD, ids=ascii)
async def test_a_name_that_the_api_takes_opens_a_socket(alice: User, name: str) -> None:
    made = await sync_to_async(create)(alice, name)
    assert (made.status_code, made.json()["name"]) == (201, name)
    assert await opens(alice, name)


@pytest.mark.parametrize("name", BAD, ids=lambda name: ascii(name)[:9])
async def test_a_name_that_sockets_refuse_is_refused_by_the_api(alice: User, name: str) -> None:
    assert not await opens(alice, name)
    refused = await sync_to_async(create)(alice, name)
    assert refused.status_code == 422
    assert not await AgentInstance.objects.aexists()


def test_half_a_character_is_no_name(alice: User) -> None:
    assert create(alice, "\ud800").status_code == 422  # JSON can say it, an address cannot


def test_the_terminal_takes_no_such_name_either(alice: User) -> None:
    with pytest.raises(CommandError, match="cannot be named 'sub'"):
        call_command("agent_chat", "assistant", "--name", "sub")
