"""Calls of code within a turn: hooks, permissions, files, replies, which tools code has, and what all of it costs."""

from pathlib import Path
from typing import Any

import pytest

from chat.files.tool_outputs import MAX_FILES
from chat.instances.rows import find_instance
from chat.models import AgentInstance, Attachment
from chat.operations.removal import delete_instance
from chat.think import Allow, Block, Substitute
from sessions_app.core.messages.shapes import OURS
from tests.db.chat.turns.agents.coding import NOTED, Code, Says, listening, sandbox_closes
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump
from tools_app.models import ActionRecord, Execution, StoredWorkspace, ToolCallRecord

from .conftest import MakeRoom, status_of, text_of

__all__ = ["sandbox_closes"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def listening_code(make_room: MakeRoom) -> Code:
    return listening(make_room("coder"))


async def answer_of(code: Code) -> str:
    return text_of((await code.room.transcript())[-1])


async def test_hooks_see_the_calls_of_code_between_those_of_the_call_with_the_code(listening_code: Code) -> None:
    await listening_code.run("await tools.look({}); await tools.plot({count: 0})")
    assert [
        *("before one", "before one:1", "look one:1", "after one:1"),
        *("before one:2", "plot 0", "after one:2", "after one"),
    ] == NOTED


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (Block(reason="shut"), "shut"),
        (Substitute(output="instead"), "instead"),
        (Allow(input={"amount": 3}), "paid 3"),
        (Allow(input={"amount": "much"}), "amount"),
    ],
)
async def test_a_hook_decides_about_a_call_of_code(listening_code: Code, decision: Any, said: str) -> None:
    Says.decision = {"pay": decision}
    await listening_code.run(
        "let said; try { said = await tools.pay({amount: 4}) } catch (e) { said = e.message } said"
    )
    assert said in await answer_of(listening_code)
    assert await listening_code.done() == (["pay 3"] if said == "paid 3" else [])
    assert NOTED.count("after one:1") == 1


async def test_an_approved_call_runs_its_hooks_once_it_runs(listening_code: Code) -> None:
    await listening_code.run("await tools.send({to: 'Ann'})")
    assert NOTED == ["before one"]
    await listening_code.reply("one:1", is_approved=True)
    assert NOTED[1:] == ["before one", "before one:1", "send Ann one:1", "after one:1", "after one"]


async def test_nobody_is_asked_about_an_action_that_may_not_run(listening_code: Code) -> None:
    turn = await listening_code.run("JSON.stringify(await tools.rename({name: 'Bob'}))")
    assert status_of(turn) == "completed"
    assert "ActionDenied" in await answer_of(listening_code)
    assert not await db(ToolCallRecord.objects.exclude(call_id="one").exists)
    assert await listening_code.done() == []


async def test_an_action_of_code_is_asked_about_and_has_an_effect_of_its_own(listening_code: Code) -> None:
    Says.may_act = True
    turn = await listening_code.run("await tools.rename({name: 'Bob'})")
    assert turn.fiber.status == "parked"
    await listening_code.reply("one:1", is_approved=True)
    assert "renamed Bob" in await answer_of(listening_code)
    assert [note for note in NOTED if note.startswith("auth")] == ["authorize one:1 False", "authorize one:1 True"]
    effect = await db(ActionRecord.objects.get)
    assert (effect.call_id, effect.status, effect.output) == ("one:1", "settled", "renamed Bob")


async def test_files_of_calls_belong_to_the_call_with_the_code(listening_code: Code) -> None:
    """Also those of a call that had ended before a person was asked about another one."""
    await listening_code.run(
        "await tools.plot({count: 2}); await tools.send({to: 'Ann'}); await tools.plot({count: 1})"
    )
    await listening_code.reply("one:2", is_approved=True)
    part = await listening_code.part("one")
    files = part["toolMetadata"][OURS]["attachments"]
    assert [entry["filename"] for entry in files] == ["0.png", "1.png", "0.png"]
    assert await db(Attachment.objects.count) == 3
    assert await listening_code.done() == ["plot 2", "send Ann one:2", "plot 1"]
    assert (
        dump(listening_code.room.model.requests[-1]["messages"]).count("data:image/png") == 3
    )  # the model is shown them all


async def test_code_keeps_as_many_files_as_one_call(listening_code: Code) -> None:
    turn = await listening_code.run("await tools.plot({count: 15}); await tools.plot({count: 15})")
    assert status_of(turn) == "completed"
    files = (await listening_code.part("one"))["toolMetadata"][OURS]["attachments"]
    assert len([entry for entry in files if "url" in entry]) == MAX_FILES
    assert [entry["filename"] for entry in files if "error" in entry] == ["5.png"]


async def test_what_a_call_of_code_attaches_is_in_the_reply_once(listening_code: Code) -> None:
    await listening_code.run("await tools.remark({}); await tools.send({to: 'Ann'})")
    await listening_code.reply("one:2", is_approved=True)
    parts = (await listening_code.room.transcript())[-1]["parts"]
    assert [part["data"] for part in parts if part["type"] == "data-remark"] == [{"n": 1}]


