"""Questions as published clients know them: the descriptor of an action, and the methods by which they decide."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.callables import callables_of, client_callable
from chat.models import Turn
from chat.think import Think
from fibers.testing import run_until_idle
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.chat.turns.agents.action_agents import EFFECTS, fresh_rules
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.coding import Code, code, sandbox_closes
from tests.db.chat.turns.agents.delegating import Errand, call, nothing_delegated, only_run
from thinkproject.kernel.aio import db
from tools_app.models import ApprovalEvent

from .conftest import MakeRoom, Room, status_of, text_of
from .refunds import REFUND, grant, part

__all__ = ["code", "fresh_rules", "nothing_delegated", "sandbox_closes"]  # fixtures

pytestmark = pytest.mark.django_db(transaction=True)
SEND = "const text = await tools.look({}); const sent = await tools.send({to: 'Ann', text}); sent + '!'"


class Client:
    """A published client of one conversation: it calls methods, and reads no more than their answers."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def call(self, method: str, *arguments: Any) -> Any:
        await self._socket.send_to(json.dumps({"type": "rpc", "id": "c", "method": method, "args": arguments}))
        answer = (await frames_until(self._socket, "rpc"))[-1]
        assert answer["success"], answer
        return answer["result"]


@pytest.fixture
async def open_client() -> AsyncIterator[Any]:
    async with opening_sockets() as open_socket:

        async def go(room: Room) -> Client:
            user = await User.objects.aget(username="alice")
            return Client(await open_socket(user, f"{room.key.agent}/{room.key.name}"))

        yield go


@pytest.fixture
async def asking(make_room: MakeRoom) -> Desk:
    """A conversation that has asked about a refund."""
    desk = Desk(make_room("clerk"))
    await grant(desk)
    await desk.room.say(REFUND)
    return desk


async def turns() -> list[Turn]:
    return await db(lambda: list(Turn.objects.order_by("position")))


def words_of(request_id: str) -> dict[str, Any]:
    return {
        "requestId": request_id,
        "toolCallId": "one",
        "action": "refund",
        "summary": "Refund 5 for A-1?",
        "input": {"order": "A-1", "amount": 5},
        "permissions": ["auth.change_user"],
        "kind": "durable-pause",
        "risk": "high",
    }


async def test_an_actions_question_says_all_that_published_clients_read(asking: Desk) -> None:
    [turn] = await turns()
    descriptor = (await part(asking))["approval"]["descriptor"]
    own = {"title": "Refund", "sentence": "Refund 5 for A-1?", "mayEdit": ["amount"], "lasting": True}
    assert descriptor == own | words_of(turn.request_id)


async def test_an_ordinary_tools_question_has_its_own_words_alone(make_room: MakeRoom) -> None:
    desk = Desk(make_room("banker"))
    await desk.room.say('call tool pay {"amount": 5} id=one')
    assert (await part(desk))["approval"]["descriptor"] == {
        "title": "Payment", "sentence": "Pay 5 EUR?", "mayEdit": True,
    }  # fmt: skip


async def test_a_client_lists_and_approves(asking: Desk, open_client: Any) -> None:
    client = await open_client(asking.room)
    [asked] = await client.call("pendingApprovals")
    [turn] = await turns()
    assert (asked["source"], asked["descriptor"]) == ("action", words_of(turn.request_id))
    execution_id = asked["executionId"]
    assert await client.call("pendingApprovals", execution_id) == [asked]
    assert await client.call("pendingApprovals", "other") == []
    assert await client.call("pendingExecutions") == []
    assert await client.call("approveExecution", execution_id) == {"status": "approved", "executionId": execution_id}
    again = await client.call("approveExecution", execution_id)
    assert (again["status"], again["executionId"]) == ("error", execution_id)
    await run_until_idle(skip_delays=True)
    assert len(EFFECTS) == 1
    assert await client.call("pendingApprovals") == []
    decided = await ApprovalEvent.objects.aget(kind="approved")
    assert (decided.actor_id, decided.via) == (asking.room.key.owner_id, "socket")


@pytest.mark.parametrize("options", [[], [{"autoContinue": True}], [{"autoContinue": False}], [None]])
async def test_a_client_rejects_and_says_whether_to_go_on(asking: Desk, open_client: Any, options: list[Any]) -> None:
    client = await open_client(asking.room)
    [asked] = await client.call("pendingApprovals")
    outcome = await client.call("rejectExecution", asked["executionId"], "Not this one", *options)
    assert outcome == {"status": "rejected", "executionId": asked["executionId"], "reason": "Not this one"}
    await run_until_idle(skip_delays=True)
    assert EFFECTS == []
    goes_on = options != [{"autoContinue": False}]
    assert len(await turns()) == 1 + goes_on
    assert (await part(asking))["state"] == "output-denied"


async def test_a_client_decides_about_a_call_of_code(code: Code, open_client: Any) -> None:
    turn = await code.run(SEND)
    assert turn.fiber.status == "parked"
    client = await open_client(code.room)
    [pending] = await client.call("pendingExecutions")
    assert (pending["seq"], pending["method"], pending["args"]) == (2, "send", {"to": "Ann", "text": "found"})
    [asked] = await client.call("pendingApprovals", pending["executionId"])
    assert asked["source"] == "codemode"
    assert (await client.call("approveExecution", pending["executionId"]))["status"] == "approved"
    await run_until_idle(skip_delays=True)
    assert status_of(await code.room.turn(turn.pk)) == "completed"


async def test_a_client_of_another_conversation_decides_nothing(asking: Desk, open_client: Any, make_room: Any) -> None:
    other = make_room("clerk", "another")
    await other.say("say: hello")
    client = await open_client(other)
    [asked] = await asking.room.handle.pending_approvals()
    assert await client.call("pendingApprovals") == []
    assert (await client.call("approveExecution", asked.id))["status"] == "error"
    assert await other.handle.approve_execution(asked.id) is False
    assert [each.id for each in await asking.room.handle.pending_approvals()] == [asked.id]


async def test_a_parent_lists_and_decides_what_its_child_asks(make_room: MakeRoom, open_client: Any) -> None:
    room = make_room("chief")
    task = "call tool pay {} id=pay\nsay: It is {result}."
    turn = await room.say(f"{call('errand', task)}\nsay: {{result}}")
    child = room.handle.sub_agent(Errand, (await only_run()).run_id)
    [asked] = await room.handle.pending_approvals()
    assert [each.id for each in await child.pending_approvals()] == [asked.id]
    assert (asked.tool, asked.agent) == ("pay", "errand")
    [shown] = await (await open_client(room)).call("pendingApprovals")
    assert shown["executionId"] == asked.id
    sibling = room.handle.sub_agent(Errand, "another")
    assert await sibling.approve_execution(asked.id) is False
    assert await room.handle.approve_execution(asked.id)
    assert await room.handle.approve_execution(asked.id) is False
    await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(turn.pk)) == "completed"
    assert "paid" in text_of((await room.transcript())[-1])
    assert await room.handle.pending_approvals() == []


class Own(Think, abstract=True):
    @client_callable(name="pendingApprovals")
    async def a_list_of_my_own(self) -> list[str]:
        return ["mine"]


def test_a_developers_method_of_that_name_takes_the_place_of_ours() -> None:
    assert callables_of(Own)["pendingApprovals"].attribute == "a_list_of_my_own"
    assert callables_of(Think)["pendingApprovals"].attribute == "send_pending_approvals"
