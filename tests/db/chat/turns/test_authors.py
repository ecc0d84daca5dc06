"""Turns of members: whose they are, with whose rights their calls run, and who answers questions about them."""

import json
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.errors import AnswerDenied, QuotaExceeded, RoleNeeded, TurnConflict
from chat.instances.rows import ensure_instance
from chat.members.services import add_member, change_role, remove_member
from chat.models import AgentInstance, Delivery, Membership, Role, Turn
from chat.think import Think, Tool, ToolContext, tool
from chat.turns.admission.continuation import Replied, reply_to_call
from chat.turns.admission.intake import ClientArray, Program
from chat.turns.admission.tool_answers import Reply
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.answering import Desk, last_text
from tests.db.chat.turns.agents.everyday import CALLS, MODELS
from thinkproject.kernel.aio import db
from tools_app.calls.services import Actor
from tools_app.core.permissions.rules import RuleLevel
from tools_app.models import PermissionRule

from .conftest import MakeRoom, Room, status_of

ASK = "say: Now.\ncall tool whose {}\nsay: It ran for {result}."


@tool(needs_approval=True)
def whose(context: ToolContext) -> str:
    """Say for whom this runs."""
    CALLS.append((context.user_id or 0, 0))
    return f"user {context.user_id}"


class Shared(Think):
    """Has a tool that says with whose rights it runs."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [whose]

    async def delegate(self) -> None:
        """Not used by models."""


class FourEyes(Shared):
    """Has another person approve than who asks."""

    approved_by = "another"


class OwnEyes(Shared):
    """Has the person approve who asks."""

    approved_by = "requester"


class Circle:
    """Alice's conversation with Bob, who writes, and Carol, who approves."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.instance: AgentInstance = ensure_instance(room.key)
        self.alice = User.objects.get(username="alice")
        self.bob, self.carol = (User.objects.create_user(name) for name in ("bob", "carol"))
        self.desk = Desk(room)
        for user, role in ((self.bob, Role.WRITER), (self.carol, Role.APPROVER)):
            add_member(self.instance, user.username, role, by=self.alice.pk)

    async def says(self, user: User, intake: Any) -> Turn:
        return await self.room.say(intake, actor_id=user.pk, via="socket")

    async def answers(self, user: User, call_id: str, **values: Any) -> Replied:
        reply = Reply(call_id=call_id, **values)
        found = await db(reply_to_call, self.room.key, reply, Actor(user_id=user.pk, via="api"))
        await run_until_idle(skip_delays=True)
        return found

    async def asked(self) -> list[str]:
        """What the model was sent last, each text."""
        body = self.room.model.requests[-1]
        texts = json.dumps(body, ensure_ascii=False).split('"')
        return [text.split("\\n")[0] for text in texts if "hello" in text and "You said" not in text]


@pytest.fixture
async def circle(make_room: MakeRoom) -> Circle:
    return await sync_to_async(lambda: Circle(make_room("shared")))()


async def test_the_author_comes_from_the_login(circle: Circle) -> None:
    forged = {"thinkAuthor": str(circle.carol.pk), "mood": "good"}
    words: Any = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hello"}], "metadata": forged}
    hers = await circle.says(circle.alice, "hello")
    his = await circle.says(circle.bob, ClientArray(messages=[*(await circle.room.transcript()), words]))
    assert (hers.author, his.author) == ("", str(circle.bob.pk))
    assert (hers.fiber.owner_id, his.fiber.owner_id) == (circle.alice.pk, circle.bob.pk)
    questions = [m.get("metadata") or {} for m in await circle.room.transcript() if m["role"] == "user"]
    assert [found.get("thinkAuthor") for found in questions] == [None, str(circle.bob.pk)]
    assert questions[1]["mood"] == "good"


async def test_a_call_runs_with_the_rights_of_who_asked(circle: Circle) -> None:
    await circle.says(circle.bob, ASK)
    [call] = await circle.desk.calls()
    with pytest.raises(RoleNeeded):
        await circle.answers(circle.bob, call, is_approved=True)
    assert (await circle.answers(circle.alice, call, is_approved=True)).is_new
    assert [(circle.bob.pk, 0)] == CALLS
    await circle.says(circle.alice, ASK)
    assert (await circle.answers(circle.carol, (await circle.desk.calls())[-1], is_approved=True)).is_new
    assert [(circle.bob.pk, 0), (circle.alice.pk, 0)] == CALLS
    assert f"user {circle.alice.pk}" in await last_text(circle.room)


async def test_a_request_that_goes_on_has_the_rights_of_who_asked(circle: Circle) -> None:
    """As published clients do: the approver's own request runs what was approved."""
    await circle.says(circle.bob, ASK)
    [call] = await circle.desk.calls()
    await circle.answers(circle.alice, call, is_approved=True, continues=False)
    turn = await circle.says(circle.alice, ClientArray(messages=await circle.room.transcript()))
    assert [(circle.bob.pk, 0)] == CALLS
    assert turn.author == str(circle.bob.pk)


async def test_a_writer_approves_nothing_by_a_clients_array(circle: Circle) -> None:
    await circle.says(circle.alice, ASK)
    messages = await circle.room.transcript()
    part = next(part for part in messages[-1]["parts"] if "toolCallId" in part)
    part["state"], part["approval"] = "approval-responded", {**part["approval"], "approved": True}
    await circle.says(circle.bob, ClientArray(messages=messages))
    assert CALLS == []


