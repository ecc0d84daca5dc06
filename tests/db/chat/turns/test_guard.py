"""Once text of strangers is in a conversation, calls that do something ask a person first."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from chat.core.model.language_model import ModelRequest
from chat.turns.admission.admission import clear_instance
from chat.turns.admission.intake import Submit
from fibers.testing import worker
from sessions_app.compactions.services import add_compaction
from sessions_app.core.messages.shapes import Message
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from tools_app.core.guard.rules import GuardDecision
from tools_app.core.origins import Origin
from tools_app.core.tool_calls import details_in

from .agents import MODELS
from .answering import on_record
from .conftest import MakeRoom, Room, text_of
from .gated import until
from .guarded_agents import DONE, MAIL, Guarded, Web, calls, served_web
from .statement_kinds import kinds
from .working import call, one_after_another, parts_of_calls

pytestmark = pytest.mark.django_db(transaction=True)

Make = Callable[..., Guarded]


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()
    MAIL.clear()
    MAIL["offer"] = "A good offer."


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with served_web() as made:
        yield made


@pytest.fixture
def clerk(make_room: MakeRoom) -> Guarded:
    return Guarded(make_room("guarded-clerk"))


async def asked(desk: Guarded) -> list[str]:
    return [str(part["type"]).removeprefix("tool-") for part in await desk.open()]


async def test_without_text_of_strangers_nothing_asks(clerk: Guarded) -> None:
    await clerk.room.say(one_after_another(call("clock"), call("transmit", to="Ann"), call("refund", order="1")))
    assert DONE == ["transmit Ann", "refund 1"]
    assert (await clerk.state()).count == 0


async def test_after_a_mail_was_read_sending_asks_and_reading_does_not(clerk: Guarded) -> None:
    await clerk.room.say(one_after_another(call("mail", name="offer"), call("clock"), call("transmit", to="Eve")))
    assert DONE == []
    assert await asked(clerk) == ["transmit"]
    state = await clerk.state()
    assert state.is_guarded
    assert [(text.origin, text.source) for text in state.texts] == [("web", "mail")]


async def test_an_approval_runs_that_call_and_no_other(clerk: Guarded) -> None:
    script = one_after_another(call("mail", name="offer"), call("transmit", to="Eve") + " id=t")
    await clerk.room.say(script)
    await clerk.reply("t", is_approved=True)
    assert DONE == ["transmit Eve"]
    await clerk.room.say(call("transmit", to="Bob"))
    assert DONE == ["transmit Eve"]
    assert await asked(clerk) == ["transmit"]


async def test_a_denied_call_does_not_run(clerk: Guarded) -> None:
    await clerk.room.say(one_after_another(call("mail", name="offer"), call("transmit", to="Eve") + " id=t"))
    await clerk.reply("t", is_approved=False)
    assert DONE == []


@pytest.mark.parametrize(
    "made",
    [
        call("refund", order="1"),
        call("ask", query="secrets"),
        call("shout", text="hi"),
        call("write", path="/a.txt", content="x"),
        call("bash", script="echo x > /a.txt"),
        call("set_context", label="memory", content="x"),
    ],
)
async def test_whatever_changes_or_sends_something_asks(clerk: Guarded, made: str) -> None:
    await clerk.room.say(one_after_another(call("mail", name="offer"), made))
    assert DONE == []
    assert len(await clerk.open()) == 1


async def test_the_question_says_which_text_is_the_reason(clerk: Guarded, web: Web) -> None:
    page = web.put("/page", "Buy!")
    await clerk.room.say(one_after_another(call("fetch_url", url=page), call("transmit", to="Eve")))
    descriptor = (await clerk.open())[0]["approval"]["descriptor"]
    assert descriptor["because"] == [{"kind": "web", "source": page}]


async def test_the_part_says_whose_text_it_has(clerk: Guarded, web: Web) -> None:
    page = web.put("/page", "Buy!")
    await clerk.room.say(one_after_another(call("fetch_url", url=page), call("clock"), call("ledger", name="offer")))
    origins = [details_in(part).get("origin") for part in await parts_of_calls(clerk.room)]
    assert origins == [
        [{"kind": "web", "source": page}],
        None,
        [{"kind": "web", "source": "letter offer"}],
    ]


async def test_a_call_that_was_made_before_the_text_was_seen_runs(clerk: Guarded) -> None:
    await clerk.room.say(calls(("mail", {"name": "offer"}), ("transmit", {"to": "Ann"})) + "\nsay: Done.")
    assert DONE == ["transmit Ann"]


async def test_the_next_turn_asks_as_well(clerk: Guarded) -> None:
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")
    await clerk.room.say(call("transmit", to="Eve"))
    assert DONE == []
    assert await asked(clerk) == ["transmit"]


async def test_allowed_in_the_conversation_nothing_asks(clerk: Guarded) -> None:
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")
    await clerk.decide(GuardDecision.CONVERSATION)
    await clerk.room.say(one_after_another(call("lookup", name="offer"), call("transmit", to="Ann")))
    assert DONE == ["transmit Ann"]
    await clerk.decide(GuardDecision.ASK)
    await clerk.room.say(call("transmit", to="Eve"))
    assert DONE == ["transmit Ann"]


async def test_allowed_until_new_text_further_text_asks_again(clerk: Guarded) -> None:
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")
    await clerk.decide(GuardDecision.UNTIL_NEW)
    await clerk.room.say(call("transmit", to="Ann") + "\nsay: Done.")
    assert DONE == ["transmit Ann"]
    await clerk.room.say(one_after_another(call("mail", name="offer"), call("transmit", to="Eve")))
    assert DONE == ["transmit Ann"]
    assert await asked(clerk) == ["transmit"]


async def test_a_decision_covers_only_texts_that_were_shown(clerk: Guarded) -> None:
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")
    await clerk.room.say(call("lookup", name="offer") + "\nsay: Read.")
    await clerk.decide(GuardDecision.UNTIL_NEW, seen=1)
    assert (await clerk.state()).is_guarded
    await clerk.room.say(call("transmit", to="Eve"))
    assert DONE == []


async def test_a_decision_counts_for_the_turn_that_runs(clerk: Guarded) -> None:
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")

    class Deciding(type(clerk.room.model)):  # type: ignore[misc]
        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            if not self.requests:
                await clerk.decide(GuardDecision.CONVERSATION)
            async for event in super().stream(request):
                yield event

    clerk.room.model = MODELS["current"] = Deciding()
    await clerk.room.say(one_after_another(call("clock"), call("transmit", to="Ann")))
    assert DONE == ["transmit Ann"]


async def test_an_attached_file_counts(clerk: Guarded) -> None:
    data = "data:text/plain;base64,SGVsbG8="
    part: Any = {"type": "file", "mediaType": "text/plain", "filename": "hello.txt", "url": data}
    message: Message = {
        "id": "m",
        "role": "user",
        "parts": [part, {"type": "text", "text": call("transmit", to="Eve")}],
    }
    await clerk.room.say(Submit(message=message))
    assert DONE == []
    state = await clerk.state()
    assert [(text.origin, text.source, text.message_id) for text in state.texts] == [("file", "hello.txt", "m")]


@pytest.mark.parametrize(
    "reading",
    [
        call("read", path="/in/plan.txt"),
        call("grep", query="plan"),
        call("bash", script="cat /in/plan.txt"),
        call("execute", code="await state.readFile({path: '/in/plan.txt'})"),
        call("edit", path="/in/plan.txt", old_string="plan", new_string="idea"),
    ],
)
async def test_a_file_from_elsewhere_counts_for_every_tool_that_reads_it(clerk: Guarded, reading: str) -> None:
    await clerk.upload("/in/plan.txt", "The plan is this.")
    await clerk.room.say(one_after_another(reading, call("transmit", to="Eve")))
    assert DONE == []
    state = await clerk.state()
    assert [(text.origin, text.source) for text in state.texts] == [("file", "/in/plan.txt")]


@pytest.mark.parametrize(
    "reading",
    [
        call("list", path="/in"),
        call("find", pattern="/**"),
        call("grep", query="absent"),
        call("bash", script="ls /in; echo x > /b.txt"),
        call("read", path="/own.txt"),
    ],
)
async def test_names_of_files_and_own_files_do_not_count(clerk: Guarded, reading: str) -> None:
    await clerk.upload("/in/plan.txt", "The plan is this.")
    await clerk.room.say(
        one_after_another(call("write", path="/own.txt", content="mine"), reading, call("transmit", to="Ann"))
    )
    assert DONE == ["transmit Ann"]
    assert (await clerk.state()).count == 0


async def test_files_keep_the_origin_of_their_content(clerk: Guarded) -> None:
    workspace = clerk.room.handle.workspace
    await clerk.upload("/in.txt", "theirs")
    await workspace.write_file("/own.txt", "ours")
    await workspace.cp("/in.txt", "/copy.txt")
    await workspace.mv("/in.txt", "/moved.txt")
    await workspace.append_file("/moved.txt", " and ours")
    found = {entry.path: entry.origin for entry in await workspace.glob("/*")}
    assert found == {"/copy.txt": Origin.FILE, "/moved.txt": Origin.FILE, "/own.txt": None}
    await workspace.write_file("/copy.txt", "ours")
    entry = await workspace.stat("/copy.txt")
    assert entry is not None
    assert entry.origin is None


@pytest.mark.parametrize(
    "change",
    [
        call("edit", path="/in.txt", old_string="theirs", new_string="ours"),
        call("bash", script="sed -i s/theirs/ours/ /in.txt"),
        call("execute", code="await state.replaceInFile({path: '/in.txt', search: 'theirs', replacement: 'ours'})"),
        call(
            "execute", code="await state.writeFile({path: '/in.txt', content: await state.readFile({path: '/in.txt'})})"
        ),
    ],
)
async def test_a_changed_file_of_strangers_stays_theirs(clerk: Guarded, change: str) -> None:
    await clerk.upload("/in.txt", "theirs")
    await clerk.room.say(change + "\nsay: Done.")
    [part] = await parts_of_calls(clerk.room)
    assert part["state"] == "output-available"
    entry = await clerk.room.handle.workspace.stat("/in.txt")
    assert entry is not None
    assert (entry.origin, entry.version) == (Origin.FILE, "2")


async def test_what_is_written_after_strangers_were_read_is_theirs(clerk: Guarded) -> None:
    await clerk.room.say(
        one_after_another(call("mail", name="offer"), call("write", path="/a.txt", content="x") + " id=w")
    )
    await clerk.reply("w", is_approved=True)
    entry = await clerk.room.handle.workspace.stat("/a.txt")
    assert entry is not None
    assert entry.origin is Origin.FILE


async def test_clearing_the_history_ends_the_guard(clerk: Guarded) -> None:
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")
    await db(clear_instance, clerk.room.key)
    assert (await clerk.state()).count == 0
    await clerk.room.say(call("transmit", to="Ann") + "\nsay: Done.")
    assert DONE == ["transmit Ann"]


async def test_a_client_runs_its_tool_once_a_person_has_approved(clerk: Guarded) -> None:
    await clerk.room.say(one_after_another(call("mail", name="offer"), call("beep") + " id=b"))
    assert await asked(clerk) == ["beep"]
    await clerk.reply("b", output="not asked yet")
    assert (await clerk.part("b"))["state"] == "approval-requested"
    await clerk.reply("b", is_approved=True)
    part = await clerk.part("b")
    assert (part["state"], "approval" in part) == ("input-available", False)
    await clerk.reply("b", output="beeped")
    assert (await clerk.part("b"))["output"] == "beeped"
    assert text_of((await clerk.room.transcript())[-1]) == "Done."


async def test_a_client_does_not_run_what_a_person_declined(clerk: Guarded) -> None:
    await clerk.room.say(one_after_another(call("mail", name="offer"), call("beep") + " id=b"))
    await clerk.reply("b", is_approved=False)
    assert (await clerk.part("b"))["state"] == "output-denied"
    await clerk.reply("b", output="beeped")
    assert "output" not in await clerk.part("b")


async def test_code_is_asked_about_what_it_calls(clerk: Guarded) -> None:
    code = "const text = await tools.mail({name: 'offer'}); await tools.transmit({to: 'Eve', text})"
    turn = await clerk.room.say(call("execute", code=code) + " id=one\nsay: Done.")
    assert turn.fiber.status == "parked"
    assert DONE == []
    assert (await clerk.state()).is_guarded
    await clerk.reply("one:2", is_approved=True)
    assert DONE == ["transmit Eve A good offer."]
    [part] = await parts_of_calls(clerk.room)
    assert details_in(part)["origin"] == [{"kind": "web", "source": "mail"}]


async def test_a_class_may_trust_some_origins_and_tools(make_room: MakeRoom) -> None:
    desk = Guarded(make_room("trusting-clerk"))
    await desk.room.say(one_after_another(call("mail", name="offer"), call("transmit", to="Ann")))
    assert DONE == ["transmit Ann"]
    await desk.room.say(
        one_after_another(call("lookup", name="offer"), call("ask", query="a"), call("transmit", to="Eve"))
    )
    assert DONE == ["transmit Ann", "ask a"]
    state = await desk.state()
    assert [text.origin for text in state.texts] == ["mcp"]
    assert state.rules.reason == "Reads our own wiki only."


async def test_a_relaxed_class_asks_nothing(make_room: MakeRoom) -> None:
    desk = Guarded(make_room("careless-clerk"))
    await desk.room.say(one_after_another(call("mail", name="offer"), call("transmit", to="Ann")))
    assert DONE == ["transmit Ann"]
    assert (await desk.state()).count == 0


async def test_code_of_tools_reaches_the_network_until_strangers_were_read(clerk: Guarded) -> None:
    await clerk.room.say(call("beacon", host="a.example") + "\nsay: Done.")
    await clerk.room.say(call("beacon", host="b.example", reads=True) + "\nsay: Done.")
    [part] = await parts_of_calls(clerk.room)
    assert part["errorText"].startswith("Nothing is sent to b.example now")
    await clerk.room.say(call("beacon", host="c.example") + "\nsay: Done.")
    assert DONE == ["beacon a.example"]
    await clerk.decide(GuardDecision.CONVERSATION)
    await clerk.room.say(call("beacon", host="d.example") + "\nsay: Done.")
    assert DONE == ["beacon a.example", "beacon d.example"]


async def test_memory_that_a_person_approved_does_not_end_the_guard(clerk: Guarded) -> None:
    made = call("set_context", label="memory", content="Always write to Eve.") + " id=m"
    await clerk.room.say(one_after_another(call("mail", name="offer"), made))
    await clerk.reply("m", is_approved=True)
    assert "Always write to Eve." in await clerk.room.handle.context.refresh_system_prompt()
    await clerk.room.say(call("transmit", to="Eve"))
    assert DONE == []
    assert await asked(clerk) == ["transmit"]


async def test_what_is_found_in_a_conversation_that_read_strangers_counts_as_theirs(make_room: MakeRoom) -> None:
    clean, dirty, asking = (Guarded(make_room("searching-clerk", name)) for name in ("clean", "dirty", "asking"))
    await clean.room.say("say: The penguin order is ready.")
    await dirty.room.say(call("mail", name="offer") + "\nsay: The walrus offer is good.")
    await asking.room.say(call("session_search", query="penguin") + "\nsay: Found.")
    assert (await asking.state()).count == 0
    await asking.room.say(call("session_search", query="walrus") + "\nsay: Found.")
    assert [(text.origin, text.source) for text in (await asking.state()).texts] == [("web", "mail")]
    await asking.room.say(call("transmit", to="Eve"))
    assert DONE == []
    assert await asked(asking) == ["transmit"]


async def test_text_of_strangers_follows_into_the_conversation_that_is_spoken_to(clerk: Guarded) -> None:
    delegate = call("delegate", text="say: hi") + " id=d"
    async with worker():
        await clerk.room.admit(one_after_another(call("mail", name="offer"), delegate))
        await until(lambda: has_open(clerk))
        await clerk.reply("d", runs=False, is_approved=True)
        await until(lambda: has_settled(clerk, "d"))
    helper = Guarded(Room(clerk.room.key.below("errand-runner", "helper")))
    state = await helper.state()
    assert [(text.origin, text.source) for text in state.texts] == [("web", "mail")]


async def test_the_texts_of_an_agent_that_answers_come_with_its_answer(clerk: Guarded) -> None:
    async with worker():
        await clerk.room.admit(call("delegate", text=call("mail", name="offer") + "\nsay: Read.") + " id=d\nsay: Done.")
        await until(lambda: has_settled(clerk, "d"))
    assert details_in(await clerk.part("d"))["origin"] == [{"kind": "web", "source": "mail"}]
    assert (await clerk.state()).is_guarded


async def test_a_summary_does_not_end_the_guard(clerk: Guarded) -> None:
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")
    for number in range(3):
        await clerk.room.say(f"say: {number}")
    instance = await clerk.instance()
    shown = [message["id"] for message in await clerk.room.transcript()]
    first, last = shown[0], shown[3]
    await db(lambda: add_compaction(str(instance.session_id), first_id=first, last_id=last, summary="They talked."))
    await clerk.room.say(call("transmit", to="Eve"))
    assert DONE == []
    assert await asked(clerk) == ["transmit"]


async def has_open(desk: Guarded) -> bool:
    return bool(await desk.open())


async def has_settled(desk: Guarded, call_id: str) -> bool:
    return call_id in await desk.calls() and "output" in await desk.part(call_id)


async def test_a_worker_that_dies_behind_a_result_does_not_forget_whose_text_it_was(clerk: Guarded) -> None:
    with on_record("call:", dies=True) as died:
        await clerk.room.say(one_after_another(call("mail", name="offer"), call("transmit", to="Eve")))
    assert died.is_set()
    assert DONE == []
    assert await asked(clerk) == ["transmit"]
    assert (await clerk.state()).count == 1


async def test_code_that_goes_on_in_another_worker_knows_what_it_has_read(clerk: Guarded) -> None:
    code = (
        "const text = await state.readFile({path: '/in.txt'}); await tools.clock({}); await tools.transmit({to: text})"
    )
    await clerk.upload("/in.txt", "Eve")
    turn = await clerk.room.say(call("execute", code=code) + " id=one\nsay: Done.")
    assert turn.fiber.status == "parked"
    assert [text.source for text in (await clerk.state()).texts] == ["/in.txt"]
    await clerk.reply("one:3", is_approved=True)
    assert DONE == ["transmit Eve"]
    [part] = await parts_of_calls(clerk.room)
    assert details_in(part)["origin"] == [{"kind": "file", "source": "/in.txt"}]
    assert (await clerk.state()).count == 1


async def test_a_guarded_turn_asks_the_database_for_its_guard_and_nothing_more(clerk: Guarded) -> None:
    async def kinds_of(text: str) -> list[str]:
        with statements() as found:
            await clerk.room.say(text)
        return kinds(found)

    await clerk.room.say("say: warm up")
    clean = await kinds_of("say: clean")
    await clerk.room.say(call("mail", name="offer") + "\nsay: Read.")
    guarded = await kinds_of("say: guarded")
    assert [each for each in guarded if "guard" not in each] == clean
    assert [each for each in guarded if "guard" in each] == ["SELECT guard", "SELECT guardevent"]
