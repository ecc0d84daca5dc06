"""What is denied to an agent is denied to those that work for it: tools, actions, the guard against injections."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import pytest

from chat.conversations.guarding import guard_state
from chat.instances.waiting import wait_until
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.think import (
    USE_LOOP,
    ActionContext,
    AuthorizationContext,
    ChatOptions,
    Origin,
    Relaxed,
    Think,
    Tool,
    TurnConfig,
    TurnContext,
    action,
    tool,
)
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from fibers.testing import run_until_idle, worker
from tests.db.chat.turns.agents.delegating import call, instance_of, mail, only_run, runs, turns_of
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, status_of, text_of

pytestmark = pytest.mark.django_db(transaction=True)
DONE: list[str] = []
CODE: list[str] = []
"""Descriptions of the tool that runs code, as hands had it, in order."""

ASKED: list[AuthorizationContext | ActionContext] = []


@tool
async def wipe() -> str:
    """Wipe everything."""
    DONE.append("wiped")
    return "wiped"


@tool
async def wipe_one() -> str:
    """Wipe one thing."""
    DONE.append("wiped one")
    return "wiped one"


@tool
async def added() -> str:
    """Come with a turn."""
    return "added"


@action(permissions=("shop.refund",))
def refund() -> str:
    """Give money back."""
    DONE.append("refunded")
    return "refunded"


class Hand(Think):
    """Works for others. Its task is a script."""

    workspace_tools = True
    code_tool = True
    injection_guard = Relaxed(reason="It is told to trust the web.", trusts=[Origin.WEB])

    def get_model(self) -> ScriptedModel:
        return MODELS.setdefault("hand", ScriptedModel())

    def get_tools(self) -> list[Tool]:
        return [wipe, wipe_one, refund, mail]

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(tools=[added])

    def on_chat_message(self, options: ChatOptions) -> Any:
        if "execute" in options.tools:
            CODE.append(options.tools["execute"].description)
        return USE_LOOP

    def authorize_turn(self, context: AuthorizationContext) -> bool:
        return True


class Foreman(Hand):
    """Has a hand, and is one."""

    def get_tools(self) -> list[Tool]:
        return [*super().get_tools(), self.agent_tool(Hand)]


class Boss(Think):
    """Has hands. What it denies is set by the test."""

    workspace_tools = False
    turn_tools: ClassVar[Sequence[str] | None] = None
    granted: ClassVar[Any] = None
    verdict: ClassVar[Any] = None

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        @tool
        async def talk(text: str) -> str:
            """Talk to a hand of a name of its own."""
            return str((await self.sub_agent(Hand, "mine").chat(text)).status.value)

        later = self.agent_tool(Hand, name="later", detached=True)
        return [self.agent_tool(Hand), self.agent_tool(Foreman), later, talk]

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(active_tools=self.turn_tools)

    def authorize_turn(self, context: AuthorizationContext) -> Any:
        ASKED.append(context)
        return self.granted

    def authorize_action(self, context: ActionContext) -> Any:
        ASKED.append(context)
        return self.verdict


class Trusting(Boss):
    """Relaxes the guard as its hands do."""

    injection_guard = Relaxed(reason="It is told to trust the web, too.", trusts=[Origin.WEB])


@pytest.fixture(autouse=True)
def _no_hand() -> Iterator[None]:
    MODELS.pop("hand", None)
    DONE.clear()
    ASKED.clear()
    yield
    MODELS.pop("hand", None)


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_on(cls: type[Think], **values: Any) -> None:
        for name, value in values.items():
            monkeypatch.setattr(cls, name, value)

    return set_on


def offered(request: int = -1) -> set[str]:
    """The tools that the model of hands was offered: last, or in another one of its requests."""
    return {item["name"] for item in MODELS["hand"].requests[request].get("tools", [])}


WIPES = "call tool wipe {} id=w\nsay: {result}"


@pytest.mark.parametrize(
    ("patterns", "gone"),
    [
        (None, set()),
        (("hand", "foreman"), set()),  # what is not chosen is no denial: the parent need not have what its hands do
        (("*", "!wipe"), {"wipe"}),
        (("!wipe*",), {"wipe", "wipe_one"}),
        (("!wipe*", "wipe_one"), {"wipe"}),  # the last that matches decides, as for the class itself
        (("!added",), {"added"}),  # what a turn of the hand adds, too
        (("*", "!bash", "!write"), {"bash", "write"}),
    ],
)
async def test_what_a_class_denies_by_name_none_below_it_has(
    make_room: MakeRoom, says: Any, patterns: Any, gone: set[str]
) -> None:
    says(Boss, enabled_tools=patterns)
    room = make_room("boss")
    await room.say(f"{call('hand', 'say: hi')}\nsay: done")
    every = {"wipe", "wipe_one", "refund", "mail", "added", "bash", "write", "execute", "read"}
    assert every - offered() == gone


async def test_a_denied_tool_of_a_child_does_not_run(make_room: MakeRoom, says: Any) -> None:
    says(Boss, enabled_tools=("!wipe",))
    room = make_room("boss")
    await room.say(f"{call('hand', WIPES)}\nsay: {{result}}")
    assert DONE == []
    assert "no tool 'wipe'" in text_of((await room.transcript())[-1])


async def test_code_of_a_child_has_no_denied_tool_and_no_denied_files(make_room: MakeRoom, says: Any) -> None:
    says(Boss, enabled_tools=("!wipe", "!state"))
    room = make_room("boss")
    await room.say(f"{call('hand', 'say: hi')}\nsay: done")
    assert "wipe_one(" in CODE[-1]
    assert "wipe(" not in CODE[-1]
    assert "Functions of `state`" not in CODE[-1]
    says(Boss, enabled_tools=None)
    await room.say(f"{call('hand', 'say: hi', 'two')}\nsay: done")
    assert "wipe(" in CODE[-1]
    assert "Functions of `state`" in CODE[-1]


async def test_a_child_may_be_stricter_and_both_rules_hold_further_down(make_room: MakeRoom, says: Any) -> None:
    says(Boss, enabled_tools=("!wipe",))
    says(Foreman, enabled_tools=("!wipe_one",))
    says(Hand, enabled_tools=("!mail",))
    room = make_room("boss")
    await room.say(f"{call('foreman', call('hand', 'say: hi') + chr(10) + 'say: ok')}\nsay: done")
    assert len(await turns_of(room, "hand")) == 1
    assert {"wipe", "wipe_one", "mail", "added", "read"} - offered(1) == {"wipe", "wipe_one", "mail"}


async def test_a_class_that_is_gone_leaves_those_below_no_tools(make_room: MakeRoom, monkeypatch: Any) -> None:
    room = make_room("boss")
    await room.say(f"{call('hand', 'say: hi')}\nsay: done")
    run = await only_run()
    child = room.handle.sub_agent(Hand, run.run_id)
    assert "wipe" in offered()
    monkeypatch.setattr("chat.turns.guarding.handed_down.is_served", lambda name: name != "boss")
    await db(_speak, child.key, "say: again")
    await run_until_idle(skip_delays=True)
    assert offered() == set()


def _speak(key: Any, text: str) -> Turn:
    words: Any = {"role": "user", "parts": [{"type": "text", "text": text}]}
    return admit(key, TurnRequest(intake=Program(messages=[words]))).turn


# --- what one turn denies ---------------------------------------------------------------------------------------------


async def test_what_a_turn_denies_its_runs_and_theirs_do_not_have(make_room: MakeRoom, says: Any) -> None:
    says(Boss, turn_tools=("*", "!wipe"))
    room = make_room("boss")
    await room.say(f"{call('foreman', call('hand', WIPES) + chr(10) + 'say: {result}')}\nsay: done")
    assert "wipe" not in offered(0) | offered(1) | offered(2)
    assert DONE == []
    [turn] = await turns_of(room, "hand")
    assert turn.options["denied"] == [["*", "!wipe"]]


async def test_the_next_turn_denies_anew(make_room: MakeRoom, says: Any) -> None:
    room = make_room("boss")
    says(Boss, turn_tools=("*", "!wipe"))
    await room.say(f"{call('hand', WIPES)}\nsay: done")
    assert DONE == []
    says(Boss, turn_tools=None)
    await room.say(f"{call('hand', WIPES, 'two')}\nsay: done")
    assert DONE == ["wiped"]


def has_ended(turn_id: str) -> bool:
    return Turn.objects.filter(pk=turn_id, finished_at__isnull=False).exists()


async def test_a_child_that_is_spoken_to_by_code_of_the_turn_does_not_have_it(make_room: MakeRoom, says: Any) -> None:
    says(Boss, turn_tools=("*", "!wipe"))
    room = make_room("boss")
    async with worker():
        admission = await room.admit('call tool talk {"text": "say: hi"} id=t\nsay: done')
        assert await wait_until(partial(db, has_ended, admission.turn.pk), group="none", timeout_seconds=20)
    assert "wipe" not in offered()


async def test_a_child_that_goes_on_after_an_approval_does_not_have_it(make_room: MakeRoom, says: Any) -> None:
    says(Boss, turn_tools=("*", "!wipe_one"), granted=True)

    def asking(self: Any) -> list[Tool]:
        return [tool(needs_approval=True)(_pay), wipe_one]

    says(Hand, get_tools=asking)
    room = make_room("boss")
    task = "call tool _pay {} id=p\nsay: paid\ncall tool wipe_one {} id=w\nsay: {result}"
    await room.say(f"{call('hand', task)}\nsay: done")
    asked = await db(lambda: ToolCallRecord.objects.get(tool_name="_pay"))
    child = room.handle.sub_agent(Hand, (await only_run()).run_id)
    [question] = await child.pending_approvals()
    assert question.call_id == asked.call_id
    await child.approve_execution(question.id)
    await run_until_idle(skip_delays=True)
    first, second = await turns_of(room, "hand")
    assert second.parent_id == first.pk
    assert second.options["denied"] == first.options["denied"] == [["*", "!wipe_one"]]
    assert DONE == ["paid"]


async def _pay() -> str:
    """Pay."""
    DONE.append("paid")
    return "paid"


# --- actions ----------------------------------------------------------------------------------------------------------

REFUNDS = "call tool refund {} id=r\nsay: {result}"


@pytest.mark.parametrize(
    ("rules", "done"),
    [
        ({"granted": True}, ["refunded"]),
        ({"granted": ("shop.refund",)}, ["refunded"]),
        ({"granted": ()}, []),  # the hand would grant it
        ({"granted": False}, []),
        ({"granted": True, "verdict": False}, []),
        ({"granted": True, "verdict": "Not on a Sunday."}, []),
        ({"granted": False, "verdict": True}, []),
        ({"granted": (), "verdict": True}, ["refunded"]),
    ],
)
async def test_an_action_that_is_denied_to_the_parent_is_denied_to_its_child(
    make_room: MakeRoom, says: Any, rules: dict[str, Any], done: list[str]
) -> None:
    says(Boss, **rules)
    room = make_room("boss")
    turn = await room.say(f"{call('hand', REFUNDS)}\nsay: {{result}}", body={"till": 3})
    assert (status_of(turn), DONE) == ("completed", done)
    asked = [context for context in ASKED if isinstance(context, AuthorizationContext)]
    assert {(context.turn_id, context.sub_agent, context.body["till"]) for context in asked} == {(turn.pk, "hand", 3)}


async def test_a_parent_grants_nothing_that_its_child_denies(make_room: MakeRoom, says: Any) -> None:
    says(Boss, granted=True, verdict=True)
    says(Hand, authorize_turn=lambda _self, _context: False)
    room = make_room("boss")
    await room.say(f"{call('hand', REFUNDS)}\nsay: done")
    assert (DONE, ASKED) == ([], [])


async def test_every_agent_above_is_asked(make_room: MakeRoom, says: Any) -> None:
    says(Boss, granted=False)
    room = make_room("boss")
    await room.say(f"{call('foreman', call('hand', REFUNDS) + chr(10) + 'say: {result}')}\nsay: done")
    assert DONE == []
    says(Boss, granted=True)
    await room.say(f"{call('foreman', call('hand', REFUNDS) + chr(10) + 'say: {result}', 'two')}\nsay: done")
    assert DONE == ["refunded"]


async def test_a_hook_above_that_fails_denies(make_room: MakeRoom, says: Any) -> None:
    def fails(_self: Any, _context: Any) -> Any:
        raise RuntimeError("the directory is away")

    says(Boss, authorize_turn=fails)
    room = make_room("boss")
    await room.say(f"{call('hand', REFUNDS)}\nsay: done")
    assert DONE == []


# --- the guard --------------------------------------------------------------------------------------------------------

READS = "call tool mail {} id=m\nsay: read\ncall tool wipe {} id=w\nsay: {result}"


async def test_the_guard_of_a_child_is_no_weaker_than_that_above(make_room: MakeRoom) -> None:
    room = make_room("boss")
    await room.say(f"{call('hand', READS)}\nsay: done")
    run = await only_run()
    child = room.handle.sub_agent(Hand, run.run_id)
    assert (DONE, run.finished_at) == ([], None)
    assert [question.tool for question in await child.pending_approvals()] == ["wipe"]
    state = await db(guard_state, await instance_of(child.key))
    assert (state.is_guarded, state.rules.reason) == (True, "")


async def test_the_guard_of_a_child_is_its_own_where_those_above_are_as_weak(make_room: MakeRoom) -> None:
    room = make_room("trusting")
    await room.say(f"{call('hand', READS)}\nsay: done")
    assert DONE == ["wiped"]


# --- what it costs ----------------------------------------------------------------------------------------------------


def about_turns(sent: list[str]) -> list[str]:
    """The statements about runs and turns; others, such as those of leases, come with time."""
    return [sql.partition(" WHERE ")[0] for sql in sent if "think_chat_agentrun" in sql or "think_chat_turn" in sql]


async def test_rules_of_classes_and_of_turns_cost_a_childs_turn_no_statement(make_room: MakeRoom, says: Any) -> None:
    room: Room = make_room("boss")
    await room.say(f"{call('hand', 'say: warm')}\nsay: done")
    with statements() as plain:
        await room.say(f"{call('hand', 'say: hi', 'two')}\nsay: done")
    says(Boss, enabled_tools=("!wipe",), turn_tools=("*", "!wipe_one"))
    with statements() as ruled:
        await room.say(f"{call('hand', 'say: hi', 'three')}\nsay: done")
    assert len(await runs()) == 3
    assert about_turns(ruled) == about_turns(plain)
