"""Turns that do not fit: summarised and asked again, at most twice; switched off, the error is final and visible."""

import base64

import pytest
from django.test import override_settings

from chat.core.loop.context_window import SUMMARISED_TEXT
from chat.llm.scripted import ScriptedModel, ScriptedServer
from chat.models import Turn
from chat.think import SessionSetup, Tool, TurnConfig, TurnContext, tool
from chat.turns.admission.intake import Submit
from sessions_app.core.compaction.pruning import CLEARED_TEXT
from sessions_app.core.messages import shapes
from sessions_app.messages import services
from sessions_app.models import Message, Session
from tests.db.chat.turns.agents.everyday import Plain
from tests.pictures import PNG
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump

from .conftest import MakeRoom, Room, status_of
from .overflows import OVERFLOWS, compactions, limits, talked, text

PICTURE = base64.b64encode(PNG).decode()


class Kept(Plain):
    """Never summarises by itself."""

    auto_compaction = False


class Willing(Plain):
    """Summarises by itself, whatever the site says."""

    auto_compaction = True


class Unlucky(Plain):
    """Its summaries fail."""

    compaction_model = ScriptedModel("error 400")


class Bloated(Plain):
    """Its summaries do not fit either."""

    compaction_model = ScriptedModel("context overflow")


class Pruner(Plain):
    """Lets go of old outputs and cuts nothing."""

    context_policy = "prune"


class OwnWords(Plain):
    """Sends messages of its own."""

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(messages=context.messages)


class Compacting(Plain):
    """Compacts after each turn."""

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.compact_after(10)


class Remote(Plain):
    """Answers over HTTP."""

    def get_model(self) -> str:  # type: ignore[override]  # a name is a model as well
        return "acme/scripted"


class PageReader(Plain):
    """Reads what is longer than its model can."""

    def get_tools(self) -> list[Tool]:
        return [read_page]


@tool
def read_page(number: int) -> str:
    """Read a page."""
    return f"page {number} " + "word " * 4_000


async def stored(session: Session) -> list[shapes.Content]:
    return await db(
        lambda: list(Message.objects.filter(session=session).order_by("pk").values_list("content", flat=True))
    )


def size(request: JSONObject) -> int:
    return len(dump(request["messages"]))


async def test_an_error_of_the_provider_is_met_by_a_summary_and_the_same_question(make_room: MakeRoom) -> None:
    room = make_room()
    session = await talked(room)
    before = await stored(session)
    turn = await room.say(OVERFLOWS)
    assert status_of(turn) == "completed"
    assert (await room.texts())[-1] == ("assistant", "fits")
    refused, summary, again = room.model.requests
    assert size(again) < size(refused)
    assert again["messages"][-1] == refused["messages"][-1]
    assert "tools" not in summary or not summary["tools"]
    assert await compactions(session) == 1
    assert (await stored(session))[: len(before)] == before


async def test_a_refused_request_is_shortened_although_it_should_fit(make_room: MakeRoom) -> None:
    room = make_room()
    session = await talked(room)
    with limits(200_000, 1_000):
        assert status_of(await room.say(OVERFLOWS)) == "completed"
    assert await compactions(session) == 1
    assert "user 5 " not in dump(room.model.requests[-1])


async def test_over_http_as_well(make_room: MakeRoom) -> None:
    with ScriptedServer() as server, override_settings(THINK_PROVIDERS={"acme": {"base_url": server.base_url}}):
        room = make_room("remote")
        session = await talked(room)
        turn = await room.say(OVERFLOWS)
        assert (status_of(turn), (await room.texts())[-1]) == ("completed", ("assistant", "fits"))
        assert await compactions(session) == 1
        _, refused, _, again = server.requests()
        assert size(again) < size(refused)


async def test_a_step_that_took_too_much_makes_room_before_the_next(make_room: MakeRoom) -> None:
    room = make_room()
    session = await talked(room)
    with limits(20_000, 1_000):
        turn = await room.say('usage: 19000 10\ncall tool add {"a": 2, "b": 3}\nsay: {result}')
    assert status_of(turn) == "completed"
    assert (await room.texts())[-1] == ("assistant", "5")
    first, _, second = room.model.requests
    assert size(second) < size(first)
    assert "user 5 " in dump(second)  # a quarter of what fits stays as it is
    assert await compactions(session) == 1


async def test_an_estimate_shortens_the_first_prompt(make_room: MakeRoom) -> None:
    room = make_room()
    session = await talked(room)
    with limits(10_000, 500):
        await room.say("say: fits")
    assert (await room.texts())[-1] == ("assistant", "fits")
    assert len(room.model.requests) == 2
    assert await compactions(session) == 1


async def test_a_model_of_which_nothing_is_known_is_not_judged_by_count(make_room: MakeRoom) -> None:
    room = make_room()
    session = await talked(room)
    await room.say("usage: 900000 10\nsay: fits")
    assert len(room.model.requests) == 1
    assert await compactions(session) == 0


