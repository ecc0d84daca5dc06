"""The model knows when a message was sent and in which zone; schedules without a zone are in the person's."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.models import Turn
from fibers.testing import crash_after, run_until_idle
from sessions_app.models import Message as MessageRow
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.planning import no_tasks, rows
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.zones import in_zone
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room

__all__ = ["no_tasks"]  # a fixture


def sent_lines(request: JSONObject) -> list[str]:
    """The last line of each message of the user's, as the provider gets it."""
    return [item["content"].rpartition("\n")[2] for item in request["messages"] if item["role"] == "user"]


async def test_a_model_reads_date_and_zone_below_the_message_and_the_prefix_stays(make_room: MakeRoom) -> None:
    room = make_room("plain")
    with in_zone("Europe/Vienna"):
        await room.say("say: one")
    await room.say("say: two")
    first, second = room.model.requests[-2:]
    [line] = sent_lines(first)
    assert line.startswith("[Sent ")
    assert line.endswith((" Europe/Vienna, UTC+01:00]", " Europe/Vienna, UTC+02:00]"))
    assert sent_lines(second)[1].endswith(" UTC; the user's time zone is not known]")
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert "[Sent" not in str([item for item in first["messages"] if item["role"] == "system"])


async def test_an_attempt_on_another_day_sends_the_same(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    room = make_room("plain")
    with in_zone("Asia/Tokyo"):
        await room.admit('say: Now.\ncall tool add {"a": 1, "b": 2} id=one\nsay: Done.')
    with crash_after("model:0"):
        await run_until_idle()
    in_two_days = timezone.now() + timedelta(days=2)
    monkeypatch.setattr("django.utils.timezone.now", lambda: in_two_days)
    await run_until_idle(skip_delays=True)
    first, again = room.model.requests
    assert again["messages"][: len(first["messages"])] == first["messages"]
    assert sent_lines(again)[0].endswith("Asia/Tokyo, UTC+09:00]")


async def test_a_schedule_without_a_zone_is_in_the_persons(planner_room: Room) -> None:
    desk = Desk(planner_room)
    with in_zone("Europe/Vienna"):
        await planner_room.say('call tool create_schedule {"prompt": "x", "cron": "0 9 * * *"} id=one\nsay: {result}')
    sentence = (await db(ToolCallRecord.objects.get)).question["sentence"]
    assert ", 09:00" in sentence
    assert sentence.endswith("(Europe/Vienna)?")
    with in_zone("Asia/Tokyo"):  # approved by someone elsewhere: what was shown counts
        await desk.reply("one", is_approved=True)
    [made] = await db(rows)
    assert (made.spec, made.zone) == ("0 9 * * *", "Europe/Vienna")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ('"at": "2040-05-01T09:00", "zone": "America/New_York"', ("09:00", "America/New_York", "15:00", "Vienna).")),
        ('"cron": "30 22 * * *", "zone": "Asia/Tokyo"', ("22:30", "Asia/Tokyo", ":30", "Europe/Vienna).")),
        ('"at": "2040-05-01T09:00", "zone": "Europe/Berlin"', ("09:00", "(Europe/Berlin)?")),
        ('"in_minutes": 60', ("(Europe/Vienna)?",)),
    ],
)
async def test_a_question_shows_the_time_in_both_zones(planner_room: Room, given: str, shown: tuple[str, ...]) -> None:
    with in_zone("Europe/Vienna"):
        await planner_room.say(f'call tool create_schedule {{"prompt": "x", {given}}} id=one\nsay: {{result}}')
    sentence = (await db(ToolCallRecord.objects.get)).question["sentence"]
    assert all(piece in sentence for piece in shown), sentence
    assert ("For you that is" in sentence) is (len(shown) == 4)


async def test_an_instant_that_is_over_is_refused_in_the_persons_zone(planner_room: Room) -> None:
    desk = Desk(planner_room)
    with in_zone("Asia/Tokyo"):
        await planner_room.say('call tool create_schedule {"prompt": "x", "at": "2025-01-02T09:00"} id=one\nsay: ok')
    part: Any = await desk.part("one")
    assert (part["state"], await db(rows)) == ("output-error", [])
    assert "2025-01-02 09:00 (Asia/Tokyo) is over" in part["errorText"]


async def test_the_instant_is_that_of_the_row(make_room: MakeRoom) -> None:
    room = make_room("plain")
    admission = await room.admit("say: x")
    row = MessageRow.objects.filter(message_id__in=admission.turn.input_ids)
    await db(lambda: row.update(created_at=datetime.fromisoformat("2024-02-29T23:59:00+00:00")))
    await run_until_idle()
    assert sent_lines(room.model.requests[-1]) == [
        "[Sent Thursday 2024-02-29 23:59 UTC; the user's time zone is not known]"
    ]
    assert await db(Turn.objects.filter(fiber__status="completed").count) == 1
