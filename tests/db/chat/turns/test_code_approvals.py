"""Calls of code that a person decides: through which door, with which arguments, how late, and what a crash leaves."""

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from chat.instances.rows import find_instance
from chat.models import AgentInstance, Turn
from chat.operations.removal import delete_instance
from chat.reads.approvals import pending_approvals
from chat.turns.admission.continuation import expire_question
from chat.turns.admission.tool_answers import has_pending_interaction
from fibers.execution import recovery
from fibers.models import Fiber
from fibers.process.runs import registry as runs
from fibers.services import answer_wait
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.answering import on_record
from tests.db.chat.turns.agents.coding import GATE, Code, Says, code, sandbox_closes, script
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db
from tools_app.core.tool_calls import OPEN
from tools_app.errors import EditInvalid
from tools_app.models import Execution, ToolCallRecord

from .conftest import MakeRoom, status_of, text_of

__all__ = ["code", "sandbox_closes"]  # fixtures

pytestmark = pytest.mark.django_db(transaction=True)

SEND = "const text = await tools.look({}); const sent = await tools.send({to: 'Ann', text}); sent + '!'"
SENT = ["look one:1", "send Ann found one:2"]


async def parked(code: Code, text: str = SEND) -> Turn:
    turn = await code.run(text)
    assert turn.fiber.status == "parked"
    return turn


async def answer_of(code: Code) -> str:
    return text_of((await code.room.transcript())[-1])


async def open_rows() -> list[str]:
    rows = ToolCallRecord.objects.filter(status__in=[*OPEN, "running"])
    return await db(lambda: list(rows.values_list("call_id", flat=True)))


async def let_expire(call_id: str) -> ToolCallRecord:
    """The time for the question is over by the database's clock."""
    rows = ToolCallRecord.objects.filter(call_id=call_id)
    await db(rows.update, expires_at=Now() - timedelta(seconds=1))
    return await db(rows.get)


async def test_a_question_of_code_is_like_any_other(code: Code) -> None:
    turn = await parked(code)
    assert [(wait["kind"], wait["label"], wait["call_id"]) for wait in turn.fiber.waits] == [
        ("approval", "Send it to Ann?", "one")
    ]
    assert not runs.snapshot()  # no worker holds it
    row = await code.row("one:2")
    assert (row.status, row.scope, row.turn_id) == ("asked", turn.instance_id, turn.pk)
    assert row.expires_at is not None
    assert row.expires_at > row.created_at
    assert await code.events("one:2") == [("asked", "turn", "")]
    [shown] = (await db(pending_approvals, code.room.key.owner_id)).items
    assert (shown.call_id, shown.tool_title, shown.question.sentence) == ("one:2", "Letter", "Send it to Ann?")
    assert (shown.message_id, shown.input) == (turn.assistant_id, {"to": "Ann", "text": "found"})
    assert await db(has_pending_interaction, code.room.key)
    assert await code.done() == ["look one:1"]


async def by_reply(code: Code) -> None:
    assert (await code.reply("one:2", is_approved=True)).is_new


async def by_handle(code: Code) -> None:
    [question] = await code.room.handle.pending_approvals()
    assert await code.room.handle.approve_execution(question.id)


async def by_api(code: Code) -> None:
    client = Client()
    await db(client.force_login, await db(User.objects.get, pk=code.room.key.owner_id))
    instance = await db(find_instance, code.room.key)
    assert isinstance(instance, AgentInstance)
    calls = f"/api/v1/instances/{instance.pk}/calls"
    [listed] = (await db(client.get, calls)).json()
    assert (listed["call_id"], listed["needs"]) == ("one:2", "approval")
    post = partial(client.post, f"{calls}/one:2/approval", {"approved": True}, content_type="application/json")
    assert (await db(post)).json()["accepted"]
    assert not (await db(post)).json()["accepted"]


async def by_admin(code: Code) -> None:
    client = Client()
    await db(client.force_login, await db(partial(User.objects.create_superuser, "staff")))
    row = await code.row("one:2")
    post = partial(
        client.post,
        "/admin/think_tools/toolcallrecord/",
        {"action": "approve", "_selected_action": [str(row.pk)]},
        follow=True,
    )
    assert "1 of 1 approved" in (await db(post)).content.decode()


