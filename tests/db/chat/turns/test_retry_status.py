"""A model that is asked again after a refusal: who waits learns why, for how long, and how often it was tried."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from chat.conversations.list import instance_page
from chat.models import Turn
from chat.reads.transcripts import turn_view
from chat.streams.reader import read
from chat.testing import worker
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import load

from .conftest import MakeRoom, Room, status_of


async def statuses(turn_id: str) -> list[Any]:
    chunks = [load(record.text) for record in await read(turn_id)]
    found = [chunk for chunk in chunks if chunk["type"] == "data-think-status"]
    return [chunk for chunk in found if chunk["data"]["kind"] == "retry"]


async def waiting(room: Room, turn_id: str) -> Turn:
    async def is_waiting() -> bool:
        return bool((await room.turn(turn_id)).retry)

    await until(is_waiting)
    return await room.turn(turn_id)


@pytest.mark.parametrize(("status", "code"), [(429, "rate_limited"), (503, "overloaded")])
async def test_a_wait_for_the_model_is_sent_and_not_stored(make_room: MakeRoom, status: int, code: str) -> None:
    room = make_room("plain")
    turn = await room.say(f"error {status} retry-after-ms 20 times 2\nsay: At last.")
    assert status_of(turn) == "completed"
    sent = await statuses(turn.pk)
    assert all(chunk["transient"] for chunk in sent)
    assert [chunk["data"] for chunk in sent] == [
        {
            "kind": "retry",
            "code": code,
            "attempt": attempt,
            "attempts": 3,
            "delaySeconds": 0.02,
            "retryAt": chunk["data"]["retryAt"],
            "since": chunk["data"]["since"],
        }
        for attempt, chunk in zip((2, 3), sent, strict=True)
    ]
    assert not any(part["type"].startswith("data-") for part in (await room.transcript())[-1]["parts"])


async def test_the_list_of_turns_states_when_the_model_is_asked_again(make_room: MakeRoom) -> None:
    room = make_room("plain")
    async with worker(), asyncio.timeout(30):
        turn_id = (await room.admit("error 429 retry-after 30\nsay: Never.")).turn.pk
        turn = await waiting(room, turn_id)
        retry = turn_view(turn).retry
        assert retry is not None
        assert (retry["code"], retry["attempt"], retry["attempts"]) == ("rate_limited", 2, 3)
        assert timedelta(0) < retry["retry_at"] - timezone.now() <= timedelta(seconds=30)
        [line] = (await db(partial(instance_page, room.key.owner_id or 0))).items
        assert (line.is_running, line.retry) == (True, retry)  # the list has it as well
        assert await room.handle.abort_all_requests()  # the wait ends at once
        assert await room.handle.wait_until_stable(20)
    ended = await room.turn(turn_id)
    assert (status_of(ended), turn_view(ended).retry) == ("aborted", None)
    [line] = (await db(partial(instance_page, room.key.owner_id or 0))).items
    assert (line.is_running, line.retry) == (False, None)
    assert len(room.model.requests) == 1


async def test_an_attempt_whose_time_has_come_is_no_wait_any_more(make_room: MakeRoom) -> None:
    room = make_room("plain")
    turn = await room.say("error 429 retry-after-ms 20 times 1\nsay: At last.")
    await db(type(turn.fiber).objects.filter(pk=turn.fiber_id).update, status="running")
    assert turn_view(await room.turn(turn.pk)).retry is None


async def test_a_turn_whose_model_answers_writes_no_note(make_room: MakeRoom) -> None:
    turn = await make_room("plain").say("say: Hello.")
    assert (turn.retry, await statuses(turn.pk)) == (None, [])
