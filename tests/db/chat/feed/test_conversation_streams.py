"""A conversation as a durable stream of the State Protocol: who follows it has what is stored, whatever happens."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import AsyncClient

from chat.feed.reading import open_feed, read_changes
from chat.instances.rows import key_of
from chat.members.services import add_member, remove_member
from chat.models import AgentInstance, AgentMessage, FeedHead, Role
from chat.operations.removal import delete_instance
from chat.reads import feed_values
from chat.reads.feed_values import VALUES
from chat.turns.admission.stop import clear_instance
from sessions_app.messages.services import delete_message
from sessions_app.models import Message
from tests.db.chat.conftest import say
from thinkproject.kernel.aio import db
from tools_app.models import ToolCallRecord

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]
ROOT = "/v1/stream/conversations/"
State = dict[tuple[str, str], Any]


class StateReader:
    """Materialises a stream as the protocol's section 6 says, from one read to the next."""

    def __init__(self, client: AsyncClient, instance: AgentInstance) -> None:
        self.client, self.url = client, f"{ROOT}{instance.pk}"
        self.offset, self.state = "-1", State()
        self.controls: list[str] = []
        self.is_closed = False

    async def read(self) -> None:
        """Read up to the end."""
        for _ in range(50):
            reply = await self.client.get(f"{self.url}?offset={self.offset}")
            assert reply.status_code == 200, reply.content
            assert reply["Stream-Next-Offset"] >= self.offset
            self.offset = reply["Stream-Next-Offset"]
            self.apply(json.loads(reply.content))
            self.is_closed = reply.get("Stream-Closed") == "true"
            if reply.get("Stream-Up-To-Date") == "true":
                return
        raise AssertionError("never up to date")

    def apply(self, messages: list[Any]) -> None:
        for message in messages:
            if control := message["headers"].get("control"):
                self.controls.append(control)
                if control == "reset":
                    self.state.clear()
            elif message["headers"]["operation"] == "delete":
                self.state.pop((message["type"], message["key"]), None)
            else:
                self.state[message["type"], message["key"]] = message["value"]


def stored(instance: AgentInstance) -> State:
    """Everything that the protocol shows of it, as it is now."""
    return {
        (kind, key): json.loads(json.dumps(value))
        for kind, table in VALUES.items()
        for key, value in table.values(table.of(instance))
    }


@pytest.fixture
async def her_reader(alice: User, conversation: AgentInstance) -> StateReader:
    client = AsyncClient()
    await client.aforce_login(alice)
    return StateReader(client, conversation)


async def test_who_follows_has_what_is_stored(
    her_reader: StateReader, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_values, "MESSAGES", 3)
    session = str(conversation.session_id)
    for number in range(3):
        await db(say, conversation, f"q{number + 2}", f"a{number + 2}")
    await her_reader.read()
    assert her_reader.state == await db(stored, conversation)
    assert ("message", f"{session}/a4") in her_reader.state
    turn = await db(say, conversation, "q9", "a9")
    call = {
        "turn_id": turn.pk,
        "scope": conversation.pk,
        "call_id": "c",
        "owner_id": conversation.owner_id,
        "tool_name": "t",
    }
    await db(lambda: ToolCallRecord.objects.create(**call))
    await db(delete_message, session, "a9")
    await db(lambda: ToolCallRecord.objects.update(status="succeeded", output={"text": "done"}))
    await her_reader.read()
    assert her_reader.state == await db(stored, conversation)
    assert her_reader.state["call", f"{turn.pk}/c"]["output"] == {"text": "done"}
    await db(clear_instance, key_of(conversation))
    await db(say, conversation, "again", "yes")
    await her_reader.read()
    assert her_reader.state == await db(stored, conversation)
    assert "reset" in her_reader.controls
    assert {key for kind, key in her_reader.state if kind == "message"} == {f"{session}/again", f"{session}/yes"}