@pytest.mark.parametrize("door", [by_reply, by_handle, by_api, by_admin])
async def test_every_door_lets_the_code_go_on(code: Code, door: Any) -> None:
    turn = await parked(code)
    await door(code)
    turn = await code.goes_on(turn)
    assert status_of(turn) == "completed"
    assert "found went to Ann!" in await answer_of(code)
    assert await code.done() == SENT
    row = await code.row("one:2")
    assert (row.status, row.output) == ("succeeded", "found went to Ann")
    assert [kind for kind, _, _ in await code.events("one:2")] == ["asked", "approved"]
    assert await open_rows() == []
    turns = Turn.objects.filter(instance=turn.instance_id)
    assert await db(turns.count) == 1  # the turn itself went on; none continues it


async def test_a_denial_is_an_error_in_the_code(code: Code) -> None:
    turn = await parked(code, "let said; try { await tools.send({to: 'Ann'}) } catch (e) { said = e.message } said")
    await code.reply("one:1", is_approved=False, reason="not now")
    assert status_of(await code.goes_on(turn)) == "completed"
    assert "A person did not approve this call: not now" in await answer_of(code)
    assert (await code.row("one:1")).status == "denied"
    assert await code.done() == []


async def test_changed_arguments_run_and_are_checked(code: Code) -> None:
    turn = await parked(code)
    for wrong in ({"to": "Bob", "text": "found"}, {"to": "Ann", "text": 5}):
        with pytest.raises(EditInvalid):
            await code.reply("one:2", is_approved=True, edited_input=wrong)
    assert (await code.room.turn(turn.pk)).fiber.status == "parked"
    await code.reply("one:2", is_approved=True, edited_input={"to": "Ann", "text": "love"})
    assert status_of(await code.goes_on(turn)) == "completed"
    assert "love went to Ann!" in await answer_of(code)
    row = await code.row("one:2")
    assert (row.input["text"], row.edited_input["text"], row.output) == ("found", "love", "love went to Ann")
    assert await code.done() == ["look one:1", "send Ann love one:2"]


async def test_a_rule_that_does_not_ask_leaves_no_question(code: Code) -> None:
    turn = await parked(code, "await tools.pay({amount: 5}); await tools.pay({amount: 50})")
    assert [row.call_id for row in await db(lambda: list(ToolCallRecord.objects.order_by("pk")))] == ["one", "one:2"]
    await code.reply("one:2", is_approved=True)
    assert status_of(await code.goes_on(turn)) == "completed"
    assert await code.done() == ["pay 5", "pay 50"]


async def test_two_questions_at_once_are_decided_in_any_order(code: Code) -> None:
    turn = await parked(code, "(await Promise.all([tools.send({to: 'Ann'}), tools.send({to: 'Bob'})])).join()")
    assert len(turn.fiber.waits) == 2
    await code.reply("one:2", is_approved=True)
    assert (await code.room.turn(turn.pk)).fiber.status == "parked"
    await code.reply("one:1", is_approved=True)
    assert status_of(await code.goes_on(turn)) == "completed"
    assert await code.done() == ["send Bob one:2", "send Ann one:1"]
    assert await open_rows() == []


@pytest.mark.parametrize("by", ["its fiber", "the end of the wait"])
async def test_a_question_that_nobody_answers_expires(code: Code, by: str) -> None:
    turn = await parked(code, "let said; try { await tools.send({to: 'Ann'}) } catch (e) { said = e.message } said")
    row = await let_expire("one:1")
    assert not (await code.reply("one:1", is_approved=True, runs=False)).is_new
    if by == "its fiber":
        assert await db(expire_question, row.pk, turn.instance_id)
        assert not await db(expire_question, row.pk, turn.instance_id)
    else:
        await db(Fiber.objects.filter(name="chat.expire_question").delete)
        await db(Fiber.objects.filter(pk=turn.fiber_id).update, parked_until=Now() - timedelta(seconds=1))
        await db(recovery.sweep)
    assert status_of(await code.goes_on(turn)) == "completed"
    assert "Nobody answered in time." in await answer_of(code)
    assert [(kind, via) for kind, via, _ in await code.events("one:1")] == [("asked", "turn"), ("expired", "server")]
    assert await open_rows() == []


async def test_a_wait_that_something_else_ends_leaves_the_question_open(code: Code) -> None:
    turn = await parked(code)
    assert not (await code.reply("one:2", output="forged", runs=False)).is_new
    [wait] = turn.fiber.waits
    assert await db(answer_wait, turn.fiber_id, wait["key"], {"approved": True})
    turn = await code.goes_on(turn)
    assert turn.fiber.status == "parked"
    assert (await code.row("one:2")).status == "asked"
    await code.reply("one:2", is_approved=True)
    assert status_of(await code.goes_on(turn)) == "completed"
    assert await code.done() == SENT


