"""Rules about calls in turns: what runs, asks or is refused, and what an answer for always settles."""

from functools import partial
from typing import Any, ClassVar

import pytest
from django.db import DatabaseError

from chat.agent.base import InstanceKey
from chat.conversations.permissions import RuleDraft, add_own_rule, plans, remove_own_rule, set_plan_mode
from chat.core.wire import frames
from chat.errors import InputInvalid
from chat.instances.rows import find_instance
from chat.instances.workspaces import InstanceWorkspace
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance
from chat.think import Permission, Think, Tool, action, client_tool, tool
from chat.turns.admission.tool_answers import reply_of
from chat.turns.guarding.turn_rules import rule_set
from tests.db.chat.turns.agents.answering import Desk, last_text, turns_of
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump
from tools_app.calls.services import Actor
from tools_app.core.permissions.rules import RuleAction, RuleLevel
from tools_app.errors import EditInvalid
from tools_app.models import ApprovalEvent, PermissionRule, ToolCallRecord
from tools_app.question_tool import ask_user

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)
DONE: list[tuple[str, int]] = []


@pytest.fixture(autouse=True)
def _nothing_shouted() -> None:
    DONE.clear()


@tool(needs_approval=True, patterns=lambda given, _context: [given["command"]])
def shout(command: str) -> str:
    """Shout something."""
    DONE.append((command, 0))
    return f"shouted {command}"


@tool
def whisper(command: str) -> str:
    """Whisper something."""
    DONE.append((command, 1))
    return f"whispered {command}"


@action(risk="high", approval=True)
def launch() -> str:
    """Launch it."""
    DONE.append(("launch", 2))
    return "launched"


class Crier(Think):
    """Shouts with consent, whispers without; its class refuses to shout secrets."""

    permissions: ClassVar[tuple[Permission, ...]] = (Permission.deny("shout", "secret*"),)

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [shout, whisper, launch, client_tool("where", "Ask the browser where it is.")]


@pytest.fixture
def crier(make_room: MakeRoom) -> Desk:
    """A desk of the agent that shouts."""
    return Desk(make_room("crier"))


class PlannerOfTrips(Think):
    """Asks with choices, and works on files."""

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [ask_user]


class Reviewed(Crier):
    """Has a model look at its calls first."""

    @property
    def review_model(self) -> ScriptedModel:
        return MODELS["reviewer"]


async def instance_of(room: Room) -> AgentInstance:
    found = await db(find_instance, room.key)
    assert found is not None
    return found


def owner_of(room: Room) -> int:
    assert room.key.owner_id is not None
    return room.key.owner_id


async def add(room: Room, act: RuleAction, key: str, pattern: str = "*", *, everywhere: bool = False) -> str:
    owner_id = owner_of(room)
    instance = None if everywhere else await instance_of(room)
    draft = RuleDraft(action=act, key=key, pattern=pattern)
    view = await db(partial(add_own_rule, owner_id, instance, draft, Actor(user_id=owner_id, via="api")))
    return view.rule.rule_id


def say(*commands: str, name: str = "shout") -> str:
    calls = [f'call tool {name} {{"command": "{command}"}}' for command in commands]
    return "\n".join([*calls, "say: {results}."])


async def test_once_always_and_the_like_at_once(crier: Desk) -> None:
    """Three calls wait; one is allowed for always: those that the rule covers go on, the other one still asks."""
    await crier.room.say(say("hello", "hello", "bye"))
    first, second, other = await crier.calls()
    assert (await crier.row(first)).question["offers"] == [{"key": "shout", "pattern": "hello", "here_only": False}]
    replied = await crier.reply(first, is_approved=True, always=RuleLevel.CONVERSATION)
    assert replied.settled == (second,)
    assert [(rule.action, rule.key, rule.pattern, rule.level) for rule in replied.rules] == [
        ("allow", "shout", "hello", "conversation")
    ]
    assert [(await crier.row(call)).status for call in (first, second, other)] == ["approved", "approved", "asked"]
    assert [kind for kind, _, _ in await crier.events(second)] == ["asked", "approved"]
    assert "allow shout: hello" in (await crier.events(second))[-1][2]
    await crier.reply(other, is_approved=False, reason="Too late for that")
    assert sorted(DONE) == [("hello", 0), ("hello", 0)]
    assert "Too late for that" in await last_text(crier.room)
    DONE.clear()
    await crier.room.say(say("hello"))
    assert DONE == [("hello", 0)]  # runs, and the rule is on its call
    used = (await crier.part((await crier.calls())[-1]))["toolMetadata"]["think"]["rule"]
    assert used == {
        "id": replied.rules[0].pk,
        "name": "allow shout: hello",
        "action": "allow",
        "level": "conversation",
    }
    await db(remove_own_rule, owner_of(crier.room), replied.rules[0].pk)
    await crier.room.say(say("hello"))
    assert (await crier.row((await crier.calls())[-1])).status == "asked"


