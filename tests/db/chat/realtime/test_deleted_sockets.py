"""Sockets of a conversation that is deleted: all are closed, and its address shows nothing of it."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.instances.rows import ensure_instance, key_of
from chat.members.services import add_member
from chat.models import AgentInstance, Role
from chat.operations.deleted import put_into_deleted, restore_instances
from chat.reads.snapshot_rows import version_row
from tests.db.chat.conftest import say
from tests.db.chat.sockets import Open, answered, connection, cookie_of, received

pytestmark = pytest.mark.django_db(transaction=True)


async def closing(socket: Any) -> tuple[str, int]:
    """The end of a socket; frames before it are passed over."""
    while (output := await socket.receive_output(timeout=15))["type"] != "websocket.close":
        pass
    return output["type"], output["code"]


async def test_sockets_of_its_people_are_closed(
    alice: User, bob: User, conversation: AgentInstance, open_socket: Open
) -> None:
    await sync_to_async(add_member)(conversation, bob.username, Role.WRITER, by=alice.pk)
    hers = await open_socket(alice, "assistant/talk")
    elsewhere = await open_socket(alice, "assistant/else")
    query = f"instance={conversation.pk}"
    his = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(bob), query=query)
    assert (await his.connect(timeout=15))[0]
    await sync_to_async(put_into_deleted)([conversation])
    assert await closing(hers) == ("websocket.close", 4404)
    assert await closing(his) == ("websocket.close", 4404)
    assert "websocket.close" not in "".join(await answered(elsewhere))


async def test_its_address_shows_nothing_of_it_until_it_is_back(
    alice: User, conversation: AgentInstance, open_socket: Open
) -> None:
    await sync_to_async(put_into_deleted)([conversation])
    assert await sync_to_async(version_row)(key_of(conversation)) is None
    fresh = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    assert (await fresh.connect(timeout=15))[0]
    shown = "".join([*await answered(fresh), *await received(fresh)])
    assert "text of a1" not in shown
    await fresh.disconnect()
    await sync_to_async(restore_instances)(alice.pk, [conversation.pk])
    again = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice))
    assert (await again.connect(timeout=15))[0]
    assert "text of a1" in "".join(await answered(again))
    await again.disconnect()


async def test_a_message_to_its_address_begins_another_one(alice: User, conversation: AgentInstance) -> None:
    await sync_to_async(put_into_deleted)([conversation])

    def begun() -> AgentInstance:
        made = ensure_instance(key_of(conversation))
        say(made, "q9", "a9")
        return made

    made = await sync_to_async(begun)()
    assert made.pk != conversation.pk
    await sync_to_async(restore_instances)(alice.pk, [conversation.pk])
    names = await sync_to_async(lambda: set(AgentInstance.objects.values_list("name", flat=True)))()
    assert len(names) == 2
