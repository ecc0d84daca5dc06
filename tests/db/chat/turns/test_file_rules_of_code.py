"""Rules about files hold for code that a model writes: `state.*`, scripts, extensions. Secrets ask, denials stay."""

from functools import partial
from typing import Any, ClassVar

import pytest

from chat.conversations.permissions import RuleDraft, add_own_rule
from chat.instances.rows import find_instance
from chat.instances.workspaces import InstanceWorkspace
from chat.llm.scripted import ScriptedModel
from chat.think import Permission, Think, Tool, tool
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump
from tools_app.calls.services import Actor
from tools_app.core.permissions.rules import RuleAction, RuleLevel
from tools_app.models import ToolCallRecord
from tools_app.shell.tool import create_bash_tool

from .conftest import MakeRoom, Room

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]
SENT: list[str] = []


@tool(needs_approval=True)
def post(text: str) -> str:
    """Post a letter."""
    SENT.append(text)
    return f"posted {text}"


class RuledScribe(Think):
    """Works on files by tools, by scripts and by code; its class seals a folder."""

    permissions: ClassVar[tuple[Permission, ...]] = (
        Permission.deny("write", "/sealed/**"),
        Permission.deny("delete", "/sealed/**"),
        Permission.deny("read", "/hidden/**"),
    )
    code_tool = True

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [create_bash_tool(self.workspace), post]


class ExtendedScribe(RuledScribe):
    """Loads extensions."""

    extensions = True


class ReviewedScribe(RuledScribe):
    """Has a model look at its calls first."""

    @property
    def review_model(self) -> ScriptedModel:
        return MODELS["reviewer"]


async def desk_of(make_room: MakeRoom, agent: str = "ruled-scribe") -> tuple[Desk, InstanceWorkspace]:
    desk = Desk(make_room(agent))
    await desk.room.say("say: Hello.")
    files = InstanceWorkspace(desk.room.key)
    for path, text in (("/.env", "PASSWORD=1"), ("/sealed/a", "sealed"), ("/hidden/c", "secretive"), ("/e", "open")):
        await files.write_file(path, text)
    await files.symlink("/.env", "/innocent")
    SENT.clear()
    return desk, files


async def output_of(desk: Desk, name: str, **given: Any) -> Any:
    """The outcome of a call: its output, the text of its error, or `None` where a person is asked."""
    await desk.room.say(f"call tool {name} {dump(given)}\nsay: {{results}}.")
    part: Any = await desk.part([call for call in await desk.calls() if ":" not in call][-1])
    return part.get("output", part.get("errorText"))


async def code(desk: Desk, body: str) -> str:
    text = f"async () => {{ try {{ return await ({body}) }} catch (e) {{ return e.message }} }}"
    return str((await output_of(desk, "execute", code=text))["value"])


async def add(room: Room, act: RuleAction, key: str, pattern: str = "*") -> None:
    instance, owner_id = await db(find_instance, room.key), room.key.owner_id
    assert owner_id is not None
    draft = RuleDraft(action=act, key=key, pattern=pattern)
    await db(partial(add_own_rule, owner_id, instance, draft, Actor(user_id=owner_id, via="api")))


async def test_code_reaches_no_file_that_a_rule_keeps_from_it(make_room: MakeRoom) -> None:
    desk, files = await desk_of(make_room)
    for body in (
        'state.readFile({path: "/.e" + "nv"})',
        'state.readFile({path: "/innocent"})',
        'state.mv({source: "/.env", target: "/x"})',
    ):
        assert "a person has to allow this" in await code(desk, body), body
    for body in (
        'state.writeFile({path: "/sealed/a", content: "x"})',
        'state.cp({source: "/e", target: "/sealed/b"})',
        'state.readFile({path: "/hidden/c"})',
    ):
        assert "refused by the rule 'deny" in await code(desk, body), body
    assert await code(desk, 'state.readFile({path: "/e"})') == "open"
    await add(desk.room, RuleAction.DENY, "edit", "/e")  # what is added counts from the next call
    assert "refused by the rule 'deny edit: /e'" in await code(desk, 'state.writeFile({path: "/e", content: "x"})')
    await add(desk.room, RuleAction.ALLOW, "read", "/.env")  # as the tool for files offers it
    assert await code(desk, 'state.readFile({path: "/innocent"})') == "PASSWORD=1"
    kept = [await files.read_file(path) for path in ("/.env", "/sealed/a", "/e", "/sealed/b", "/x")]
    assert kept == ["PASSWORD=1", "sealed", "open", None, None]


async def test_scripts_reach_no_file_that_a_rule_keeps_from_them(make_room: MakeRoom) -> None:
    desk, files = await desk_of(make_room)
    script = """n=.e; cat "/${n}nv"; cat /innocent; cp /innocent /x; mv /innocent /y; ln -s "/${n}nv" /z; cat /z
cat /hidden/*; grep -r secretive /hidden; cp /e /sealed/b; mv /e /sealed/b; rm -r /sealed; sed -i s/s/x/ /sealed/a
cat /e; echo end"""
    found = await output_of(desk, "bash", script=script)
    assert found["stdout"] == "openend\n"
    assert "a person has to allow this" in found["stderr"]
    assert "refused by the rule 'deny write: /sealed/**'" in found["stderr"]
    await output_of(desk, "bash", script="for f in a b; do echo x > /sealed/$f; done")
    await output_of(desk, "bash", script="cd /sealed; echo x | tee a c > d; echo y >> a")
    names = [entry.path for entry in await files.glob("/sealed/*")]
    kept = [await files.read_file(path) for path in ("/.env", "/sealed/a", "/hidden/c", "/e")]
    assert (kept, names) == (["PASSWORD=1", "sealed", "secretive", "open"], ["/sealed/a"])


