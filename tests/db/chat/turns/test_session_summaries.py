"""Summaries for people, written beside the turns (B5.5, B1.4)."""

from collections.abc import AsyncGenerator
from decimal import Decimal
from typing import Any

import pytest

from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.errors import InputInvalid, ModelAuth, ModelError, Overloaded, QuotaExceeded
from chat.llm.providers import LOCAL_MODEL_NAME
from chat.models import AgentInstance, SideCall
from chat.turns.background import summaries
from chat.turns.background.summaries import request_summary, start_summary, summary_work
from fibers.models import Fiber
from fibers.testing import run_until_idle
from sessions_app.compactions.summaries import SummaryView, find_summary, write_summary
from sessions_app.messages import services
from sessions_app.messages.usage import set_budget
from sessions_app.models import Session
from tests.db.chat.turns.agents.everyday import Summarised
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of
from .small_model import SmallModel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def teller(monkeypatch: pytest.MonkeyPatch) -> SmallModel:
    model = SmallModel("test/teller", "About tea.")
    monkeypatch.setattr(Summarised, "summary_model", model)
    return model


@pytest.fixture
def told_instances(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the owner's open pages are sent."""
    received: list[str] = []
    monkeypatch.setattr(summaries, "notify_conversation", lambda _owner_id, instance_id: received.append(instance_id))
    return received


async def session_of(room: Room) -> str:
    return str(await db(lambda: AgentInstance.objects.get(name=room.key.name, parent=None).session_id))


async def summary_of(room: Room) -> SummaryView | None:
    return await db(find_summary, await session_of(room))


async def text_of(room: Room) -> str:
    found = await summary_of(room)
    assert found is not None
    return found.text


async def ask_for_one(room: Room) -> str:
    instance = await db(lambda: AgentInstance.objects.get(name=room.key.name))
    return await db(request_summary, instance, str(instance.session_id))


async def test_a_summary_is_written_beside_the_turn(
    make_room: MakeRoom, teller: SmallModel, told_instances: list[str]
) -> None:
    room = make_room("summarised")
    turn = await room.say("say: Green tea.")
    assert status_of(turn) == "completed"
    found = await summary_of(room)
    assert found is not None
    assert (found.text, found.model_name, found.leaf_id) == ("About tea.", "test/teller", turn.assistant_id)
    assert found.is_current
    assert len(told_instances) == 1
    kept = await room.handle.get_session()
    assert kept is not None
    assert kept.summary == "About tea."


async def test_one_begins_with_the_first_step_and_none_with_the_others(make_room: MakeRoom, teller: SmallModel) -> None:
    room = make_room("summarised")
    await room.say('call: add {"a": 1, "b": 2}\n---\nsay: Three.')
    # The one of the first step waited until this test's only runner was free: then all was said already.
    fibers = await db(lambda: list(Fiber.objects.filter(name="chat.summary").values_list("status", flat=True)))
    assert fibers == ["completed"]
    assert len(teller.requests) == 1


async def test_the_first_step_reports_the_topic(
    make_room: MakeRoom, teller: SmallModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room("summarised")
    seen: list[str] = []

    def begin(key: Any, session_id: str) -> None:
        start_summary(key, session_id)
        seen.append(Fiber.objects.get(name="chat.summary").status)

    monkeypatch.setattr("chat.turns.execution.runner.start_summary", begin)
    await room.say("say: Green tea.")
    assert seen == ["pending"]  # before the answer, which nothing holds up


@pytest.mark.parametrize(
    "silenced", ["chat.turns.execution.runner.start_summary", "chat.turns.execution.after_turn.start_summary"]
)
async def test_at_the_first_step_and_at_the_end(
    make_room: MakeRoom, teller: SmallModel, monkeypatch: pytest.MonkeyPatch, silenced: str
) -> None:
    room = make_room("summarised")
    monkeypatch.setattr(silenced, lambda *_: None)
    await room.say("say: Green tea.")
    found = await summary_of(room)
    assert found is not None
    assert found.is_current


async def test_the_model_gets_new_messages_with_the_former_summary(make_room: MakeRoom, teller: SmallModel) -> None:
    room = make_room("summarised")
    await room.say("say: Green tea.")
    teller.says = "About tea and cake."
    await room.say("say: Cake.")
    assert "About tea." in teller.asked[1]
    assert "Green tea." not in teller.asked[1]
    assert "Cake." in teller.asked[1]
    found = await summary_of(room)
    assert found is not None
    assert found.text == "About tea and cake."


async def test_where_nothing_is_new_no_model_is_called(make_room: MakeRoom, teller: SmallModel) -> None:
    room = make_room("summarised")
    await room.say("say: Green tea.")
    await db(start_summary, room.key, await session_of(room))
    await run_until_idle(skip_delays=True)
    assert len(teller.requests) == 1


async def test_off_by_default_and_for_sub_agents(make_room: MakeRoom, teller: SmallModel) -> None:
    child = make_room("summarised")
    child.key = child.key.below("summarised", "child")
    await child.say("say: hi")
    await make_room("plain", name="other").say("say: hi")
    assert teller.requests == []
    assert not await db(lambda: Fiber.objects.filter(name="chat.summary").exists())


async def test_settings_name_the_model(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_SUMMARY_MODEL = ""  # the agent's own
    room = make_room("plain")
    await room.say("say: hello there")
    assert len(room.model.requests) == 2
    found = await summary_of(room)
    assert found is not None
    assert found.model_name == room.model.name


@pytest.mark.parametrize(("error", "asked"), [(Overloaded(), 3), (ModelAuth(), 1)])
async def test_failure_is_silent_and_holds_up_nothing(
    make_room: MakeRoom, teller: SmallModel, error: ModelError, asked: int
) -> None:
    teller.errors = [error] * 9
    room = make_room("summarised")
    turn = await room.say("say: hi")
    assert (status_of(turn), turn.error_text) == ("completed", "")
    assert len(teller.requests) == asked
    assert await summary_of(room) is None
    work = await db(lambda: summary_work(turn.session_id, since=None))
    assert (work.state, work.error) == ("", "")


async def test_a_person_asks_for_one_where_none_is_written_unasked(make_room: MakeRoom, teller: SmallModel) -> None:
    room = make_room("plain")
    await room.say("say: Green tea.")
    fiber_id = await ask_for_one(room)
    assert await ask_for_one(room) == fiber_id  # one that waits is enough
    work = await db(summary_work, await session_of(room), since=None)
    assert work.state == "waiting"
    await run_until_idle(skip_delays=True)
    assert len(room.model.requests) == 2
    assert (await summary_of(room)) is not None
    assert (await db(summary_work, await session_of(room), since=None)).state == ""


async def test_asked_for_it_is_written_anew_in_the_place_of_own_words(make_room: MakeRoom, teller: SmallModel) -> None:
    room = make_room("summarised")
    await room.say("say: Green tea.")
    await db(write_summary, await session_of(room), "Mine")
    await room.say("say: Cake.")
    assert len(teller.requests) == 1
    assert await text_of(room) == "Mine"
    await ask_for_one(room)
    await run_until_idle(skip_delays=True)
    assert "Mine" not in teller.asked[1]
    assert "Green tea." in teller.asked[1]
    assert await text_of(room) == "About tea."


@pytest.mark.parametrize("says", ["", "<think>hm"])
async def test_the_requester_learns_why_there_is_none(
    make_room: MakeRoom, teller: SmallModel, says: str, told_instances: list[str]
) -> None:
    room = make_room("summarised")
    await room.say("say: Green tea.")
    teller.says = says
    told_instances.clear()
    await ask_for_one(room)
    await run_until_idle(skip_delays=True)
    work = await db(summary_work, await session_of(room), since=None)
    assert (work.state, work.error) == ("", "The model gave no summary. Ask again, or write one yourself.")
    assert len(told_instances) == 1
    assert await text_of(room) == "About tea."
    found = await db(write_summary, await session_of(room), "Mine")
    assert (await db(summary_work, await session_of(room), since=found.written_at)).error == ""


async def test_of_a_very_small_model_only_what_speaks_of_the_conversation(
    make_room: MakeRoom, teller: SmallModel
) -> None:
    teller.name = LOCAL_MODEL_NAME
    room = make_room("summarised")
    await room.say("say: Something else.")
    assert await summary_of(room) is None
    await room.say("say: Green tea is about tea.")
    assert await text_of(room) == "About tea."


async def test_of_nothing_there_is_no_summary(make_room: MakeRoom, teller: SmallModel) -> None:
    room = make_room("summarised")
    await room.say("say: Green tea.")
    await room.handle.clear()
    assert await summary_of(room) is None
    with pytest.raises(InputInvalid):
        await ask_for_one(room)


async def test_who_asks_too_often_is_refused(make_room: MakeRoom, teller: SmallModel, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 1
    room = make_room("summarised")
    await room.say("say: Green tea.")
    with pytest.raises(QuotaExceeded):
        await ask_for_one(room)


async def test_what_was_asked_for_counts_like_a_message(make_room: MakeRoom, teller: SmallModel, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 3
    room = make_room("summarised")
    await room.say("say: Green tea.")  # the summary that no one asked for does not count
    await ask_for_one(room)
    await run_until_idle()
    await room.say("say: Black tea.")
    with pytest.raises(QuotaExceeded):
        await room.say("say: White tea.")


async def test_a_summary_deleted_meanwhile_is_not_sent(make_room: MakeRoom, teller: SmallModel) -> None:
    room = make_room("summarised")

    class Deleting(SmallModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            await db(lambda: services.clear_session(Session.objects.get().pk))
            async for event in super().stream(request):
                yield event

    teller.__class__ = Deleting
    await room.say("say: Green tea.")
    assert len(teller.requests) == 1
    assert await summary_of(room) is None


async def test_it_is_paid_and_ends_at_the_budget(make_room: MakeRoom, teller: SmallModel, settings: Any) -> None:
    settings.THINK_PRICES = {"test/teller": {"input": 3, "output": 0}}
    room = make_room("summarised")
    await room.say("usage: 0 0\nsay: hi")
    assert (await db(Session.objects.get)).cost == 3
    assert await db(lambda: list(SideCall.objects.values_list("kind", "cost"))) == [("summary", Decimal(3))]
    await db(set_budget, await session_of(room), Decimal(2))
    await ask_for_one(room)
    await run_until_idle(skip_delays=True)
    assert len(teller.requests) == 1
    work = await db(summary_work, await session_of(room), since=None)
    assert "budget" in work.error
