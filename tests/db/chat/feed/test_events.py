"""`GET /api/v1/events`: changes in order, from any position that is kept, for those who may read them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db.models.signals import post_delete
from django.test import AsyncClient
from django.utils import timezone

from chat.access import api_tokens
from chat.feed import reading
from chat.feed.reading import open_feed, prune_feeds
from chat.instances.rows import key_of
from chat.members.services import add_member, remove_member
from chat.models import AgentInstance, ApiToken, FeedChange, FeedHead, Role
from chat.operations.removal import delete_instance
from chat.turns.admission.stop import clear_instance
from tests.db.chat.conftest import say
from tests.db.chat.feed.events_reader import EventsReader
from thinkproject.kernel.aio import db

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]
Named = tuple[str, str, str]


@pytest.fixture
async def her_client(alice: User) -> AsyncClient:
    made = AsyncClient()
    await made.aforce_login(alice)
    return made


async def get(client: AsyncClient, query: str = "", **headers: str) -> Any:
    return await client.get(f"/api/v1/events{query}", headers=headers)


async def caught_up(client: AsyncClient, query: str = "", **headers: str) -> tuple[list[Named], int]:
    """All there is: type, operation and last part of the key of each change; and the position."""
    response = await get(client, f"{query}{'&' if query else '?'}follow=false", **headers)
    assert response.status_code == 200
    async with asyncio.timeout(10):
        ready, *changes, end = await EventsReader(response).all()
    assert (ready[0], end[0]) == ("ready", "end")
    assert [number for _, number, _ in changes] == sorted(number for _, number, _ in changes if number)
    return [named(data) for _, _, data in changes], end[2]["position"]


def named(data: dict[str, Any]) -> Named:
    return data["type"], data["op"], data["key"].rpartition("/")[2]


async def test_a_turn_a_clear_and_a_removal_are_named_in_order(
    her_client: AsyncClient, conversation: AgentInstance
) -> None:
    assert conversation.session_id is not None
    found, position = await caught_up(her_client)
    assert (found, position) == ([], 0)
    turn = await db(say, conversation, "q2", "a2")
    session = conversation.session_id
    said, position = await caught_up(her_client, "?after=0")
    assert said == [
        ("turn", "insert", turn.pk),
        ("message", "insert", "q2"),
        ("message", "update", "q2"),
        ("session", "update", session),
        ("message", "insert", "a2"),
        ("session", "update", session),
    ]
    await db(clear_instance, key_of(conversation))
    cleared, after = await caught_up(her_client, "", **{"Last-Event-ID": str(position)})
    assert cleared == [("session", "reset", session), ("session", "update", session)]
    await db(delete_instance, conversation)
    removed, _ = await caught_up(her_client, f"?after={after}")
    assert set(removed) >= {("session", "delete", session), ("conversation", "delete", conversation.pk)}
    assert {kind for kind, _, _ in removed} == {"session", "conversation"}


async def test_a_conversation_has_its_own_changes_alone(
    her_client: AsyncClient, conversation: AgentInstance, alice: User, make_instance: Callable[..., AgentInstance]
) -> None:
    other = await db(make_instance, alice, "other")
    _, start = await caught_up(her_client)
    await db(say, other, "elsewhere", "a")
    await db(say, conversation, "here", "a2")
    mine, position = await caught_up(her_client, f"?instance={conversation.pk}&after={start}")
    everything, end = await caught_up(her_client, f"?after={start}")
    assert ("message", "insert", "here") in mine
    assert ("message", "insert", "elsewhere") not in mine
    assert [each for each in everything if each in mine] == mine
    assert position == end, "a reader of one conversation is as far as the feed"


async def test_changes_come_live_between_heartbeats(
    her_client: AsyncClient, conversation: AgentInstance, settings: Any
) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.2
    response = await get(her_client)
    kinds: list[str] = []
    async with asyncio.timeout(20), aclosing(aiter(EventsReader(response))) as events:  # type: ignore[type-var]
        async for kind, _, data in events:
            kinds.append(kind)
            if kinds == ["ready", "heartbeat"]:
                await db(say, conversation, "q2", "a2")
            if kind == "change" and named(data) == ("message", "insert", "a2"):
                break
    await response._iterator.aclose()
    assert kinds[:2] == ["ready", "heartbeat"]


@pytest.mark.parametrize("instance", [False, True], ids=["person", "conversation"])
async def test_nothing_of_others_is_shown(
    bob: User, her_client: AsyncClient, conversation: AgentInstance, instance: bool
) -> None:
    await caught_up(her_client)
    stranger = AsyncClient()
    assert (await get(stranger)).status_code == 401
    await stranger.aforce_login(bob)
    if instance:
        assert (await get(stranger, f"?instance={conversation.pk}")).status_code == 404
        return
    await db(say, conversation, "q2", "a2")
    assert await caught_up(stranger, "?after=0") == ([], 0)


async def test_a_member_follows_until_the_membership_ends(
    alice: User, bob: User, conversation: AgentInstance, make_instance: Callable[..., AgentInstance]
) -> None:
    other = await db(make_instance, alice, "other")
    member = await db(lambda: add_member(conversation, bob.username, Role.READER, by=alice.pk))
    his = AsyncClient()
    await his.aforce_login(bob)
    response = await get(his, f"?instance={conversation.pk}")
    shown: list[Named] = []
    async with asyncio.timeout(10):  # less than the pause after which authority is asked for anyway
        async for kind, _, data in EventsReader(response):
            if kind == "ready":
                await db(say, other, "elsewhere", "a")
                await db(say, conversation, "q2", "a2")
            elif named(data) == ("message", "insert", "a2"):
                await db(lambda: remove_member(conversation, member.pk))
                await db(say, conversation, "secret", "a3")
            if kind == "change":
                shown.append(named(data))
    assert ("message", "insert", "q2") in shown
    assert {"elsewhere", "secret", "a3"}.isdisjoint(key for _, _, key in shown)
    assert (await get(his, f"?instance={conversation.pk}")).status_code == 404
    assert await caught_up(his, "?after=0") == ([], 0), "it is the owner's feed, not the member's"


async def test_a_stream_ends_when_its_token_is_revoked(alice: User, settings: Any) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.2
    _, secret = await db(lambda: api_tokens.create_token(alice, name="mine"))
    response = await get(AsyncClient(), Authorization=f"Bearer {secret}")
    async with asyncio.timeout(20):
        async for kind, _, _ in EventsReader(response):
            if kind == "heartbeat":
                await db(lambda: ApiToken.objects.update(revoked_at=timezone.now()))


async def test_a_person_has_so_many_live_reads(her_client: AsyncClient, settings: Any) -> None:
    settings.THINK_DURABLE_STREAMS = {"readers": 1}
    first = await get(her_client)
    events: AsyncIterator[Any] = aiter(EventsReader(first))
    await anext(events)
    assert (await get(her_client)).status_code == 429
    await first._iterator.aclose()
    await caught_up(her_client)


async def test_what_is_not_kept_is_gone_and_the_rest_is_whole(
    her_client: AsyncClient, alice: User, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db(open_feed, alice.pk)
    await db(say, conversation, "q2", "a2")
    monkeypatch.setattr(reading, "KEPT_CHANGES", 2)
    assert await db(lambda: prune_feeds(dry_run=True)) == 1
    assert await db(prune_feeds) == 4
    assert await db(prune_feeds) == 0
    response = await get(her_client, "?after=3&follow=false")
    assert response.status_code == 410
    assert response.json()["code"] == "feed_gone"
    found, position = await caught_up(her_client, "?after=4")
    assert (len(found), position) == (2, 6)
    for wrong in (7, 10**15):
        assert (await get(her_client, f"?after={wrong}")).status_code == 410


@pytest.mark.parametrize("is_watched", [False, True])
async def test_nothing_is_left_of_the_feed_of_a_person_who_is_deleted(
    alice: User, conversation: AgentInstance, is_watched: bool
) -> None:
    """Also where some other app listens to all deletions, so that Django deletes row by row, in another order."""

    def listen(**_facts: Any) -> None:
        pass

    await db(open_feed, alice.pk)
    await db(say, conversation, "q2", "a2")
    if is_watched:
        post_delete.connect(listen)
    try:
        await sync_to_async(alice.delete)()
    finally:
        post_delete.disconnect(listen)
    assert await db(FeedHead.objects.count) == 0
    assert await db(FeedChange.objects.count) == 0


async def test_a_feed_without_readers_is_closed_and_opened_anew(
    her_client: AsyncClient, alice: User, conversation: AgentInstance
) -> None:
    await db(open_feed, alice.pk)
    await db(say, conversation, "q2", "a2")
    long_ago = timezone.now() - timedelta(days=reading.IDLE_DAYS + 1)
    await db(lambda: FeedHead.objects.update(used_at=long_ago))
    assert await db(prune_feeds) == 7
    await db(say, conversation, "q3", "a3")
    assert await db(FeedChange.objects.count) == 0
    assert (await get(her_client, "?after=6")).status_code == 200, "it was at the end when it was closed"
    await db(say, conversation, "q4", "a4")
    found, _ = await caught_up(her_client, "?after=6")
    assert ("message", "insert", "q4") in found
    assert ("message", "insert", "q3") not in found