async def test_who_approves_a_script_opens_what_asks_and_nothing_that_is_denied(make_room: MakeRoom) -> None:
    desk, files = await desk_of(make_room)
    script = "cat /.env; cat /hidden/c; cp /e /sealed/a"
    assert await output_of(desk, "bash", script=script) is None
    call = (await desk.calls())[-1]
    assert (await desk.row(call)).status == "asked"
    await desk.reply(call, is_approved=True)
    part: Any = await desk.part(call)
    assert part["output"]["stdout"] == "PASSWORD=1"
    assert await files.read_file("/sealed/a") == "sealed"
    assert await output_of(desk, "bash", script="cat /.env") is None
    await desk.reply((await desk.calls())[-1], is_approved=True, always=RuleLevel.CONVERSATION)
    assert (await output_of(desk, "bash", script="cat /.env"))["stdout"] == "PASSWORD=1"
    await add(desk.room, RuleAction.ALLOW, "bash")  # an allowance of all covers no secret
    assert (await output_of(desk, "bash", script="cat /.e*"))["stdout"] == ""


@pytest.mark.parametrize(("script", "is_clear"), [("say: CLEAR", True), ("say: CAUTION", False)])
async def test_calls_that_code_makes_are_reviewed_as_those_of_a_model(
    make_room: MakeRoom, script: str, is_clear: bool
) -> None:
    MODELS["reviewer"] = ScriptedModel(script)
    desk, _ = await desk_of(make_room, "reviewed-scribe")
    text = 'async () => await tools.post({text: "hello"})'
    await desk.room.say(f"call tool execute {dump({'code': text})}\nsay: {{results}}.")
    assert ["hello"] * is_clear == SENT
    asked = await db(ToolCallRecord.objects.filter(tool_name="post", status="asked").count)
    assert asked == (0 if is_clear else 1)
    if is_clear:
        assert "posted hello" in dump((await desk.part((await desk.calls())[-1]))["output"])


PROBE = """({ tools: { all: { execute: async ({ calls }, host) => {
  const found = [];
  for (const [method, ...args] of calls) {
    try { found.push(await host[method](...args)); } catch (error) { found.push(error.message); }
  }
  return found;
} } } })"""


async def test_extensions_reach_no_file_that_a_rule_keeps_from_them(make_room: MakeRoom) -> None:
    desk, files = await desk_of(make_room, "extended-scribe")
    manifest = {"name": "probe", "version": "1", "permissions": {"workspace": "read-write"}}
    await desk.room.handle.load_extension(manifest, PROBE)
    calls = [
        ["readFile", "/e"],
        ["readFile", "/innocent"],
        ["readFile", "/hidden/c"],
        ["writeFile", "/sealed/a", "x"],
        ["deleteFile", "/.env"],
    ]
    readable, *others = await output_of(desk, "probe_all", calls=calls)
    assert readable == "open"
    assert [each.partition(":")[0] for each in others] == ["EACCES"] * 4
    assert await state_of(files) == ["PASSWORD=1", "sealed"]


async def state_of(files: InstanceWorkspace) -> list[str | None]:
    return [await files.read_file(path) for path in ("/.env", "/sealed/a")]


async def test_hooks_of_extensions_reach_no_file_that_a_rule_keeps_from_them(make_room: MakeRoom) -> None:
    desk, files = await desk_of(make_room, "extended-scribe")
    hook = """async (event, host) => {
      const found = [];
      for (const path of ["/e", "/innocent", "/hidden/c"]) {
        try { found.push(await host.readFile(path)); } catch (error) { found.push(error.message.split(":")[0]); }
      }
      try { await host.writeFile("/sealed/a", "x"); } catch (error) { found.push(error.message.split(":")[0]); }
      await host.writeFile("/found", JSON.stringify(found));
    }"""
    manifest = {
        "name": "watcher",
        "version": "1",
        "hooks": ["afterToolCall"],
        "permissions": {"workspace": "read-write"},
    }
    await desk.room.handle.load_extension(manifest, f"({{ hooks: {{ afterToolCall: {hook} }} }})")
    await output_of(desk, "read", path="/e")
    assert await files.read_file("/found") == '["open","EACCES","EACCES","EACCES"]'
    assert await state_of(files) == ["PASSWORD=1", "sealed"]


async def test_a_refused_redirection_fails_its_command_alone(make_room: MakeRoom) -> None:
    desk, files = await desk_of(make_room)
    script = "echo first; echo x > /sealed/a || echo refused; { echo in; echo y >> /sealed/b; echo group; }; echo last"
    found = await output_of(desk, "bash", script=script)
    assert found["stdout"].split() == ["first", "refused", "in", "group", "last"]
    assert found["stderr"].count("refused by the rule 'deny write: /sealed/**'") == 2
    assert (found["exitCode"], await state_of(files)) == (0, ["PASSWORD=1", "sealed"])