async def test_of_many_decisions_one_counts(code: Code) -> None:
    turn = await parked(code)
    outcomes = await asyncio.gather(*(code.reply("one:2", is_approved=n % 2 == 0, runs=False) for n in range(4)))
    assert sum(outcome.is_new for outcome in outcomes) == 1
    assert status_of(await code.goes_on(turn)) == "completed"
    events = [kind for kind, _, _ in await code.events("one:2")]
    assert len(events) == 2
    assert (await code.done() == SENT) == (events[1] == "approved")


async def test_an_expiry_and_a_decision_at_the_same_moment_settle_the_question_once(code: Code) -> None:
    turn = await parked(code)
    row = await let_expire("one:2")
    outcomes = await asyncio.gather(
        db(expire_question, row.pk, turn.instance_id), code.reply("one:2", is_approved=True, runs=False)
    )
    assert outcomes[0] is True
    assert status_of(await code.goes_on(turn)) == "completed"
    assert [kind for kind, _, _ in await code.events("one:2")] == ["asked", "expired"]
    assert await code.done() == ["look one:1"]


async def test_a_decision_before_the_turn_has_parked_counts(code: Code) -> None:
    GATE["open"], GATE["reached"] = asyncio.Event(), asyncio.Event()
    running = asyncio.create_task(code.run("(await Promise.all([tools.send({to: 'Ann'}), tools.linger()])).join()"))
    async with asyncio.timeout(20):
        await GATE["reached"].wait()
    await until(partial(db, ToolCallRecord.objects.filter(call_id="one:1", status="asked").exists))
    assert (await code.reply("one:1", is_approved=True, runs=False)).is_new
    assert await code.done() == []
    GATE["open"].set()
    assert status_of(await running) == "completed"
    assert await code.done() == ["send Ann one:1"]
    assert "went to Ann,lingered" in await answer_of(code)


@pytest.mark.parametrize("where", ["before", "inside", "after"])
@pytest.mark.parametrize("runs_again", [True, False])
async def test_a_crash_around_an_approved_call_loses_nothing(code: Code, where: str, runs_again: bool) -> None:
    call = "tools.send({to: 'Ann'})" if runs_again else "tools.pay({amount: 50})"
    turn = await parked(code, f"let said; try {{ said = await {call} }} catch (e) {{ said = e.message }} said")
    Says.dies = where
    await code.reply("one:1", is_approved=True)
    turn = await code.goes_on(turn)
    assert Says.dies == ""
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 3)
    effects = await code.done()
    row = await code.row("one:1")
    if runs_again:
        assert effects == ["send Ann one:1"] * (1 if where == "before" else 2)  # under the same key
        assert (row.status, row.output) == ("succeeded", " went to Ann")
    else:
        assert effects == ([] if where == "before" else ["pay 50"])
        assert (row.status, "interrupted" in row.output) == ("failed", True)
    assert [kind for kind, _, _ in await code.events("one:1")] == ["asked", "approved"]
    assert await open_rows() == []


@pytest.mark.parametrize("record", ["begin", "model:0", "call:", "model:1", "ending"])
async def test_a_crash_at_any_record_asks_once_and_sends_once(code: Code, record: str) -> None:
    with on_record(record, dies=True) as seen:
        turn = await code.run(SEND)
        if turn.fiber.status == "parked":
            await code.reply("one:2", is_approved=True)
        turn = await code.goes_on(turn)
    assert seen.is_set()
    assert status_of(turn) == "completed"
    assert await code.done() == SENT
    assert [kind for kind, _, _ in await code.events("one:2")] == ["asked", "approved"]
    assert await open_rows() == []


async def test_a_crash_after_the_decision_goes_on_with_it(code: Code) -> None:
    turn = await parked(code)
    with on_record("begin", dies=True):
        await code.reply("one:2", is_approved=True)
    turn = await code.goes_on(turn)
    assert status_of(turn) == "completed"
    assert await code.done() == SENT


@pytest.mark.parametrize("how", ["stop", "clear", "delete"])
async def test_what_ends_the_turn_ends_its_questions(code: Code, how: str) -> None:
    await parked(code)
    if how == "stop":
        assert await code.room.handle.abort_all_requests()
        assert not (await code.reply("one:2", is_approved=True, runs=False)).is_new  # before anything is sealed
    elif how == "clear":
        await code.room.handle.clear()
    else:
        instance = await db(find_instance, code.room.key)
        assert isinstance(instance, AgentInstance)
        await db(delete_instance, instance)
    await run_until_idle(skip_delays=True)
    assert await open_rows() == []
    assert not (await code.reply("one:2", is_approved=True)).is_new
    assert (await db(pending_approvals, code.room.key.owner_id)).count == 0
    assert await code.done() == ["look one:1"]
    if how == "delete":
        assert not await db(Execution.objects.exists)
        assert not await db(ToolCallRecord.objects.exists)
    else:
        assert [kind for kind, _, _ in await code.events("one:2")] == ["asked", "superseded"]
        assert not await db(has_pending_interaction, code.room.key)
        await code.room.say("say: On we go.")
        assert await answer_of(code) == "On we go."