async def test_messages_between_agents_are_followed(
    her_reader: StateReader, conversation: AgentInstance, alice: User, bob: User, make_instance: Callable[..., Any]
) -> None:
    """Sent, taken by a turn, answered, and gone: each is named once, and only in its room."""
    await her_reader.read()
    start = await db(open_feed, alice.pk)
    asked = await db(lambda: AgentMessage.objects.create(room=conversation, target="reader", content="Read it."))
    elsewhere = await db(make_instance, bob, "his")
    await db(lambda: AgentMessage.objects.create(room=elsewhere, target="reader", content="His."))
    await her_reader.read()
    assert her_reader.state == await db(stored, conversation)
    shown = her_reader.state["agent-message", str(asked.pk)]
    assert (shown["content"], shown["target"], shown["sender"], shown["processed_at"]) == (
        "Read it.",
        "reader",
        None,
        None,
    )
    turn = await db(say, conversation, "q2", "a2")
    await db(lambda: AgentMessage.objects.filter(pk=asked.pk).update(turn=turn, processed_at=Now()))
    await db(lambda: AgentMessage.objects.create(room=conversation, sender="reader", role="assistant", content="Read."))
    await her_reader.read()
    assert her_reader.state == await db(stored, conversation)
    assert her_reader.state["agent-message", str(asked.pk)]["turn_id"] == turn.pk
    assert len([key for kind, key in her_reader.state if kind == "agent-message"]) == 2
    await db(lambda: AgentMessage.objects.filter(pk=asked.pk).delete())
    await her_reader.read()
    assert her_reader.state == await db(stored, conversation)
    named = [each for each in (await db(read_changes, alice.pk, start)).changes if each.type == "agent-message"]
    assert [each.op for each in named] == ["insert", "update", "insert", "delete"]
    assert {each.instance_id for each in named} == {conversation.pk}


async def test_what_changes_while_all_is_read_is_not_missed(
    her_reader: StateReader, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_values, "MESSAGES", 2)
    await db(say, conversation, "q2", "a2")
    reply = await her_reader.client.get(f"{her_reader.url}?offset=-1")
    her_reader.offset = reply["Stream-Next-Offset"]
    her_reader.apply(json.loads(reply.content))
    await db(delete_message, str(conversation.session_id), "q1")
    await db(say, conversation, "q3", "a3")
    await her_reader.read()
    assert her_reader.state == await db(stored, conversation)


async def test_a_deleted_conversation_ends_its_stream(her_reader: StateReader, conversation: AgentInstance) -> None:
    await her_reader.read()
    following = asyncio.create_task(
        her_reader.client.get(f"{her_reader.url}?offset={her_reader.offset}&live=long-poll")
    )
    await asyncio.sleep(0.2)  # so that it waits; one that comes later finds no conversation
    await db(delete_instance, conversation)
    async with asyncio.timeout(10):
        reply = await following
    assert reply["Stream-Closed"] == "true"
    her_reader.apply(json.loads(reply.content))
    assert her_reader.state == {}
    assert (await her_reader.client.get(f"{her_reader.url}?offset=-1")).status_code == 404


async def test_a_member_reads_until_the_membership_ends(alice: User, bob: User, conversation: AgentInstance) -> None:
    member = await db(lambda: add_member(conversation, bob.username, Role.READER, by=alice.pk))
    client = AsyncClient()
    await client.aforce_login(bob)
    his = StateReader(client, conversation)
    await his.read()
    assert his.state == await db(stored, conversation)
    following = asyncio.create_task(client.get(f"{his.url}?offset={his.offset}&live=long-poll"))
    await asyncio.sleep(0.2)  # so that it waits
    await db(lambda: remove_member(conversation, member.pk))
    await db(say, conversation, "secret", "a2")
    async with asyncio.timeout(10):
        reply = await following
    assert (reply.status_code, b"secret" in reply.content) == (410, False)
    assert (await client.get(f"{his.url}?offset={his.offset}")).status_code == 404


async def test_it_is_ones_own_and_to_read_only(
    her_reader: StateReader, bob: User, conversation: AgentInstance, alice: User
) -> None:
    await db(open_feed, alice.pk)
    for send in (her_reader.client.post, her_reader.client.put, her_reader.client.delete):
        assert (await send(her_reader.url, headers={"Origin": "http://testserver"})).status_code == 403
    head = await her_reader.client.head(her_reader.url)
    assert (head.status_code, head["Content-Type"]) == (200, "application/json")
    stranger = AsyncClient()
    assert (await stranger.get(f"{her_reader.url}?offset=-1")).status_code == 401
    await stranger.aforce_login(bob)
    assert (await stranger.get(f"{her_reader.url}?offset=-1")).status_code == 404
    await db(lambda: FeedHead.objects.update(floor=5, seq=9))
    gone = await her_reader.client.get(f"{her_reader.url}?offset={'0' * 15}3_{'9' * 16}")
    assert gone.status_code == 410


async def test_a_fork_has_the_messages_that_it_shares(
    alice: User, conversation: AgentInstance, make_instance: Callable[..., AgentInstance]
) -> None:
    from chat.conversations.fork import fork_instance

    await db(say, conversation, "q2", "a2")
    forked = await db(lambda: fork_instance(conversation, "a1"))
    client = AsyncClient()
    await client.aforce_login(alice)
    reader = StateReader(client, forked)
    await reader.read()
    ids = {value["message_id"] for (kind, _), value in reader.state.items() if kind == "message"}
    assert ids == {"q1", "a1"}
    assert await db(Message.objects.count) == 4
