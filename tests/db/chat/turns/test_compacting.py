"""Compaction of an agent's session: by threshold, by hand, and what goes wrong on the way."""

from collections.abc import AsyncGenerator
from decimal import Decimal
from typing import Any

import pytest

from chat.core.durable_names import COMPACT_FIBER
from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.errors import QuotaExceeded
from chat.instances.notifications import group_of
from chat.instances.rows import find_instance
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, SideCall, SideCallKind, Turn
from chat.turns.admission.stop import clear_instance
from chat.turns.background import compaction
from chat.turns.state.compaction_queue import request_compaction
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle
from sessions_app.compactions.services import CompactionView, compactions, undo_compaction
from sessions_app.messages import selectors
from sessions_app.messages.usage import set_budget
from sessions_app.models import Compaction, Message, Session
from tests.db.chat.turns.agents.compact_agents import SUMMARIES, ByModel, HighThreshold
from tests.db.chat.turns.agents.everyday import CALLS, SEEN
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room
from .notifications import listen, notification_of

pytestmark = pytest.mark.django_db(transaction=True)

BLANK = "usage 1000 100\nsay: <think>hm</think>"


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[dict[str, Any]]:
    """Notifications of sessions, in order."""
    settings.THINK_TURNS_PER_MINUTE = 0
    SUMMARIES.clear()
    received: list[dict[str, Any]] = []
    monkeypatch.setattr(
        compaction, "send_notification", lambda group, event: received.append({"group": group, **event})
    )
    return received


async def instance_of(room: Room) -> AgentInstance:
    instance = await db(find_instance, room.key)
    assert instance is not None
    return instance


async def session_of(room: Room) -> str:
    return str((await instance_of(room)).session_id)


async def stored(room: Room) -> list[CompactionView]:
    return await db(compactions, await session_of(room))


async def read(room: Room) -> list[str]:
    found = await db(selectors.model_history, await session_of(room))
    return ["".join(part.get("text", "") for part in message.parts) for message in found]


async def ask(room: Room, instructions: str = "") -> str:
    instance = await instance_of(room)
    return await db(lambda: request_compaction(instance, instructions=instructions, user_id=room.key.owner_id))


async def test_a_session_beyond_its_threshold_is_compacted(
    make_room: MakeRoom, published: list[dict[str, Any]]
) -> None:
    room = make_room("own-compaction")
    await room.say("say: a rather long answer, of more than ten tokens in all")
    [made] = await stored(room)
    assert (made.summary, made.trigger) == ("own summary", "auto")
    assert await read(room) == ["own summary", "a rather long answer, of more than ten tokens in all"]
    assert [(notification["type"], notification.get("phase")) for notification in published] == [
        ("session.phase", "compacting"),
        ("session.phase", "idle"),
    ]
    assert published[1]["compacted"] == {"tokensBefore": made.tokens_before, "compactionId": made.id}
    assert (published[1]["threshold"], published[1]["tokens"]) == (10, made.tokens_after)
    assert published[0]["group"] == group_of(room.key)


async def test_after_a_turn_clients_receive_the_context_usage(make_room: MakeRoom) -> None:
    room = make_room("high-threshold")
    listening = await listen(room.key)
    sent = []
    for text in ("say: one", "say: two and more"):
        await room.say(text)
        sent.append(await notification_of(listening, "session.phase"))
    threshold = sent[0]["threshold"]
    assert threshold == HighThreshold.threshold
    assert 0 < sent[0]["tokens"] < sent[1]["tokens"] < threshold
    assert [notification["phase"] for notification in sent] == ["idle"] * 2
    assert sent[0]["session_id"] == await session_of(room)


async def test_clients_are_warned_once_as_a_session_fills(make_room: MakeRoom) -> None:
    room = make_room("filling-up")
    listening = await listen(room.key)
    before, warnings = 0.0, []
    while before < 75:
        await room.say("say: " + "word " * 250)
        sent = await notification_of(listening, "session.phase")
        percent = 100 * sent["tokens"] / sent["threshold"]
        assert sent.get("warning") == max((each for each in (25, 50, 75) if before < each <= percent), default=None)
        warnings.append(sent.get("warning"))
        before = percent
    assert [each for each in warnings if each] == [25, 50, 75]
    assert len(warnings) > 3


