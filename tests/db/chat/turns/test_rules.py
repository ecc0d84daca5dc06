"""Rules about calls in turns: what runs, asks or is refused, and what an answer for always settles."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest

from chat.conversations.permissions import RuleDraft, add_own_rule, remove_own_rule
from chat.errors import InputInvalid
from chat.instances.rows import find_instance
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance
from chat.think import Permission, Think, Tool, action, client_tool, tool
from thinkproject.kernel.aio import db
from tools_app.calls.services import Actor
from tools_app.core.permissions.rules import RuleAction, RuleLevel
from tools_app.models import PermissionRule, ToolCallRecord

from .agents import CALLS, MODELS
from .answering import Desk, last_text, turns_of
from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)


@tool(needs_approval=True, patterns=lambda given, _context: [given["command"]])
def shout(command: str) -> str:
    """Shout something."""
    CALLS.append((command, 0))
    return f"shouted {command}"


@tool
def whisper(command: str) -> str:
    """Whisper something."""
    CALLS.append((command, 1))
    return f"whispered {command}"


@action(risk="high", approval=True)
def launch() -> str:
    """Launch it."""
    CALLS.append(("launch", 2))
    return "launched"


class Crier(Think):
    """Shouts with consent, whispers without; its class refuses to shout secrets."""

    permissions: ClassVar[tuple[Permission, ...]] = (Permission.deny("shout", "secret*"),)

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [shout, whisper, launch, client_tool("where", "Ask the browser where it is.")]


AddRule = Callable[..., Any]


@pytest.fixture
def crier(make_room: MakeRoom) -> Desk:
    """A desk of the agent that shouts."""
    return Desk(make_room("crier"))


async def instance_of(room: Room) -> AgentInstance:
    found = await db(find_instance, room.key)
    assert found is not None
    return found


async def add(room: Room, act: RuleAction, key: str, pattern: str = "*", *, everywhere: bool = False) -> str:
    owner_id = room.key.owner_id
    assert owner_id is not None
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
    asked = await crier.part(first)
    assert asked["approval"]["approvalDescriptor" if "approvalDescriptor" in asked["approval"] else "id"]
    replied = await crier.reply(first, is_approved=True, always=RuleLevel.CONVERSATION)
    assert replied.settled == (second,)
    assert [(rule.action, rule.key, rule.pattern, rule.level) for rule in replied.rules] == [
        ("allow", "shout", "hello", "conversation")
    ]
    assert [(await crier.row(call)).status for call in (first, second, other)] == ["approved", "approved", "asked"]
    assert [kind for kind, _, _ in await crier.events(second)] == ["asked", "approved"]
    assert "allow shout: hello" in (await crier.events(second))[-1][2]
    await crier.reply(other, is_approved=False, reason="Too late for that")
    assert sorted(CALLS) == [("hello", 0), ("hello", 0)]
    assert "Too late for that" in await last_text(crier.room)
    CALLS.clear()
    await crier.room.say(say("hello"))
    assert CALLS == [("hello", 0)]  # runs, and the rule is on its call
    used = (await crier.part((await crier.calls())[-1]))["toolMetadata"]["think"]["rule"]
    assert used == {
        "id": replied.rules[0].pk,
        "name": "allow shout: hello",
        "action": "allow",
        "level": "conversation",
    }
    await db(partial(remove_own_rule, crier.room.key.owner_id, replied.rules[0].pk))
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


async def test_a_refusal_of_all_that_is_open(crier: Desk) -> None:
    await crier.room.say(say("one", "two", "three"))
    first, *others = await crier.calls()
    replied = await crier.reply(first, is_approved=False, reason="Stop that", denies_all=True)
    assert sorted(replied.settled) == sorted(others)
    assert [(await crier.row(call)).status for call in (first, *others)] == ["denied"] * 3
    assert len(await turns_of(crier.room)) == 2  # one continuation
    assert (await last_text(crier.room)).count("Stop that") == 3
    assert CALLS == []


async def test_a_denial_is_a_result_with_the_name_of_its_rule(crier: Desk) -> None:
    await crier.room.say(say("secret plan"))
    [call] = await crier.calls()
    part = await crier.part(call)
    assert (part["state"], CALLS) == ("output-error", [])
    assert "'deny shout: secret*'" in part["errorText"]
    assert part["toolMetadata"]["think"]["rule"]["name"] == "deny shout: secret*"
    await add(crier.room, RuleAction.ALLOW, "shout")
    await crier.room.say(say("secret plan", "hello"))  # what the class denies no person allows
    assert CALLS == [("hello", 0)]


async def test_a_rule_holds_for_tools_that_never_ask_and_for_those_of_clients(crier: Desk) -> None:
    await crier.room.say(say("hello", name="whisper"))
    await add(crier.room, RuleAction.ASK, "whisper")
    await add(crier.room, RuleAction.DENY, "where")
    CALLS.clear()
    await crier.room.say(say("hello", name="whisper"))
    call = (await crier.calls())[-1]
    assert ((await crier.row(call)).status, CALLS) == ("asked", [])
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
    assert CALLS == []


async def test_a_rule_is_of_its_conversation_and_of_its_owner(crier: Desk, make_room: MakeRoom) -> None:
    await crier.room.say(say("hello", name="whisper"))
    await add(crier.room, RuleAction.DENY, "whisper")
    other = Desk(Room(type(crier.room.key)(owner_id=crier.room.key.owner_id, agent="crier", name="other")))
    CALLS.clear()
    await other.room.say(say("hello", name="whisper"))
    assert CALLS == [("hello", 1)]
    await add(crier.room, RuleAction.DENY, "whisper", everywhere=True)
    await other.room.say(say("hello", name="whisper"))
    assert CALLS == [("hello", 1)]
    assert await db(ToolCallRecord.objects.filter(tool_name="whisper", status="failed").count) == 1