async def test_always_everywhere_settles_other_conversations_of_the_owner(crier: Desk, make_room: MakeRoom) -> None:
    elsewhere = Desk(Room(type(crier.room.key)(owner_id=crier.room.key.owner_id, agent="crier", name="other")))
    await elsewhere.room.say(say("hello", "bye"))
    await crier.room.say(say("hello"))
    [mine] = await crier.calls()
    [same, other] = await elsewhere.calls()
    await crier.reply(mine, is_approved=True, always=RuleLevel.OWNER)
    assert [(await elsewhere.row(call)).status for call in (same, other)] == ["approved", "asked"]


async def test_below_another_conversation_always_means_here(crier: Desk) -> None:
    await crier.room.say("say: Hello.")
    below = Desk(Room(crier.room.handle.sub_agent("crier", "below").key))
    await below.room.say(say("hello"))
    [call] = await below.calls()
    assert (await below.row(call)).question["offers"] == [{"key": "shout", "pattern": "hello", "here_only": True}]
    with pytest.raises(InputInvalid):
        await below.reply(call, is_approved=True, always=RuleLevel.OWNER)
    await below.reply(call, is_approved=True, always=RuleLevel.CONVERSATION)
    assert DONE == [("hello", 0)]


async def test_a_refusal_of_all_that_is_open(crier: Desk) -> None:
    await crier.room.say(say("one", "two", "three"))
    first, *others = await crier.calls()
    replied = await crier.reply(first, is_approved=False, reason="Stop that", denies_all=True)
    assert sorted(replied.settled) == sorted(others)
    assert [(await crier.row(call)).status for call in (first, *others)] == ["denied"] * 3
    assert len(await turns_of(crier.room)) == 2  # one continuation
    assert (await last_text(crier.room)).count("Stop that") == 3
    assert DONE == []


async def test_a_denial_is_a_result_with_the_name_of_its_rule(crier: Desk) -> None:
    await crier.room.say(say("secret plan"))
    [call] = await crier.calls()
    part = await crier.part(call)
    assert (part["state"], DONE) == ("output-error", [])
    assert "'deny shout: secret*'" in part["errorText"]
    assert part["toolMetadata"]["think"]["rule"]["name"] == "deny shout: secret*"
    await add(crier.room, RuleAction.ALLOW, "shout")
    await crier.room.say(say("secret plan", "hello"))  # what the class denies no person allows
    assert DONE == [("hello", 0)]


async def test_each_use_of_a_rule_is_an_event_that_stays(crier: Desk) -> None:
    """Of what it allows and of what it refuses, by its name, and whatever becomes of the rule."""
    await crier.room.say(say("one"))
    [asked] = await crier.calls()
    await crier.reply(asked, is_approved=True)
    rule_id = await add(crier.room, RuleAction.ALLOW, "shout")
    await crier.room.say(say("hello", "secret plan"))
    _, allowed, refused = await crier.calls()
    await db(PermissionRule.objects.filter(pk=rule_id).delete)

    def uses() -> list[tuple[str, str, str, str, Any]]:
        rows = ApprovalEvent.objects.filter(via="rule").order_by("call__call_id")
        return list(rows.values_list("call__call_id", "kind", "via", "reason", "actor"))

    assert sorted(await db(uses)) == sorted(
        [
            (allowed, "allowed", "rule", "allow shout", None),
            (refused, "refused", "rule", "deny shout: secret*", None),
        ]
    )
    assert [kind for kind, _, _ in await crier.events(asked)] == ["asked", "approved"]
    with pytest.raises(DatabaseError):
        await db(lambda: ApprovalEvent.objects.filter(via="rule").update(reason="other"))