async def test_tokens_are_counted_as_the_site_says(
    make_room: MakeRoom, settings: Any, published: list[dict[str, Any]]
) -> None:
    room = make_room()
    await room.say(f"say: {'word ' * 100}")
    for counter in ("estimate", "builtins:len"):
        settings.THINK_TOKEN_COUNTER = counter
        await ask(room)
        await run_until_idle(skip_delays=True)
    estimated, characters = (each["tokens"] for each in published if each["phase"] == "compacting")
    assert characters > 2 * estimated > 0


async def test_a_manual_compaction_has_a_beginning_and_an_end_also_without_work(
    make_room: MakeRoom, published: list[dict[str, Any]]
) -> None:
    room = make_room()
    await room.say("say: one")
    await db(request_compaction, await instance_of(room))
    await run_until_idle(skip_delays=True)
    assert [(notification["phase"], "compacted" in notification) for notification in published] == [
        ("compacting", False),
        ("idle", False),
    ]
    await db(clear_instance, room.key)
    published.clear()
    await db(request_compaction, await instance_of(room))
    await run_until_idle(skip_delays=True)
    assert [notification["phase"] for notification in published] == ["compacting", "idle"]


async def test_a_compaction_that_was_asked_for_counts_like_a_message(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 4
    room = make_room("own-compaction")
    await room.say("say: a rather long answer, of more than ten tokens in all")
    assert len(await stored(room)) == 1  # no one asked for this one: it does not count
    for _ in range(2):
        await ask(room)
        await run_until_idle(skip_delays=True)
    await room.say("say: one")
    with pytest.raises(QuotaExceeded):
        await ask(room)
    with pytest.raises(QuotaExceeded):
        await room.say("say: two")


@pytest.mark.parametrize("agent", ["high-threshold", "no-threshold", "plain"])
async def test_below_or_without_a_threshold_nothing_runs(make_room: MakeRoom, agent: str) -> None:
    room = make_room(agent)
    await room.say("say: a rather long answer, of more than ten tokens in all")
    assert await stored(room) == []
    assert not await db(Fiber.objects.filter(name=COMPACT_FIBER).exists)


async def test_switched_off_in_the_session(make_room: MakeRoom) -> None:
    room = make_room("own-compaction")
    SUMMARIES["next"] = RuntimeError("not yet")
    await room.say("say: a rather long answer, of more than ten tokens in all")
    await db(lambda: Session.objects.update(auto_compaction=False))
    SUMMARIES.clear()
    await room.say("say: and another one")
    assert await stored(room) == []


@pytest.mark.parametrize("failure", [RuntimeError("no summary today"), "", 7])
async def test_compaction_failure_is_not_fatal(
    make_room: MakeRoom, published: list[dict[str, Any]], failure: Any
) -> None:
    """A22: the turn is stored, the handler is called, and what the handler raises harms no one."""
    room = make_room("own-compaction")
    SUMMARIES["next"] = failure
    turn = await room.say("say: a rather long answer, of more than ten tokens in all")
    assert (turn.fiber.status, turn.error_text) == ("completed", "")
    assert await stored(room) == []
    assert not await db(Compaction.objects.exists)
    assert [kind for kind, _ in SEEN if kind == "error"] == ["error"]
    assert [notification["type"] for notification in published] == ["session.phase", "session.failed", "session.phase"]
    SUMMARIES.clear()
    again = await room.say("say: it goes on")
    assert again.fiber.status == "completed"
    assert len(await stored(room)) == 1


async def test_by_hand_it_comes_after_the_turns_that_wait(make_room: MakeRoom) -> None:
    room = make_room("by-model")
    for number in range(3):
        await room.say(f"say: answer {number}")
    await room.admit("say: waiting")
    first = await ask(room, "Keep the numbers.")
    assert await ask(room) == first  # one that waits is enough
    later = await room.admit("say: sent meanwhile")
    await run_until_idle(skip_delays=True)
    assert (await room.turn(later.turn.pk)).fiber.status == "completed"
    [made] = await stored(room)
    assert (made.summary, made.trigger, made.model_name) == ("the model's summary", "manual", "scripted/small")
    assert await read(room) == [
        "say: answer 0",
        "answer 0",
        "say: answer 1",
        "the model's summary",
        "say: waiting",
        "waiting",
        "say: sent meanwhile",
        "sent meanwhile",
    ]
    prompt = ByModel.compaction_model.requests[-1]["messages"][-1]["content"]
    assert "Keep the numbers." in str(prompt)
    assert "answer 2" in str(prompt)
    assert await db(lambda: Fiber.objects.get(pk=first).result) == {"compaction_id": made.id}
    assert (await db(lambda: Compaction.objects.get().created_by_id)) == room.key.owner_id


async def test_what_is_sent_while_a_summary_is_written_is_answered_after_it(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")

    class Meanwhile(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            await room.admit("say: sent meanwhile")
            async for event in super().stream(request):
                yield event

    monkeypatch.setattr(ByModel, "compaction_model", Meanwhile("say: the model's summary", name="scripted/small"))
    await ask(room)
    await run_until_idle(skip_delays=True)
    assert (await read(room))[-2:] == ["say: sent meanwhile", "sent meanwhile"]
    assert [made.summary for made in await stored(room)] == ["the model's summary"]
    assert "the model's summary" in str(room.model.requests[-1]["messages"])


async def test_what_models_are_sent_is_what_is_read(make_room: MakeRoom) -> None:
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    before = await db(lambda: list(Message.objects.order_by("pk").values_list("pk", "content", "parent_id")))
    await ask(room)
    await run_until_idle(skip_delays=True)
    await room.say("say: next")
    sent = [str(message["content"]) for message in room.model.requests[-1]["messages"]]
    assert any("the model's summary" in text for text in sent)
    assert not any("answer 2" in text for text in sent)
    after = await db(lambda: list(Message.objects.order_by("pk").values_list("pk", "content", "parent_id")))
    assert after[: len(before)] == before
    [made] = await stored(room)
    await db(undo_compaction, made.id)
    await room.say("say: after undoing")
    assert any("answer 2" in str(message["content"]) for message in room.model.requests[-1]["messages"])


async def test_a_failed_manual_compaction_is_reported(make_room: MakeRoom, published: list[dict[str, Any]]) -> None:
    room = make_room("no-threshold")
    await room.say("say: one")
    SUMMARIES["next"] = ""
    fiber_id = await ask(room)
    await run_until_idle(skip_delays=True)
    fiber = await db(lambda: Fiber.objects.get(pk=fiber_id))
    assert fiber.status == "failed"
    assert [notification["error"] for notification in published if notification["type"] == "session.failed"] == [
        "The summary came back empty."
    ]


async def test_with_nothing_to_do_nothing_is_stored(make_room: MakeRoom, published: list[dict[str, Any]]) -> None:
    room = make_room("by-model")
    await room.say("say: one")
    await ask(room)
    await run_until_idle(skip_delays=True)
    assert await stored(room) == []
    assert published[-1]["phase"] == "idle"


async def test_a_summary_that_takes_too_long_has_failed(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, published: list[dict[str, Any]]
) -> None:
    monkeypatch.setattr(compaction, "COMPACTION_SECONDS", 0.05)
    monkeypatch.setattr(ByModel, "compaction_model", ScriptedModel("hang\nsay: never"))
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    await ask(room)
    await run_until_idle(skip_delays=True)
    assert [notification["error"] for notification in published if notification["type"] == "session.failed"] == [
        "The summary took longer than 0.05 s."
    ]
    assert (await room.say("say: it goes on")).fiber.status == "completed"


async def test_a_crash_after_the_write_makes_no_second_summary(make_room: MakeRoom) -> None:
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    await ask(room)
    with crash_after("compacted"):
        await run_until_idle(skip_delays=True)
    assert len(await stored(room)) == 1


async def test_clearing_takes_a_waiting_compaction_away(make_room: MakeRoom) -> None:
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    fiber_id = await ask(room)
    await db(clear_instance, room.key)
    await run_until_idle(skip_delays=True)
    assert (await db(lambda: Fiber.objects.get(pk=fiber_id).status)) == "cancelled"
    assert await stored(room) == []


async def test_a_model_with_a_small_context_gets_smaller_pieces(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ScriptedModel("context overflow above 4000 characters\nsay: small summary")
    monkeypatch.setattr(ByModel, "compaction_model", small)
    monkeypatch.setattr(compaction, "INPUT_TOKENS", 4000)
    room = make_room("by-model")
    for number in range(8):
        await room.say(f"stream 150 words\nsay: {number}")
    await ask(room)
    await run_until_idle(skip_delays=True)
    assert [made.summary for made in await stored(room)] == ["small summary"]
    assert len(small.requests) > 2


async def test_what_a_summary_takes_is_counted_on_the_session(
    make_room: MakeRoom, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.THINK_PRICES = {"scripted/small": {"input": "1", "output": "2"}}
    model = ScriptedModel("usage 1000 100\nsay: counted", name="scripted/small")
    monkeypatch.setattr(ByModel, "compaction_model", model)
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    before = await db(lambda: Session.objects.get())
    await ask(room)
    await run_until_idle(skip_delays=True)
    after = await db(lambda: Session.objects.get())
    assert (after.input_tokens - before.input_tokens, after.output_tokens - before.output_tokens) == (1000, 100)
    assert after.cost - before.cost == Decimal("0.0012")
    counted = await db(lambda: SideCall.objects.get())
    assert (counted.kind, counted.cost) == (SideCallKind.COMPACTION, Decimal("0.0012"))
    assert (counted.input_tokens, counted.output_tokens) == (1000, 100)
    answers = sum(turn.input_tokens for turn in await db(lambda: list(Turn.objects.all())))
    assert after.input_tokens == answers + counted.input_tokens  # all that its provider counted


async def test_what_a_failed_summary_took_is_counted_too(
    make_room: MakeRoom, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.THINK_PRICES = {"scripted/small": {"input": "1", "output": "2"}}
    monkeypatch.setattr(
        ByModel, "compaction_model", ScriptedModel("usage 1000 100\nsay: <think>hm</think>", name="scripted/small")
    )
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    before = await db(lambda: Session.objects.get())
    await ask(room)
    await run_until_idle(skip_delays=True)
    after = await db(lambda: Session.objects.get())
    assert await stored(room) == []
    assert (after.input_tokens - before.input_tokens, after.cost - before.cost) == (1000, Decimal("0.0012"))
    assert [row.cost for row in await db(lambda: list(SideCall.objects.all()))] == [Decimal("0.0012")]


async def test_no_summary_beyond_the_budget(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, published: list[dict[str, Any]]
) -> None:
    model = ScriptedModel("say: never", name="scripted/small")
    monkeypatch.setattr(ByModel, "compaction_model", model)
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    await db(set_budget, await session_of(room), Decimal(0))
    await ask(room)
    await run_until_idle(skip_delays=True)
    assert (model.requests, await stored(room)) == ([], [])
    [sent] = [notification["error"] for notification in published if notification["type"] == "session.failed"]
    assert "has reached its budget" in sent


async def test_a_call_in_a_summary_is_not_run(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, published: list[dict[str, Any]]
) -> None:
    model = ScriptedModel('call tool add {"a": 1, "b": 2}', name="scripted/small")
    monkeypatch.setattr(ByModel, "compaction_model", model)
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    CALLS.clear()
    await ask(room)
    await run_until_idle(skip_delays=True)
    assert (len(model.requests), CALLS, await stored(room)) == (1, [], [])
    assert [notification["error"] for notification in published if notification["type"] == "session.failed"] == [
        "The summary came back empty."
    ]


async def test_after_a_failed_summary_everything_is_sent(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByModel, "compaction_model", ScriptedModel("say: half\nerror 400", name="scripted/small"))
    room = make_room("by-model")
    for number in range(4):
        await room.say(f"say: answer {number}")
    await ask(room)
    await run_until_idle(skip_delays=True)
    await room.say("say: next")
    sent = str(room.model.requests[-1]["messages"])
    assert all(f"answer {number}" in sent for number in range(4))
