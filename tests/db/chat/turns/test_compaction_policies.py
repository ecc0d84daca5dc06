"""Turns under each compaction policy: when room is made, what stays, and what the model is asked for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.test import override_settings

from chat.core.context.compaction_policy import PRESETS, CompactionPolicy
from chat.core.model.overflow import Formula
from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance
from chat.reads.preview import preview
from chat.turns.state.compaction_queue import request_compaction
from fibers.models import Fiber
from fibers.testing import run_until_idle
from sessions_app.compactions.services import compactions as compactions_of
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.models import Session
from tests.db.chat.turns.agents.everyday import Plain
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump

from .conftest import MakeRoom, Room, status_of
from .overflows import OVERFLOWS, compactions, limits, session_of, talked, text
from .slips import NEUTRAL, sentences

TWO_STEPS = 'usage: {} {}\ncall tool add {{"a": 2, "b": 3}}\nsay: {{result}}'


class Estimating(Plain):
    """Names a preset."""

    compaction_policy = "v3"


class Turnwise(Plain):
    """Names another."""

    compaction_policy = "share"


class Listing(Plain):
    """Names the one with lists of files."""

    compaction_policy = "files"


class PatientKeeper(Plain):
    """Brings a policy of its own, and waits until there is much to summarise."""

    compaction_policy = CompactionPolicy(formula=Formula.SHARE, keep_tokens=1, min_new_messages=8)
    compaction_model = ScriptedModel("say: a summary")


class Brief(Plain):
    """Brings a policy of its own."""

    compaction_policy = CompactionPolicy(summary_tokens=700, shown_chars=50)


class Lawful(Plain):
    """Says its own sections."""

    compaction_policy = CompactionPolicy(sections={"Law": "Which statutes were named."})


class Unheard(Plain):
    """Names a policy that does not exist."""

    compaction_policy = "v9"


Reserve = Callable[[int], None]


@pytest.fixture
def reserve(monkeypatch: pytest.MonkeyPatch) -> Reserve:
    """Have all presets keep so many tokens free, for small conversations."""

    def changed(tokens: int) -> None:
        for name, preset in PRESETS.items():
            monkeypatch.setitem(PRESETS, name, replace(preset, reserved_tokens=tokens))

    return changed


def summaries(room: Room) -> list[JSONObject]:
    """The requests for summaries."""
    return [request for request in room.model.requests if "You write summaries" in dump(request["messages"][0])]


async def full_turn(room: Room, usage: tuple[int, int], context: int = 20_000) -> Session:
    """A turn of two steps, the first of which took so many tokens in and out."""
    session = await talked(room)
    with limits(context, 1_000):
        turn = await room.say(TWO_STEPS.format(*usage))
    assert status_of(turn) == "completed"
    return session


@pytest.mark.parametrize(("context", "expected"), [(13_000, 1), (16_000, 0)])
async def test_an_estimate_beyond_the_buffer_makes_room(
    make_room: MakeRoom, settings: Any, reserve: Reserve, context: int, expected: int
) -> None:
    settings.THINK_OVERFLOW_FORMULA = "v3"
    reserve(2_000)
    room = make_room()
    session = await talked(room)
    with limits(context, 1_000):
        await room.say("say: fits")
    assert (await compactions(session), len(summaries(room))) == (expected, expected)
    assert (await room.texts())[-1] == ("assistant", "fits")
    sent = dump(room.model.requests[-1])
    assert ("assistant 2 " in sent) == (not expected)  # 8,000 tokens would be more than half of what fits
    assert "assistant 4 " in sent


async def test_what_a_step_took_makes_no_room(make_room: MakeRoom, reserve: Reserve) -> None:
    reserve(2_000)
    assert await compactions(await full_turn(make_room("estimating"), (19_900, 10))) == 0


@pytest.mark.parametrize(("output", "expected"), [(8_000, 4_096), (1_000, 1_000)])
async def test_a_summary_has_at_most_4096_tokens_or_what_the_model_can_answer(
    make_room: MakeRoom, reserve: Reserve, output: int, expected: int
) -> None:
    reserve(1_000)
    room = make_room("estimating")
    await talked(room)
    with limits(12_000 + output // 4, output):
        await room.say("say: fits")
    [asked] = summaries(room)
    assert asked["max_tokens"] == expected
    assert f"at most {expected} tokens" in dump(asked["messages"])


@pytest.mark.parametrize("formula", ["v1", "v2"])
async def test_the_presets_of_before_bound_no_summary(make_room: MakeRoom, settings: Any, formula: str) -> None:
    settings.THINK_OVERFLOW_FORMULA = formula
    room = make_room()
    await full_turn(room, (19_500, 0))
    [asked] = summaries(room)
    assert "max_tokens" not in asked
    assert "at most" not in dump(asked["messages"])


@pytest.mark.parametrize(("usage", "expected"), [((18_000, 1_900), 0), ((18_001, 0), 1)])
async def test_nine_tenths_of_the_window_by_input_alone(
    make_room: MakeRoom, usage: tuple[int, int], expected: int
) -> None:
    room = make_room("turnwise")
    assert await compactions(await full_turn(room, usage)) == expected
    assert [request["max_tokens"] for request in summaries(room)] == [1_000] * expected  # all that the model can


async def test_the_last_two_turns_stay(make_room: MakeRoom) -> None:
    room = make_room("turnwise")
    await full_turn(room, (19_000, 0))
    sent = dump(room.model.requests[-1])
    for kept in ("user 5 ", "assistant 5 ", "usage: 19000"):
        assert kept in sent
    assert "assistant 4 " not in sent


async def test_a_few_messages_after_a_summary_wait(make_room: MakeRoom) -> None:
    room = make_room("patient-keeper")
    session = await full_turn(room, (19_000, 0))
    found = [await compactions(session)]
    with limits(20_000, 1_000):
        for _ in range(4):  # after the summary come 4, 6, 8 and 10 messages
            await room.say(TWO_STEPS.format(19_000, 0))
            found.append(await compactions(session))
    assert found == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(("usage", "expected"), [((17_990, 10), 0), ((17_990, 11), 1)])
async def test_everything_beyond_the_reserve(
    make_room: MakeRoom, reserve: Reserve, usage: tuple[int, int], expected: int
) -> None:
    reserve(2_000)
    room = make_room("listing")
    assert await compactions(await full_turn(room, usage)) == expected
    sent = dump(room.model.requests[-1])
    assert ("assistant 1 " in sent) == (not expected)  # half of what fits, although 20,000 are wanted
    assert "user 2 " in sent


def tool_message(number: int, tool: str, path: str) -> Message:
    part: Part = {
        "type": f"tool-{tool}",
        "toolCallId": f"c{number}",
        "state": "output-available",
        "input": {"path": path},
        "output": "done " * 200,
    }
    said: Part = {"type": "text", "text": f"assistant {number} " + "word " * 800}
    return {"id": f"assistant{number}", "role": "assistant", "parts": [said, part]}


async def test_summaries_list_files_and_carry_the_lists_on(make_room: MakeRoom) -> None:
    room = make_room("listing")
    tools = [("read", "a.py"), ("read", "b.py"), ("edit", "c.py"), ("write", "b.py"), ("read", "d.py"), ("grep", "e")]
    messages = [m for n, tool in enumerate(tools) for m in (text("user", n), tool_message(n, *tool))]
    session = await talked(room, *messages)
    assert status_of(await room.say(OVERFLOWS)) == "completed"
    [first] = await db(compactions_of, session.pk)
    lists = "<read-files>\na.py\nd.py\n</read-files>\n\n<modified-files>\nb.py\nc.py\n</modified-files>"
    assert first.summary.endswith(f"\n\n{lists}")
    assert lists in room.model.requests[-1]["messages"][4]["content"]
    later = [m for n in (6, 7) for m in (text("user", n), tool_message(n, "edit", f"{'dz'[n - 6]}.py"))]
    await talked(room, *later, *[text(role, n) for n in range(8, 12) for role in ("user", "assistant")])
    assert status_of(await room.say(OVERFLOWS)) == "completed"
    second = (await db(compactions_of, session.pk))[-1]
    read, _, modified = second.summary.partition("</read-files>")
    assert read.endswith("<read-files>\na.py\n")
    assert modified.endswith("<modified-files>\nb.py\nc.py\nd.py\nz.py\n</modified-files>")
    assert "<read-files>" not in dump(summaries(room)[-1])


@pytest.mark.parametrize("formula", list(PRESETS))
async def test_what_was_refused_becomes_shorter_under_every_preset(
    make_room: MakeRoom, settings: Any, formula: str
) -> None:
    settings.THINK_OVERFLOW_FORMULA = formula
    room = make_room()
    session = await talked(room)
    with limits(200_000, 1_000):
        assert status_of(await room.say(OVERFLOWS)) == "completed"
    assert await compactions(session) > 0
    assert (await room.texts())[-1] == ("assistant", "fits")


async def test_where_turns_leave_nothing_the_last_messages_alone_stay(make_room: MakeRoom) -> None:
    room = make_room("turnwise")
    session = await talked(room, text("user", 0), *[text("assistant", n) for n in range(11)])
    assert status_of(await room.say(OVERFLOWS)) == "completed"
    assert await compactions(session) == 1
    assert "assistant 9 " not in dump(room.model.requests[-1])


async def test_a_policy_of_ones_own_has_its_own_numbers(make_room: MakeRoom) -> None:
    room = make_room("brief")
    await talked(room, *[m for n in range(6) for m in (text("user", n), tool_message(n, "read", "x" * 900))])
    assert status_of(await room.say("context overflow above 30000 characters\nsay: fits")) == "completed"
    asked = summaries(room)[0]
    assert asked["max_tokens"] == 700
    assert f"(result: {('done ' * 20)[:50]}...)" in asked["messages"][-1]["content"]


async def asked_by_hand(room: Room, session: Session) -> str:
    instance = await db(lambda: AgentInstance.objects.get(session_id=session.pk))
    fiber_id = await db(lambda: request_compaction(instance, instructions="", user_id=room.key.owner_id))
    await run_until_idle()
    return fiber_id


async def test_by_hand_the_policy_counts_as_well(make_room: MakeRoom) -> None:
    room = make_room("estimating")
    session = await talked(room)
    await asked_by_hand(room, session)
    [asked] = summaries(room)
    assert asked["max_tokens"] == 4_096
    assert await compactions(session) == 1


@pytest.mark.parametrize(("agent", "formula"), [("unheard", "v2"), ("plain", "v9")])
async def test_a_policy_that_does_not_exist_ends_the_turn_with_its_reason(
    make_room: MakeRoom, settings: Any, caplog: pytest.LogCaptureFixture, agent: str, formula: str
) -> None:
    settings.THINK_OVERFLOW_FORMULA = formula
    turn = await make_room(agent).say("say: hi")
    assert (status_of(turn), turn.error_code) == ("error", "turn_config_invalid")
    assert turn.error_text == NEUTRAL
    assert "'v9'" in sentences(caplog)[0]


async def test_by_hand_it_ends_with_its_reason_as_well(make_room: MakeRoom, settings: Any) -> None:
    room = make_room()
    session = await talked(room)
    settings.THINK_OVERFLOW_FORMULA = "v9"
    fiber_id = await asked_by_hand(room, session)
    fiber = await db(lambda: Fiber.objects.get(pk=fiber_id))
    assert (fiber.status, fiber.error["code"]) == ("failed", "compaction_failed")
    assert await compactions(session) == 0


@pytest.mark.parametrize(("agent", "usable"), [("plain", 98_000), ("turnwise", 90_000), ("listing", 83_616)])
async def test_people_are_shown_what_fits_by_the_agents_policy(make_room: MakeRoom, agent: str, usable: int) -> None:
    room = make_room(agent)
    await room.say("say: hi")
    with limits(100_000, 1_000):
        shown = await preview(room.key, (await session_of(room)).pk, make_agent)
    assert shown.usable_tokens == usable


async def test_the_class_comes_before_the_site(make_room: MakeRoom) -> None:
    with override_settings(THINK_OVERFLOW_FORMULA="v3"):
        room = make_room("turnwise")
        await full_turn(room, (19_000, 0))
    assert len(summaries(room)) == 1
    assert "at most 1000 tokens" in dump(summaries(room)[0])  # all that the model can, of 2,000


async def test_sections_are_those_of_the_policy(make_room: MakeRoom, reserve: Reserve) -> None:
    reserve(1_000)
    room = make_room("estimating")
    await talked(room)
    with limits(13_000, 1_000):
        await room.say("say: fits")
    assert "## Next Move" in dump(summaries(room)[0])
    assert "## Key Points" not in dump(summaries(room)[0])
    room = make_room("lawful")
    await full_turn(room, (19_500, 0))
    [asked] = summaries(room)
    assert "## Law\\nWhich statutes were named.\\n\\nWrite only what was said." in dump(asked)
    assert "## Topic" not in dump(asked)
