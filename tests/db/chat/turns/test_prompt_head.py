"""The beginning of a conversation's requests stays as it was sent, so that a provider's cache serves it."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from chat.think import Think, Tool, tool
from sessions_app.models import Message
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

from .agents import MODELS
from .conftest import MakeRoom, Room, status_of


@tool
def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}: " + "word " * 400


class Looker(Think):
    """Looks pages up, whose text is longer than old outputs are."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [look]


class ReadTimeLooker(Looker):
    """Cuts in every turn."""

    context_policy = "read-time"


async def look_up(room: Room, pages: Sequence[int]) -> None:
    for page in pages:
        assert status_of(await room.say(f'call tool look {{"page": {page}}}\nsay: ok')) == "completed"


def is_continued(before: JSONObject, later: JSONObject) -> bool:
    """Whether a request begins with all of another one."""
    count = len(before["messages"])
    return later["messages"][:count] == before["messages"] and later.get("tools") == before.get("tools")


def longest_outputs(request: JSONObject) -> list[int]:
    return [len(message["content"]) for message in request["messages"] if message["role"] == "tool"]


async def test_each_request_begins_with_the_one_before(make_room: MakeRoom) -> None:
    room = make_room("looker")
    await look_up(room, range(6))
    requests = room.model.requests
    assert len(requests) == 12
    assert all(is_continued(one, next_one) for one, next_one in pairwise(requests))


async def test_the_rule_of_each_turn_is_there_by_its_name(make_room: MakeRoom) -> None:
    room = make_room("read-time-looker")
    await look_up(room, range(6))
    requests = room.model.requests
    kept = [is_continued(one, next_one) for one, next_one in pairwise(requests)]
    assert not all(kept)
    assert max(longest_outputs(requests[-1])[:2]) <= 500


async def test_after_a_long_pause_old_outputs_are_cut(make_room: MakeRoom) -> None:
    room = make_room("looker")
    await look_up(room, range(4))
    before = room.model.requests[-1]
    assert min(longest_outputs(before)) > 2_000

    def move_back() -> None:
        for message in Message.objects.all():
            Message.objects.filter(pk=message.pk).update(created_at=message.created_at - timedelta(hours=2))

    await db(move_back)
    await look_up(room, [5])
    asked, answered = room.model.requests[-2:]
    assert [length > 500 for length in longest_outputs(asked)] == [False, False, False, True]
    assert is_continued(asked, answered)
    await look_up(room, [6])
    assert is_continued(answered, room.model.requests[-1])  # and the cut stays where it is
    assert all(part["output"].endswith("word ") for part in await outputs(room))


async def outputs(room: Room) -> list[Any]:
    return [part for message in await room.transcript() for part in message["parts"] if "output" in part]