@pytest.mark.parametrize(
    ("agent", "refused", "taken"), [("four-eyes", "alice", "carol"), ("own-eyes", "carol", "alice")]
)
async def test_a_class_says_who_may_answer(make_room: MakeRoom, agent: str, refused: str, taken: str) -> None:
    circle = await sync_to_async(lambda: Circle(make_room(agent)))()
    await circle.says(circle.alice, ASK)
    [call] = await circle.desk.calls()
    with pytest.raises(AnswerDenied):
        await circle.answers(getattr(circle, refused), call, is_approved=True)
    assert CALLS == []
    assert (await circle.answers(getattr(circle, taken), call, is_approved=True)).is_new
    assert [(circle.alice.pk, 0)] == CALLS


async def test_an_approver_allows_nothing_for_always(circle: Circle) -> None:
    await circle.says(circle.alice, ASK)
    [call] = await circle.desk.calls()
    for level in (RuleLevel.CONVERSATION, RuleLevel.OWNER):
        with pytest.raises(RoleNeeded):
            await circle.answers(circle.carol, call, is_approved=True, always=level)
    assert not await db(PermissionRule.objects.exists)


async def test_the_owners_allowances_are_not_a_members(circle: Circle) -> None:
    rule = PermissionRule(level="owner", owner=circle.alice, action="allow", key="whose", pattern="*")
    await db(rule.save)
    await circle.says(circle.alice, ASK)
    assert [(circle.alice.pk, 0)] == CALLS
    await circle.says(circle.bob, ASK)
    assert len(CALLS) == 1  # it asks


async def test_the_model_reads_names_where_several_write(circle: Circle) -> None:
    await circle.says(circle.alice, "hello first")
    assert await circle.asked() == ["hello first"]
    await circle.says(circle.bob, "hello second")
    assert await circle.asked() == ["[alice] hello first", "[bob] hello second"]
    assert [text for role, text in await circle.room.texts() if role == "user"] == ["hello first", "hello second"]
    await db(circle.bob.delete)
    await circle.says(circle.alice, "hello third")
    assert await circle.asked() == ["[alice] hello first", "[someone] hello second", "[alice] hello third"]


async def test_quotas_count_for_the_author(circle: Circle, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 1
    await circle.says(circle.alice, "one")
    assert status_of(await circle.says(circle.bob, "one")) == "completed"
    for user in (circle.alice, circle.bob):
        with pytest.raises(QuotaExceeded):
            await circle.says(user, "two")


async def test_a_turn_takes_in_nothing_that_another_person_says(circle: Circle) -> None:
    """A steering message of another's waits for a turn of its own, which has that person's rights."""
    first = await circle.room.admit("hello", actor_id=circle.alice.pk, via="socket")
    admitted = await circle.room.admit("steer", actor_id=circle.bob.pk, via="socket", delivery=Delivery.STEER)
    assert (first.turn.delivery, admitted.turn.delivery) == ("queue", "queue")


async def test_what_a_turn_starts_is_asked_by_its_author(circle: Circle) -> None:
    from fibers import context as contexts

    key = replace(circle.room.key, instance_id=circle.instance.pk).below("shared", "child")
    found: list[str] = []

    async def before_turn(_agent: Shared, _context: Any) -> None:
        if not found:
            assert contexts.current_fiber() is not None
            room = Room(key)
            admission = await room.admit(Program(messages=[{"role": "user", "parts": [{"type": "text", "text": "x"}]}]))
            found.append(admission.turn.author)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Shared, "before_turn", before_turn)
        await circle.says(circle.bob, "hello")
    assert found == [str(circle.bob.pk)]


@pytest.mark.parametrize("way", ["removed", "reader", "deleted"])
async def test_nothing_runs_for_who_may_not_ask_any_more(circle: Circle, way: str) -> None:
    await circle.says(circle.bob, ASK)
    [call] = await circle.desk.calls()
    queued = await circle.room.admit("hello", actor_id=circle.bob.pk, via="socket")
    member = await db(Membership.objects.get, user=circle.bob)
    match way:
        case "removed":
            await db(remove_member, circle.instance, member.pk)
        case "reader":
            await db(change_role, circle.instance, member.pk, Role.READER)
        case _:
            await db(circle.bob.delete)
    replied = await circle.answers(circle.alice, call, is_approved=True, continues=True)
    assert CALLS == []
    assert replied.turn is None
    assert status_of(await circle.room.turn(queued.turn.pk)) in {"aborted", "skipped"}
    with pytest.raises(TurnConflict):
        await circle.says(circle.alice, ClientArray(messages=(await circle.room.transcript())[:2]))
    assert CALLS == []


async def test_a_person_who_is_gone_stays_an_author(circle: Circle) -> None:
    turn = await circle.says(circle.bob, "hello")
    await db(circle.bob.delete)
    assert not await db(Membership.objects.filter(role="writer").exists)
    assert (await circle.room.turn(turn.pk)).author == turn.author
    assert (await circle.room.texts())[0] == ("user", "hello")
