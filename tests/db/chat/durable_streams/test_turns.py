"""The log of a turn as a stream: read whole and live, in JSON mode, by its owner alone, and written by none."""

import asyncio
import json
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.utils import timezone

from chat.http.conf import http_settings
from chat.members.services import add_member, remove_member
from chat.models import Role, StreamSegment, Turn
from chat.streams.logs.log import close_logs
from tests.db.chat.access_rows import all_rows
from tests.db.chat.durable_streams.client import Program, events_of
from tests.db.chat.use_chat import end, write
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_turn_is_read_and_followed_to_its_end(her_program: Program, running: Turn) -> None:
    path = f"turns/{running.pk}"
    stored = await her_program.send("GET", path)
    messages = json.loads(stored.content)
    assert [each["type"] for each in messages] == ["start", "start-step", "finish-step"]
    assert stored["Stream-Up-To-Date"] == "true"
    assert not stored.has_header("Stream-Closed")
    head = await her_program.send("HEAD", path)
    assert head["Stream-Next-Offset"] == stored["Stream-Next-Offset"]
    again = await her_program.send("GET", path, If_None_Match=stored["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    now = await her_program.send("GET", path + "?offset=now")
    assert (now.content, now["Stream-Next-Offset"]) == (b"[]", stored["Stream-Next-Offset"])

    offset = stored["Stream-Next-Offset"]
    polled = asyncio.create_task(her_program.send("GET", f"{path}?offset={offset}&live=long-poll"))
    reply = await her_program.send("GET", f"{path}?offset=-1&live=sse")
    events = asyncio.create_task(events_of(reply))
    await asyncio.sleep(0.2)  # so that both wait; what is written before they do comes as well
    await write(running, {"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "late"})
    live = await polled
    assert [each["type"] for each in json.loads(live.content)] == ["text-start", "text-delta"]
    await end(running)
    text = await events
    data = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:[")]
    types = [each["type"] for page in data for each in page]
    assert types == ["start", "start-step", "finish-step", "text-start", "text-delta"]
    assert '"streamClosed":true' in text
    closed = await her_program.send("GET", f"{path}?offset={live['Stream-Next-Offset']}&live=long-poll")
    assert (closed.status_code, closed["Stream-Closed"]) == (204, "true")
    await close_logs()


async def test_only_its_turn_writes_it(her_program: Program, his_program: Program, running: Turn) -> None:
    path = f"turns/{running.pk}"
    before = await sync_to_async(all_rows)()
    for method, where in (("PUT", path), ("POST", path), ("DELETE", path)):
        assert (await her_program.send(method, where, b"x")).status_code == 403
        assert (await his_program.send(method, where, b"x")).status_code == 404
    for program in (his_program,):
        for method in ("GET", "HEAD"):
            assert (await program.send(method, path)).status_code == 404
    reply = await her_program.put("fork", Stream_Forked_From=f"/v1/stream/{path}")
    assert reply.status_code == 403
    body = json.dumps({"type": "pull-wake", "streams": [path], "wake_stream": "w"}).encode()
    assert (await her_program.send("PUT", "__ds/subscriptions/s", body)).status_code == 400
    after = await sync_to_async(all_rows)()
    before.pop("think_chat.ApiToken"), after.pop("think_chat.ApiToken")
    assert after == before


async def test_a_member_reads_it_and_writes_nothing(
    her_program: Program, his_program: Program, running: Turn, alice: User, bob: User
) -> None:
    path = f"turns/{running.pk}"
    member = await db(lambda: add_member(running.instance, bob.username, Role.APPROVER, by=alice.pk))
    assert await his_program.read(path) == await her_program.read(path)
    for method in ("PUT", "POST", "DELETE"):
        for where in (path, f"conversations/{running.instance_id}"):
            assert (await his_program.send(method, where, b"x")).status_code == 403
    await db(lambda: remove_member(running.instance, member.pk))
    for where in (path, f"conversations/{running.instance_id}"):
        assert (await his_program.send("GET", where)).status_code == 404


async def test_a_member_that_is_let_out_reads_nothing_more(
    his_program: Program, running: Turn, alice: User, bob: User
) -> None:
    path = f"turns/{running.pk}"
    member = await db(lambda: add_member(running.instance, bob.username, Role.READER, by=alice.pk))
    offset = (await his_program.send("GET", path))["Stream-Next-Offset"]
    polled = asyncio.create_task(his_program.send("GET", f"{path}?offset={offset}&live=long-poll"))
    reply = await his_program.send("GET", f"{path}?offset={offset}&live=sse")
    events = asyncio.create_task(events_of(reply))
    await asyncio.sleep(0.2)  # so that both wait; reads that began later are refused anyway
    await db(lambda: remove_member(running.instance, member.pk))
    text = await asyncio.wait_for(events, http_settings.stream_keep_alive_seconds / 2)
    await write(running, {"type": "text-start", "id": "t"}, {"type": "text-delta", "id": "t", "delta": "later"})
    assert (await polled).status_code == 404
    assert "text-start" not in text
    await close_logs()


async def test_offsets_of_another_life_and_a_log_that_is_gone(her_program: Program, running: Turn, alice: User) -> None:
    path = f"turns/{running.pk}"
    await StreamSegment.objects.filter(stream=running.pk).aupdate(epoch="first")
    offset = (await her_program.send("GET", path))["Stream-Next-Offset"]
    assert (await her_program.send("GET", f"{path}?offset={offset}")).content == b"[]"
    await StreamSegment.objects.filter(stream=running.pk).aupdate(epoch="second")
    assert (await her_program.send("GET", f"{path}?offset={offset}")).status_code == 410
    other = (await her_program.send("GET", path))["Stream-Next-Offset"]
    assert other != offset
    beyond = other[:-1] + "9"
    assert (await her_program.send("GET", f"{path}?offset={beyond}")).status_code == 400
    await end(running)
    assert (await her_program.send("GET", path))["Stream-Closed"] == "true"
    await StreamSegment.objects.filter(stream=running.pk).adelete()
    await close_logs()
    await Turn.objects.filter(pk=running.pk).aupdate(finished_at=timezone.now() - timedelta(days=3))
    assert (await her_program.send("GET", path)).status_code in {200, 410}
