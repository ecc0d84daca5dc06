"""What a conversation's journal holds of its requests: each once, exactly, also after crashes and deletions."""

import pytest

from chat.models import Turn
from chat.reads.provider_requests import ProviderRequest, provider_requests
from chat.turns.state.sent_requests import sent_before
from fibers.models import FiberStep
from fibers.testing import crash_after
from tests.db.chat.turns.agents.answering import Banker
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)
SCRIPT = "say: Of {number} much could be said, {words}."
WORDS = "word " * 60
BANKER = Banker.route_name()


def requests_of(turn: Turn) -> list[ProviderRequest]:
    records = list(FiberStep.objects.filter(fiber_id=turn.fiber_id).order_by("pk").values_list("step_key", "value"))
    return provider_requests(records, sent_before(turn.session_id, turn.position, records))


async def talk(room: Room, turns: int, *, first: int = 0) -> None:
    for number in range(first, first + turns):
        await room.say(SCRIPT.replace("{number}", str(number)).replace("{words}", WORDS))


async def journal_bytes() -> int:
    return await db(lambda: sum(len(dump(value)) for value in FiberStep.objects.values_list("value", flat=True)))


async def check(room: Room) -> None:
    def found() -> list[ProviderRequest]:
        return [request for turn in Turn.objects.order_by("position") for request in requests_of(turn)]

    asked = await db(found)
    assert all(request.is_exact for request in asked)
    assert [request.body for request in asked] == room.model.requests


async def test_the_journal_grows_with_the_conversation(make_room: MakeRoom) -> None:
    room = make_room()
    await talk(room, 12)
    short = await journal_bytes()
    await talk(room, 12, first=12)
    assert await journal_bytes() < 2.7 * short
    await check(room)


async def test_a_request_of_long_ago_is_read_by_one_query_more(make_room: MakeRoom) -> None:
    room = make_room()
    await talk(room, 6)

    def count() -> int:
        last = Turn.objects.order_by("-position")[0]
        with statements() as found:
            requests_of(last)
        return len(found)

    assert await db(count) == 2


@pytest.mark.parametrize("at", ["model:0", "call:one", "model:1"])
async def test_a_turn_that_crashes_goes_on_from_the_requests_before_it(make_room: MakeRoom, at: str) -> None:
    room = make_room(BANKER)
    await talk(room, 3)
    with crash_after(at):
        await room.say('call tool add {"a": 1, "b": 2} id=one\nsay: It is {result}.')
    await talk(room, 2)

    def found() -> list[ProviderRequest]:
        return [request for turn in Turn.objects.order_by("position") for request in requests_of(turn)]

    asked = await db(found)
    assert all(request.is_exact for request in asked)
    assert len(asked) >= 7


async def test_without_the_turn_before_it_is_seen_that_something_is_missing(make_room: MakeRoom) -> None:
    room = make_room()
    await talk(room, 2)

    def lose() -> list[bool]:
        first, last = Turn.objects.order_by("position")
        FiberStep.objects.filter(fiber_id=first.fiber_id).delete()
        return [request.is_exact for request in requests_of(last)]

    assert await db(lose) == [False]