async def test_code_has_the_tools_that_run_here_and_not_itself(listening_code: Code) -> None:
    await listening_code.room.say("say: hello")
    tools = listening_code.offered
    assert list(tools) == ["execute", "look", "send", "pay", "linger", "plot", "rename", "remark", "where"]
    for name in ("look", "send", "pay", "plot"):
        assert f"{name}(" in tools["execute"]
    assert "where(" not in tools["execute"]
    assert "execute(" not in tools["execute"]
    assert "Functions of `state`" not in tools["execute"]


async def test_patterns_choose_what_code_may_call_and_files_are_at_hand(make_room: MakeRoom) -> None:
    code = listening(make_room("file-coder"))
    await code.run(
        "await state.writeFile({path: '/a.txt', content: 'hi'}); (await tools.read({path: '/a.txt'})).length"
    )
    tools = code.offered
    assert list(tools)[:9] == ["read", "write", "edit", "list", "find", "grep", "delete", "bash", "execute"]
    assert "read(" in tools["execute"]
    assert "look(" in tools["execute"]
    for name in ("write(", "send(", "pay("):
        assert name not in tools["execute"].partition("Functions of `state`")[0]
    assert "Functions of `state`" in tools["execute"]
    assert status_of(await code.run("await tools.send({to: 'Ann'})")) == "completed"
    assert "There is no function" in await answer_of(code)


async def test_files_are_there_for_code_where_every_pattern_lets_them(make_room: MakeRoom) -> None:
    code = listening(make_room("file-coder"))
    Says.active = ["execute", "read", "look"]
    await code.room.say("say: hello")
    assert list(code.offered) == ["read", "execute", "look"]
    assert "Functions of `state`" not in code.offered["execute"]
    Says.active = ["execute", "state"]
    await code.room.say("say: hello")
    assert "Functions of `state`" in code.offered["execute"]


async def test_code_loads_the_packages_of_the_setting(listening_code: Code, settings: Any, tmp_path: Path) -> None:
    (tmp_path / "words@1.0.0.js").write_text("export const up = (text) => text.toUpperCase();")
    settings.THINK_SANDBOX_PACKAGES_DIR = str(tmp_path)
    settings.THINK_SANDBOX_PACKAGES = "words@1.0.0"
    await listening_code.run("const words = await load('words'); words.up('loud')")
    assert "LOUD" in await answer_of(listening_code)
    assert 'await load("words")`. There are: words 1.0.0.' in listening_code.offered["execute"]
    settings.THINK_SANDBOX_PACKAGES = ""
    await listening_code.run("await load('words')")
    assert "load(" not in listening_code.offered["execute"]
    assert "LOUD" not in await answer_of(listening_code)


async def test_a_package_that_cannot_be_fetched_fails_the_call_and_not_the_turn(
    listening_code: Code, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9/")
    settings.THINK_SANDBOX_PACKAGES_DIR = str(tmp_path)
    settings.THINK_SANDBOX_PACKAGES = {"zod": "4.1.12"}
    assert status_of(await listening_code.run("1")) == "completed"
    assert "Packages for code cannot be fetched now (zod)" in await answer_of(listening_code)


async def test_code_cannot_call_what_the_turn_may_not(listening_code: Code) -> None:
    Says.active = ["execute", "look"]
    await listening_code.run("await tools.pay({amount: 1})")
    assert list(listening_code.offered) == ["execute", "look"]
    assert "pay(" not in listening_code.offered["execute"]
    assert await listening_code.done() == []


async def test_an_agents_own_tool_of_that_name_wins(make_room: MakeRoom) -> None:
    code = listening(make_room("own-coder"))
    await code.run("anything")
    assert "my own code: anything" in await answer_of(code)
    assert list(code.offered).count("execute") == 1


async def test_calls_that_nobody_is_asked_about_have_no_row_and_no_statement_of_a_question(
    listening_code: Code,
) -> None:
    with statements() as once:
        await listening_code.run("await tools.look({})")
    with statements() as thrice:
        await listening_code.run("await tools.look({}); await tools.look({}); await tools.pay({amount: 1})")
    for found in (once, thrice):
        changes = [
            sql for sql in found if sql.startswith(('INSERT INTO "think_tools_tool', 'UPDATE "think_tools_tool'))
        ]
        assert len(changes) == 2  # the call with the code begins and is settled
    calls = await db(lambda: list(ToolCallRecord.objects.values_list("call_id", "wait_key")))
    assert [wait_key for _, wait_key in calls] == ["", ""]


async def test_a_deleted_conversation_leaves_no_code_and_no_files(make_room: MakeRoom) -> None:
    code = listening(make_room("file-coder"))
    await code.run("await state.writeFile({path: '/a.txt', content: 'hi'}); await tools.look({})")
    assert await db(Execution.objects.exists)
    assert await db(StoredWorkspace.objects.exists)
    instance = await db(find_instance, code.room.key)
    assert isinstance(instance, AgentInstance)
    await db(delete_instance, instance)
    assert not await db(Execution.objects.exists)
    assert not await db(StoredWorkspace.objects.exists)
