"""Titles that a model writes after the first exchange (B5.4)."""

from collections.abc import AsyncGenerator
from decimal import Decimal
from typing import Any

import pytest

from chat.conversations.changes import rename_instance
from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.errors import ModelAuth, ModelError, Overloaded
from chat.instances.rows import ensure_instance, find_instance
from chat.llm.providers import LOCAL_MODEL_NAME
from chat.models import AgentInstance, SideCall
from fibers.models import Fiber
from fibers.testing import run_until_idle
from sessions_app.messages.usage import set_budget
from sessions_app.models import Session
from tests.db.chat.turns.agents.everyday import Titled
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of
from .small_model import SmallModel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def namer(monkeypatch: pytest.MonkeyPatch) -> SmallModel:
    model = SmallModel("test/namer", "Balcony tomatoes")
    monkeypatch.setattr(Titled, "title_model", model)
    return model


async def row(room: Room) -> AgentInstance:
    return await db(lambda: AgentInstance.objects.get(name=room.key.name, parent=None))


async def test_a_title_after_the_first_exchange(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")
    await room.say("say: Water them daily.")
    assert (await row(room)).title == "Balcony tomatoes"
    asked = str(namer.requests[0].messages)
    assert "say: Water them daily." in asked
    await room.say("say: more")
    assert len(namer.requests) == 1


async def test_no_title_beyond_the_budget(make_room: MakeRoom, namer: SmallModel, settings: Any) -> None:
    settings.THINK_PRICES = {"scripted/model": {"input": 1, "output": 0}}
    room = make_room("titled")
    admission = await room.admit("usage: 1000000 0\nsay: hi")
    await db(set_budget, str(admission.turn.session_id), Decimal("0.5"))
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(admission.turn.pk)) == "completed"
    assert namer.requests == []
    assert (await row(room)).title != "Balcony tomatoes"


async def test_characters_become_100(make_room: MakeRoom, namer: SmallModel) -> None:
    namer.says = "<think>hm</think>\n" + "x" * 150
    room = make_room("titled")
    await room.say("say: hi")
    assert (await row(room)).title == "x" * 97 + "..."


async def test_a_persons_title_is_untouched(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")
    await db(lambda: ensure_instance(room.key, title="Mine"))
    await room.say("say: hi")
    assert (await row(room)).title == "Mine"
    assert namer.requests == []


async def test_a_title_that_a_person_gives_meanwhile_stays(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")

    class Slow(SmallModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            await db(lambda: rename_instance(AgentInstance.objects.get(), "Mine"))
            async for event in super().stream(request):
                yield event

    namer.__class__ = Slow
    await room.say("say: hi")
    assert len(namer.requests) == 1
    assert (await row(room)).title == "Mine"


async def test_first_words_give_way_to_a_title(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")
    await db(lambda: ensure_instance(room.key, title="say: hi", title_is_provisional=True))
    await room.say("say: hi")
    found = await row(room)
    assert (found.title, found.title_is_provisional) == ("Balcony tomatoes", False)


@pytest.mark.parametrize("says", ["Title", "", "<think>", "Sure, here is a title for you"])
async def test_a_stub_is_refused_and_the_list_shows_what_it_showed(
    make_room: MakeRoom, namer: SmallModel, says: str
) -> None:
    namer.says = says
    room = make_room("titled")
    await db(lambda: ensure_instance(room.key, title="say: hi", title_is_provisional=True))
    turn = await room.say("say: hi")
    assert status_of(turn) == "completed"
    assert (await row(room)).title == "say: hi"
    assert len(namer.requests) == 1


async def test_a_very_small_model_has_to_pass_a_stricter_look(
    make_room: MakeRoom, namer: SmallModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namer, "name", LOCAL_MODEL_NAME)
    room, other = make_room("titled"), make_room("titled", name="other")
    await room.say("say: hi")  # nothing of tomatoes in it
    assert (await row(room)).title == ""
    await other.say("say: hi\nI have a balcony with tomatoes")
    assert (await row(other)).title == "Balcony tomatoes"


async def test_a_title_is_tried_three_times(make_room: MakeRoom, namer: SmallModel) -> None:
    namer.errors = [Overloaded(), Overloaded()]
    room = make_room("titled")
    await room.say("say: hi")
    assert (await row(room)).title == "Balcony tomatoes"
    assert len(namer.requests) == 3


@pytest.mark.parametrize(("error", "asked"), [(Overloaded(), 3), (ModelAuth(), 1)])
async def test_failure_is_silent(make_room: MakeRoom, namer: SmallModel, error: ModelError, asked: int) -> None:
    namer.errors = [error] * 9
    room = make_room("titled")
    turn = await room.say("say: hi")
    assert (status_of(turn), turn.error_text) == ("completed", "")
    assert len(namer.requests) == asked
    assert (await row(room)).title == ""
    assert await db(lambda: Fiber.objects.get(name="chat.title").status) == "completed"


async def test_the_lane_is_free_and_the_order_stays(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")
    admission = await room.admit("say: hi")
    active_at = (await row(room)).active_at
    await run_until_idle(skip_delays=True)
    found = await row(room)
    assert (found.title, found.active_at) == ("Balcony tomatoes", active_at)
    fiber = await db(lambda: Fiber.objects.get(name="chat.title"))
    assert fiber.lane is None
    assert admission.turn.instance_id == found.pk


async def test_only_after_exactly_one_message_of_a_person(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")
    await room.say("error 400")
    assert namer.requests == []  # nothing was answered


async def test_not_after_a_second_message(
    make_room: MakeRoom, namer: SmallModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room("titled")
    monkeypatch.setattr(Titled, "title_model", "none")
    await room.say("say: one")
    monkeypatch.setattr(Titled, "title_model", namer)
    assert status_of(await room.say("say: two")) == "completed"
    assert namer.requests == []


async def test_sub_agents_and_agents_that_want_none(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")
    room.key = room.key.below("titled", "child")
    await room.say("say: hi")
    await make_room("plain", name="untitled").say("say: hi")
    assert namer.requests == []


async def test_a_conversation_that_was_cleared_meanwhile_keeps_its_name(make_room: MakeRoom, namer: SmallModel) -> None:
    room = make_room("titled")

    class Clearing(SmallModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            await room.handle.clear()
            async for event in super().stream(request):
                yield event

    namer.__class__ = Clearing
    await room.say("say: hi")
    assert (await row(room)).title == ""


async def test_a_title_is_paid(make_room: MakeRoom, namer: SmallModel, settings: Any) -> None:
    settings.THINK_PRICES = {"test/namer": {"input": 3, "output": 0}}
    room = make_room("titled")
    turn = await room.say("usage: 0 0\nsay: hi")
    assert turn.cost == 0
    assert (await db(Session.objects.get)).cost == 3
    counted = await db(SideCall.objects.get)
    assert (counted.kind, counted.model_name, counted.cost) == ("title", "test/namer", Decimal(3))
    assert await db(lambda: counted.instance) == await db(find_instance, room.key)


async def test_settings_name_the_model(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_TITLE_MODEL = ""  # the agent's own
    room = make_room("plain")
    await room.say("say: hello there")
    assert len(room.model.requests) == 2