async def test_the_loop_continues_with_an_unstored_instruction(make_room: MakeRoom) -> None:
    room = make_room()
    await talked(room)
    with limits(20_000, 1_000):
        await room.say('usage: 19000 10\ncall tool add {"a": 2, "b": 3}\nsay: {result}')
    assert room.model.requests[-1]["messages"][-1]["content"] == SUMMARISED_TEXT
    assert SUMMARISED_TEXT not in dump(await room.transcript())


@pytest.mark.parametrize(
    ("agent", "site", "session_says", "is_on"),
    [
        ("plain", True, None, True),
        ("plain", False, None, False),
        ("kept", True, None, False),
        ("willing", False, None, True),
        ("willing", True, False, False),
        ("kept", False, True, True),
    ],
)
async def test_switched_off_the_error_is_final_and_visible(
    make_room: MakeRoom, agent: str, site: bool, session_says: bool | None, is_on: bool
) -> None:
    room = make_room(agent)
    session = await talked(room)
    await db(services.set_auto_compaction, session.pk, session_says)
    with override_settings(THINK_AUTO_COMPACTION=site):
        turn = await room.say(OVERFLOWS)
    if is_on:
        assert (status_of(turn), await compactions(session)) == ("completed", 1)
    else:
        assert (status_of(turn), turn.error_code) == ("error", "context_overflow")
        assert turn.error_text
        assert (len(room.model.requests), await compactions(session)) == (1, 0)


async def test_switched_off_nothing_is_judged_by_count_either(make_room: MakeRoom) -> None:
    room = make_room("kept")
    session = await talked(room)
    with limits(10_000, 500):
        turn = await room.say("say: fits")
    assert (status_of(turn), len(room.model.requests), await compactions(session)) == ("completed", 1, 0)


@pytest.mark.parametrize(("session_says", "expected"), [(None, 1), (False, 0)])
async def test_what_outgrew_its_threshold_is_left_alone_too(
    make_room: MakeRoom, session_says: bool | None, expected: int
) -> None:
    room = make_room("compacting")
    with override_settings(THINK_AUTO_COMPACTION=False):
        session = await talked(room)
    assert await compactions(session) == 0
    await db(services.set_auto_compaction, session.pk, session_says)
    await room.say("say: more")
    assert await compactions(session) == expected


async def test_messages_of_a_hook_are_not_made_shorter_by_a_summary(make_room: MakeRoom) -> None:
    room = make_room("own-words")
    session = await talked(room)
    turn = await room.say(OVERFLOWS)
    assert (status_of(turn), turn.error_code, await compactions(session)) == ("error", "context_overflow", 0)


async def test_pictures_are_named_when_they_do_not_fit(make_room: MakeRoom) -> None:
    room = make_room()
    part: shapes.Part = {
        "type": "file",
        "mediaType": "image/png",
        "filename": "cat.png",
        "url": f"data:image/png;base64,{PICTURE}",
    }
    said: shapes.Part = {"type": "text", "text": "marker: pic\ncontext overflow 1 times\nsay: a cat"}
    message: shapes.NewMessage = {"role": "user", "parts": [said, part]}
    turn = await room.say(Submit(message=message))
    assert (status_of(turn), (await room.texts())[-1]) == ("completed", ("assistant", "a cat"))
    refused, again = (dump(request) for request in room.model.requests)
    assert PICTURE in refused
    assert PICTURE not in again
    assert "[Attached image/png: cat.png]" in again
    assert [p["type"] for p in (await room.transcript())[0]["parts"]] == ["text", "file"]