async def test_a_rule_holds_for_tools_that_never_ask_and_for_those_of_clients(crier: Desk) -> None:
    await crier.room.say(say("hello", name="whisper"))
    await add(crier.room, RuleAction.ASK, "whisper")
    await add(crier.room, RuleAction.DENY, "where")
    DONE.clear()
    await crier.room.say(say("hello", name="whisper"))
    call = (await crier.calls())[-1]
    assert ((await crier.row(call)).status, DONE) == ("asked", [])
    assert (await crier.row(call)).question["rule"] == "ask whisper"
    await crier.room.say("call tool where {}\nsay: {results}.")
    assert (await crier.part((await crier.calls())[-1]))["state"] == "output-error"


async def test_a_high_risk_is_never_allowed_by_people(crier: Desk) -> None:
    await crier.room.say("call tool launch {}\nsay: {results}.")
    await add(crier.room, RuleAction.ALLOW, "launch")
    await crier.room.say("call tool launch {}\nsay: {results}.")
    call = (await crier.calls())[-1]
    assert (await crier.row(call)).question["offers"] == []
    with pytest.raises(InputInvalid):
        await crier.reply(call, is_approved=True, always=RuleLevel.CONVERSATION)
    assert (await crier.row(call)).status == "asked"
    assert await db(PermissionRule.objects.filter(key="launch").count) == 1
    assert DONE == []


async def test_a_rule_is_of_its_conversation_and_of_its_owner(crier: Desk, make_room: MakeRoom) -> None:
    await crier.room.say(say("hello", name="whisper"))
    await add(crier.room, RuleAction.DENY, "whisper")
    other = Desk(Room(type(crier.room.key)(owner_id=crier.room.key.owner_id, agent="crier", name="other")))
    DONE.clear()
    await other.room.say(say("hello", name="whisper"))
    assert DONE == [("hello", 1)]
    await add(crier.room, RuleAction.DENY, "whisper", everywhere=True)
    await other.room.say(say("hello", name="whisper"))
    assert DONE == [("hello", 1)]
    assert await db(ToolCallRecord.objects.filter(tool_name="whisper", status="failed").count) == 1


ASKED_WITH_CHOICES: list[dict[str, Any]] = [
    {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}], "custom": False},
    {"question": "Why?"},
]
CHOICES = f"call tool ask_user {dump({'questions': ASKED_WITH_CHOICES})}\nsay: {{results}}."


async def test_a_question_with_choices_runs_with_the_answers(make_room: MakeRoom) -> None:
    desk = Desk(make_room("planner-of-trips"))
    await desk.room.say(CHOICES)
    [call] = await desk.calls()
    part: Any = await desk.part(call)
    assert [each["question"] for each in part["approval"]["descriptor"]["choices"]] == ["Which colour?", "Why?"]
    for wrong in (
        None,
        [["Red"]],
        [["Green"], ["x"]],
        [["Red", "Blue"], ["x"]],
        [["Red"], [" "]],
        [["Red"], ["x"], []],
    ):
        with pytest.raises(EditInvalid):
            await desk.reply(call, is_approved=True, answers=wrong)
    assert (await desk.row(call)).status == "asked"
    await desk.reply(call, is_approved=True, answers=[["Blue"], [" Because it is calm. "]])
    said = await last_text(desk.room)
    assert "Blue" in said
    assert "Because it is calm." in said
    await add(desk.room, RuleAction.ALLOW, "*")  # no rule answers in a person's place
    await desk.room.say(CHOICES)
    last = (await desk.calls())[-1]
    assert (await desk.row(last)).status == "asked"
    await desk.reply(last, is_approved=False, reason="Ask me tomorrow")
    assert "Ask me tomorrow" in await last_text(desk.room)


