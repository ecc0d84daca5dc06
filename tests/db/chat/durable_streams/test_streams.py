"""Durable streams where the published suite does not look: strangers, limits, removal, several readers."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.durable_streams.finding import remove_ended
from chat.http import live_reads
from chat.instances import watching
from chat.models import DurableStream, StreamEntry, StreamProducer, StreamSubscription, SubscriptionLink
from chat.operations.retention import POLICIES
from chat.operations.table_sizes import database_size
from tests.db.chat.access_rows import all_rows
from tests.db.chat.durable_streams.client import JSON, Program, events_of
from thinkproject.web.body_limits import limit_of

pytestmark = pytest.mark.django_db(transaction=True)

SUBSCRIPTION = json.dumps({"type": "pull-wake", "streams": ["log"], "wake_stream": "wakes"}).encode()
REQUESTS: list[tuple[str, str, bytes, dict[str, str]]] = [
    ("GET", "log", b"", {}),
    ("GET", "log?offset=now&live=long-poll", b"", {}),
    ("GET", "log?offset=-1&live=sse", b"", {}),
    ("HEAD", "log", b"", {}),
    ("POST", "log", b"his", {}),
    ("POST", "log", b"", {"Stream_Closed": "true"}),
    ("DELETE", "log", b"", {}),
    ("PUT", "fork", b"", {"Stream_Forked_From": "/v1/stream/log"}),
    ("GET", "__ds/subscriptions/hers", b"", {}),
    ("DELETE", "__ds/subscriptions/hers", b"", {}),
    ("POST", "__ds/subscriptions/hers/streams", b'{"streams": ["log"]}', {}),
    ("DELETE", "__ds/subscriptions/hers/streams/log", b"", {}),
    ("POST", "__ds/subscriptions/hers/claim", b'{"worker": "w"}', {}),
]


async def filled(program: Program) -> None:
    assert (await program.put("log", b"secret")).status_code == 201
    assert (await program.put("wakes", type_=JSON)).status_code == 201
    assert (await program.send("PUT", "__ds/subscriptions/hers", SUBSCRIPTION)).status_code == 201


async def test_strangers_find_nothing_and_change_nothing(her_program: Program, his_program: Program) -> None:
    await filled(her_program)
    stranger = Program()
    before = await sync_to_async(all_rows)()
    for method, path, body, headers in REQUESTS:
        reply = await his_program.send(method, path, body, **headers)
        assert (reply.status_code, b"secret" in reply.content) == (404, False), (method, path, reply.content)
        reply = await stranger.send(method, path, body, **headers)
        assert (reply.status_code, b"secret" in reply.content) == (401, False), (method, path, reply.content)
    for work in ("callback", "ack", "release"):
        reply = await his_program.send("POST", f"__ds/subscriptions/hers/{work}", b'{"wake_id": "", "generation": 0}')
        assert (reply.status_code, json.loads(reply.content)["error"]["code"]) == (401, "UNAUTHORIZED")
    after = await sync_to_async(all_rows)()
    for table in ("think_chat.ApiToken",):  # when a token was last used
        before.pop(table), after.pop(table)
    assert after == before
    # Each of these is right when she asks.
    assert await her_program.read("log") == b"secret"
    assert (await his_program.put("log", b"his own")).status_code == 201
    assert await her_program.read("log") == b"secret"


async def test_a_limited_token_opens_this_door_alone(alice: User, her_program: Program) -> None:
    everything = await Program(alice, scopes=()).sign_in()
    assert (await everything.put("log")).status_code == 201
    assert (await her_program.put("log")).status_code == 200
    for program, status in ((everything, 200), (her_program, 401)):
        reply = await program.http.get("/api/v1/instances", headers=program.headers)
        assert reply.status_code == status
        assert (
            await program.http.get("/agents/assistant/a/get-messages", headers=program.headers)
        ).status_code == status


async def test_a_cookie_works_for_our_own_pages_alone(alice: User) -> None:
    page = Program()
    await page.http.aforce_login(alice)
    assert (await page.put("log", b"x", Origin="https://evil.example")).status_code == 403
    assert (await page.put("log", b"x")).status_code == 403
    reply = await page.put("log", b"x", Origin="http://testserver")
    assert reply.status_code == 201
    assert reply["Access-Control-Allow-Origin"] == "*"
    assert not reply.has_header("Access-Control-Allow-Credentials")  # so no other page reads what a cookie gets


async def test_no_person_fills_the_disk(her_program: Program, his_program: Program, settings: Any) -> None:
    settings.THINK_DURABLE_STREAMS = {"streams": 3, "bytes": 20_000, "append_bytes": 5_000}
    assert limit_of("/v1/stream/a/b") == 5_000
    for name in ("a", "b", "c"):
        assert (await her_program.put(name)).status_code == 201
    reply = await her_program.put("d")
    assert (reply.status_code, int(reply["Retry-After"]) > 0) == (429, True)
    statuses = [(await her_program.send("POST", "a", b"x" * 4_000)).status_code for _ in range(6)]
    assert statuses == [204, 204, 204, 204, 429, 429]
    # Neither small appends nor the names of many writers get round it.
    small = [(await her_program.send("POST", "b", b"x")).status_code for _ in range(12)]
    assert set(small) == {204, 429}
    producer = {"Producer_Epoch": "0", "Producer_Seq": "0"}
    assert (await her_program.send("POST", "c", b"x", Producer_Id="p" * 200, **producer)).status_code == 429
    assert await StreamProducer.objects.acount() == 0
    assert (await his_program.put("d", b"x" * 4_000)).status_code == 201
    # What is deleted makes room.
    assert (await her_program.send("DELETE", "a")).status_code == 204
    assert (await her_program.send("POST", "b", b"x")).status_code == 204


async def test_requests_and_live_reads_are_limited(her_program: Program, settings: Any) -> None:
    await her_program.put("log")
    settings.THINK_DURABLE_STREAMS = {"readers": 2, "long_poll_seconds": 20.0}
    polls = [asyncio.create_task(her_program.send("GET", "log?offset=now&live=long-poll")) for _ in range(2)]
    async with asyncio.timeout(10):
        while sum(live_reads._READERS.values()) < 2:  # noqa: ASYNC110 - of this process, and publishes nothing
            await asyncio.sleep(0.02)
    assert (await her_program.send("GET", "log?offset=now&live=long-poll")).status_code == 429
    assert (await her_program.send("GET", "log?offset=now&live=sse")).status_code == 429
    assert (await her_program.send("POST", "log", b"now")).status_code == 204
    assert [(await poll).content for poll in polls] == [b"now", b"now"]
    assert live_reads._READERS == {}
    settings.THINK_DURABLE_STREAMS = {"requests_per_minute": 1}
    assert {(await her_program.send("GET", "log")).status_code for _ in range(3)} == {429}


async def test_an_event_stream_ends_after_a_while(her_program: Program, settings: Any) -> None:
    await her_program.put("log", b"x")
    settings.THINK_DURABLE_STREAMS = {"sse_seconds": 0.3}
    reply = await her_program.send("GET", "log?offset=-1&live=sse")
    async with asyncio.timeout(10):
        events = await events_of(reply)
    assert events.count("event: data") == 1
    assert "streamClosed" not in events
    assert live_reads._READERS == {}


async def test_a_hint_wakes_readers_and_a_look_is_the_net(
    her_program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    await her_program.put("log", b"x")

    async def polled() -> bytes:
        poll = asyncio.create_task(her_program.send("GET", "log?offset=now&live=long-poll"))
        await asyncio.sleep(0.3)  # so that it waits: what is written before is not after its offset
        await her_program.send("POST", "log", b"now")
        async with asyncio.timeout(20):
            return bytes((await poll).content)

    with monkeypatch.context() as patch:
        patch.setattr(watching, "POLL_SECONDS", 60.0)
        assert await polled() == b"now"
    with monkeypatch.context() as patch:
        patch.setattr("chat.durable_streams.waking.notify_on_commit", lambda *_: None)  # every hint is lost
        assert await polled() == b"now"


async def test_a_stream_that_is_deleted_ends_its_readers(her_program: Program) -> None:
    await her_program.put("log", b"x")
    poll = asyncio.create_task(her_program.send("GET", "log?offset=now&live=long-poll"))
    reply = await her_program.send("GET", "log?offset=now&live=sse")
    events = asyncio.create_task(events_of(reply))
    await asyncio.sleep(0.2)  # so that both wait; they end either way
    await her_program.send("DELETE", "log")
    async with asyncio.timeout(10):
        assert (await poll).status_code == 410
        assert "streamClosed" not in await events


@pytest.mark.parametrize("path", ["a%00b", "__ds", "__ds/other", "x" * 401])
async def test_odd_paths_are_refused(her_program: Program, path: str) -> None:
    for method in ("PUT", "GET", "POST", "DELETE", "HEAD"):
        assert (await her_program.send(method, path, b"x")).status_code == 400
    for where in ("__ds/subscriptions/a%00b", "__ds/subscriptions/a%00b/streams/c%00d"):
        assert (await her_program.send("DELETE", where)).status_code == 404


async def test_a_location_leads_to_the_stream(her_program: Program) -> None:
    reply = await her_program.put("a%20b/%3F%0A", b"found")
    assert reply["Location"] == "http://testserver/v1/stream/a%20b/%3F%0A"
    assert await her_program.read(reply["Location"].partition("/v1/stream/")[2]) == b"found"


async def test_readers_of_one_position_share_what_is_read(her_program: Program, settings: Any) -> None:
    await her_program.put("log", type_=JSON)
    settings.THINK_DURABLE_STREAMS = {"sse_seconds": 30.0}
    replies = [await her_program.send("GET", "log?offset=now&live=sse") for _ in range(20)]
    reading = [asyncio.create_task(events_of(reply)) for reply in replies]
    async with asyncio.timeout(10):
        while sum(live_reads._READERS.values()) < 20:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)
    await her_program.send("POST", "log", b'[{"n": 1}, {"n": 2}]')
    await her_program.send("POST", "log", b'"last"', Stream_Closed="true")
    for events in await asyncio.gather(*reading):
        data = [line[5:] for line in events.splitlines() if line.startswith("data:[")]
        assert [value for line in data for value in json.loads(line)] == [{"n": 1}, {"n": 2}, "last"]
        assert events.rstrip().endswith('"streamClosed":true}')
    assert live_reads._READERS == {}


async def test_what_is_over_is_removed_and_so_is_all_of_a_person(alice: User, her_program: Program) -> None:
    await filled(her_program)
    await her_program.put("source", b"abc", Stream_TTL="3600")
    await her_program.put("branch", Stream_Forked_From="/v1/stream/source", Stream_Expires_At="2090-01-01T00:00:00Z")
    await her_program.send("POST", "branch", b"d", Producer_Id="p", Producer_Epoch="0", Producer_Seq="0")
    assert await sync_to_async(remove_ended)() == 0
    await DurableStream.objects.filter(path="source").aupdate(expires_at="2020-01-01T00:00:00Z")
    assert (await her_program.send("GET", "source")).status_code == 404
    assert await sync_to_async(remove_ended)(dry_run=True) == 1
    policy = next(each for each in POLICIES if each.name == "durable-streams")
    assert await sync_to_async(policy.prune)() == 1
    assert (await her_program.send("GET", "source")).status_code == 410
    assert await her_program.read("branch") == b"abcd"
    await DurableStream.objects.filter(path="branch").aupdate(expires_at="2020-01-01T00:00:00Z")
    assert await sync_to_async(policy.prune)() == 1
    assert not await DurableStream.objects.filter(path__in=["source", "branch"]).aexists()
    await her_program.put("fork", Stream_Forked_From="/v1/stream/log")
    sizes = await sync_to_async(database_size)()
    assert "entries of durable streams" in {each.what for each in sizes.tables}
    await sync_to_async(alice.delete)()
    for model in (DurableStream, StreamEntry, StreamProducer, StreamSubscription, SubscriptionLink):
        assert not await model._default_manager.aexists(), model