async def test_documents_are_sent_and_named_when_they_do_not_fit(make_room: MakeRoom) -> None:
    room = make_room()
    data = base64.b64encode(b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\n%%EOF\n").decode()
    url = f"data:application/pdf;base64,{data}"
    part: shapes.Part = {"type": "file", "mediaType": "application/pdf", "filename": "plan.pdf", "url": url}
    said: shapes.Part = {"type": "text", "text": "marker: pdf\ncontext overflow 1 times\nsay: a plan"}
    turn = await room.say(Submit(message={"role": "user", "parts": [said, part]}))
    assert (status_of(turn), (await room.texts())[-1]) == ("completed", ("assistant", "a plan"))
    refused, again = room.model.requests
    [file] = [item["file"] for item in refused["messages"][-1]["content"] if item["type"] == "file"]
    assert file == {"filename": "plan.pdf", "file_data": url}
    assert data not in dump(again)
    assert 'The user attached \\"plan.pdf\\" (PDF document)' in dump(again)  # as its text, which takes less


PAGES = 'call tool read_page {"number": 1}\ncall tool read_page {"number": 2}\n'


async def test_outputs_of_the_turn_itself_are_cut_when_nothing_else_helps(make_room: MakeRoom) -> None:
    room = make_room("page-reader")
    turn = await room.say(f"{PAGES}say: read\ncontext overflow above 30000 characters")
    assert status_of(turn) == "completed"
    _, refused, again = room.model.requests
    assert size(refused) > 30_000 > size(again)
    assert "page 2" in dump(again["messages"])
    assert "characters truncated] ..." in dump(again["messages"])
    kept = [part for part in (await room.transcript())[-1]["parts"] if part.get("state") == "output-available"]
    assert [len(part["output"]) for part in kept] == [20_007, 20_007]  # what is stored stays whole


async def test_outputs_are_cut_at_the_second_refusal_where_a_summary_did_not_do(make_room: MakeRoom) -> None:
    room = make_room("page-reader")
    await talked(room)
    turn = await room.say(f"{PAGES}say: read\ncontext overflow above 30000 characters")
    assert status_of(turn) == "completed"
    sizes = [size(request) for request in room.model.requests if "page 2" in dump(request["messages"])]
    assert sizes[-1] < 30_000
    assert sizes == sorted(sizes, reverse=True)


async def test_a_model_that_always_overflows_ends_visibly_after_two(make_room: MakeRoom) -> None:
    room = make_room()
    session = await talked(room)
    turn = await room.say("context overflow")
    assert (status_of(turn), turn.error_code) == ("error", "context_overflow")
    assert await compactions(session) == 2
    asked = [dump(r["messages"]) for r in room.model.requests if "context overflow" in dump(r["messages"][-1])]
    assert len(asked) == 3
    keys = await db(lambda: list(turn.fiber.steps.order_by("pk").values_list("step_key", flat=True)))
    assert [key for key in keys if key.startswith("room:")] == ["room:0", "room:1"]
    assert all("assistant 5 " in sent for sent in asked)


async def test_a_short_conversation_has_nothing_to_summarise(make_room: MakeRoom) -> None:
    room = make_room()
    turn = await room.say("context overflow")
    assert (status_of(turn), turn.error_code, len(room.model.requests)) == ("error", "context_overflow", 1)


@pytest.mark.parametrize("agent", ["unlucky", "bloated"])
async def test_a_summary_that_fails_leaves_the_turns_own_error_and_the_history(make_room: MakeRoom, agent: str) -> None:
    room = make_room(agent)
    session = await talked(room)
    before = await stored(session)
    turn = await room.say(OVERFLOWS)
    assert (status_of(turn), turn.error_code) == ("error", "context_overflow")
    assert await compactions(session) == 0
    assert (await stored(session))[: len(before)] == before
    await room.say("and now?")
    refused, *_, again = [request["messages"] for request in room.model.requests]
    assert again[: len(refused) - 1] == refused[:-1]


def output(number: int, tokens: int = 30_000) -> list[shapes.Message]:
    part: shapes.Part = {
        "type": "tool-grep",
        "toolCallId": f"c{number}",
        "state": "output-available",
        "input": {},
        "output": f"{number}" * (tokens * 4),
    }
    return [text("user", number, 20), {"id": f"assistant{number}", "role": "assistant", "parts": [part]}]


async def pruned(session: Session) -> dict[str, list[str]]:
    rows = Message.objects.filter(session=session).exclude(pruned_calls=[])
    return dict(await db(lambda: list(rows.values_list("message_id", "pruned_calls"))))


async def with_outputs(room: Room) -> Session:
    return await talked(room, *output(1), *output(2), *output(3), text("user", 4, 20), text("assistant", 4, 20))


async def test_old_outputs_are_let_go_at_the_end_of_a_turn(make_room: MakeRoom) -> None:
    room = make_room("pruner")
    session = await with_outputs(room)
    before = await stored(session)
    await room.say("say: one")
    assert await pruned(session) == {"assistant1": ["c1"], "assistant2": ["c2"]}
    assert (await stored(session))[: len(before)] == before
    await room.say("say: two")
    results = [m["content"] for m in room.model.requests[-1]["messages"] if m["role"] == "tool"]
    assert results[:2] == [CLEARED_TEXT, CLEARED_TEXT]
    assert results[2].startswith("333")
    assert "111" in dump(await room.transcript())


@pytest.mark.parametrize("ending", ["error 400", "say: some text\nerror in stream after 1 code invalid_api_key"])
async def test_a_turn_that_fails_lets_go_of_nothing(make_room: MakeRoom, ending: str) -> None:
    room = make_room("pruner")
    session = await with_outputs(room)
    assert status_of(await room.say(ending)) == "error"
    assert await pruned(session) == {}


async def test_protected_tools_are_a_setting(make_room: MakeRoom) -> None:
    room = make_room("pruner")
    session = await with_outputs(room)
    with override_settings(THINK_PRUNE_PROTECTED_TOOLS=["grep"]):
        await room.say("say: one")
    assert await pruned(session) == {}


async def test_it_can_be_switched_off(make_room: MakeRoom) -> None:
    room = make_room("pruner")
    session = await with_outputs(room)
    with override_settings(THINK_PRUNE_OUTPUTS=False):
        await room.say("say: one")
    assert await pruned(session) == {}
    await room.say("say: two")
    assert await pruned(session) != {}


async def test_a_turn_that_was_summarised_costs_what_its_calls_cost(make_room: MakeRoom) -> None:
    room = make_room()
    await talked(room)
    turn: Turn = await room.say("context overflow above 30000 characters\nusage: 7 3\nsay: fits")
    assert (turn.input_tokens, turn.output_tokens, turn.step_count) == (7, 3, 1)