async def test_code_that_ends_without_an_answer_leaves_no_question(make_room: MakeRoom) -> None:
    code = Code(make_room("hasty-coder"))
    turn = await code.run("tools.send({to: 'Ann'}).catch(() => 0); for (;;);")
    assert status_of(turn) == "completed"
    assert "timed out" in await answer_of(code)
    assert await open_rows() == []
    assert [kind for kind, _, _ in await code.events("one:1")] == ["asked", "superseded"]
    assert not await db(has_pending_interaction, code.room.key)


async def guarded(make_room: MakeRoom) -> tuple[Code, Turn]:
    """Code that a person has approved, in the turn that goes on, which waits for a further decision."""
    code = Code(make_room("guarded-coder"))
    assert status_of(await code.run(SEND)) == "completed"
    await code.reply("one", is_approved=True)
    turn = await db(Turn.objects.select_related("fiber").order_by("-position").first)
    assert isinstance(turn, Turn)
    assert (turn.fiber.status, turn.fiber.parked_until) == ("parked", None)
    return code, turn


async def test_code_that_was_approved_itself_asks_about_its_calls_without_an_end(make_room: MakeRoom) -> None:
    code, turn = await guarded(make_room)
    assert (await code.row("one:2")).expires_at is None
    assert not await db(Fiber.objects.filter(name="chat.expire_question").exists)
    await code.reply("one:2", is_approved=True)
    assert status_of(await code.goes_on(turn)) == "completed"
    assert (await code.part("one"))["output"]["value"] == "found went to Ann!"
    assert await code.done() == SENT
    assert await open_rows() == []
    assert await db(Turn.objects.count) == 2


async def test_a_stop_ends_the_questions_of_code_that_was_approved(make_room: MakeRoom) -> None:
    code, turn = await guarded(make_room)
    assert await code.room.handle.abort_all_requests()
    assert status_of(await code.goes_on(turn)) == "aborted"
    assert (await code.row("one:2")).status == "denied"
    assert not await db(has_pending_interaction, code.room.key)


async def test_code_that_waits_does_not_cut_an_approved_call_beside_it(make_room: MakeRoom) -> None:
    code = Code(make_room("guarded-coder"))
    GATE["open"], GATE["reached"] = asyncio.Event(), asyncio.Event()
    await code.room.say(f"call tool brood {{}} id=two\n{script(SEND)}")
    for call in ("one", "two"):
        await code.reply(call, is_approved=True, runs=False)
    running = asyncio.create_task(run_until_idle(skip_delays=True))
    async with asyncio.timeout(20):
        await GATE["reached"].wait()
    await until(partial(db, ToolCallRecord.objects.filter(call_id="one:2", status="asked").exists))
    GATE["open"].set()
    await running
    assert (await code.part("two"))["output"] == "brooded"
    await code.reply("one:2", is_approved=True)
    assert (await code.part("one"))["output"]["value"] == "found went to Ann!"
    assert sorted(await code.done()) == sorted(["brood", *SENT])


async def test_a_message_that_is_sent_meanwhile_waits_and_supersedes_nothing(code: Code) -> None:
    turn = await parked(code)
    later = await code.room.say("say: Later.")
    assert later.fiber.status == "pending"
    assert (await code.row("one:2")).status == "asked"
    await code.reply("one:2", is_approved=True)
    assert status_of(await code.goes_on(turn)) == "completed"
    assert await answer_of(code) == "Later."
    assert await code.done() == SENT


async def test_calls_of_two_conversations_are_not_mistaken_for_each_other(make_room: MakeRoom) -> None:
    first, second = Code(make_room("coder", "first")), Code(make_room("coder", "second"))
    second.room.model = first.room.model
    turns = [await parked(first), await parked(second)]
    assert (await second.reply("one:2", is_approved=False)).is_new
    assert [(await first.room.turn(turn.pk)).fiber.status for turn in turns] == ["parked", "completed"]
    rows = await db(lambda: list(ToolCallRecord.objects.filter(call_id="one:2").order_by("pk")))
    assert [row.status for row in rows] == ["asked", "denied"]