async def test_plan_mode_refuses_changes_reminds_the_model_and_ends_with_the_person(make_room: MakeRoom) -> None:
    desk = Desk(make_room("planner-of-trips"))
    room = desk.room
    await room.say("say: Hello.")
    actor = Actor(user_id=room.key.owner_id, via="api")
    instance = await instance_of(room)
    await db(partial(set_plan_mode, instance, is_on=True, actor=actor))
    await room.say('call tool write {"path": "/a.md", "content": "x"}\ncall tool list {"path": "/"}\nsay: {results}.')
    written, listed = await desk.calls()
    assert ((await desk.part(written))["state"], (await desk.part(listed))["state"]) == (
        "output-error",
        "output-available",
    )
    assert "plan mode" in dump(room.model.requests[-1])
    assert await db(plans, instance)
    await db(partial(set_plan_mode, instance, is_on=False, actor=actor))
    await room.say('call tool write {"path": "/a.md", "content": "x"}\nsay: {results}.')
    assert (await desk.part((await desk.calls())[-1]))["state"] == "output-available"
    assert "plan mode" not in dump(room.model.requests[-1])


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("say: CLEAR", None),
        ("say: CAUTION", "asked"),
        ("say: CLEAR to delete it all", "asked"),
        ("error 400", "asked"),
    ],
)
async def test_a_model_may_answer_before_a_person_is_asked(
    make_room: MakeRoom, script: str, status: str | None
) -> None:
    MODELS["reviewer"] = ScriptedModel(script)
    desk = Desk(make_room("reviewed"))
    await desk.room.say(say("hello"))
    [call] = await desk.calls()
    assert ([] if status else [("hello", 0)]) == DONE
    if status is None:
        part: Any = await desk.part(call)
        assert part["toolMetadata"]["think"]["rule"]["name"].startswith("review by ")
    else:
        assert (await desk.row(call)).status == status
    await add(desk.room, RuleAction.ASK, "shout")
    DONE.clear()
    await desk.room.say(say("hello"))  # a rule that asks means a person
    assert DONE == []
    await desk.room.say("call tool launch {}\nsay: {results}.")
    assert DONE == []


async def test_secrets_ask_and_links_do_not_hide_them(make_room: MakeRoom) -> None:
    desk = Desk(make_room("planner-of-trips"))
    await desk.room.say('call tool write {"path": "/notes.md", "content": "PASSWORD"}\nsay: {results}.')
    workspace = InstanceWorkspace(desk.room.key)
    await workspace.write_file("/.env", "PASSWORD=1")
    await workspace.symlink("/.env", "/innocent.md")
    for path in ("/.env", "/innocent.md", "/x/../.env", "/workspace/.env"):
        await desk.room.say(f'call tool read {{"path": "{path}"}}\nsay: {{results}}.')
        call = (await desk.calls())[-1]
        assert (await desk.row(call)).status == "asked", path
    await desk.room.say('call tool grep {"query": "PASSWORD"}\nsay: {results}.')
    found: Any = (await desk.part((await desk.calls())[-1]))["output"]
    assert "/notes.md" in str(found)
    assert "PASSWORD=1" not in str(found)
    assert found["secretFilesLeftOut"] == 1


def test_a_decision_by_frame_carries_all_of_it() -> None:
    frame = frames.ToolApproval(
        tool_call_id="c", approved=False, reason="Not now", deny_all=True, always="owner", answers=[["x"]]
    )
    parsed = frames.parse(frames.encode(frame))
    assert parsed == frame
    assert isinstance(parsed, frames.ToolApproval)
    reply = reply_of(parsed)
    assert (reply.reason, reply.denies_all, reply.always, reply.answers) == (
        "Not now",
        True,
        RuleLevel.OWNER,
        [["x"]],
    )


def test_a_conversation_below_another_gets_denials_and_no_allowance_of_people() -> None:
    parent = InstanceKey(owner_id=1, agent="crier", name="parent", instance_id="p")
    child = InstanceKey(owner_id=1, agent="planner-of-trips", name="child", instance_id="c", parent=parent)
    here, there = {"level": "conversation", "scope": "c"}, {"level": "conversation", "scope": "p"}
    rows = [
        PermissionRule(level="owner", owner_id=1, action="allow", key="bash"),
        PermissionRule(level="owner", owner_id=1, action="deny", key="fetch_url"),
        PermissionRule(**there, action="deny", key="edit"),
        PermissionRule(**there, action="allow", key="delete"),
        PermissionRule(**here, action="allow", key="whisper"),
        PermissionRule(level="class", agent="elsewhere", action="deny", key="read"),
    ]
    rules = rule_set(child, ["p"], rows, "c")
    assert [rule.name for rule in rules.own] == ["deny fetch_url", "allow whisper"]
    assert [[rule.name for rule in above] for above in rules.above] == [["deny shout: secret*", "deny edit"]]
    assert [rule.name for rule in rule_set(parent, [], rows, "p").own] == [
        "deny shout: secret*",
        "allow bash",
        "deny fetch_url",
        "deny edit",
        "allow delete",
    ]
