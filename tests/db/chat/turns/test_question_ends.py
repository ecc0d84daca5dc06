"""What ends a question in time, and what becomes of that once the question is decided."""

import pytest

from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from fibers.models import Fiber
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.answering import Desk, desk
from thinkproject.kernel.aio import db

__all__ = ["desk"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)
PAY = 'call tool pay {"amount": 5}\nsay: It says {result}.'


@pytest.mark.parametrize("how", ["approve", "deny", "say more", "clear", "delete"])
async def test_nothing_waits_for_the_end_of_a_question_that_is_decided(desk: Desk, how: str) -> None:
    await desk.room.admit(PAY)
    await run_until_idle()
    [call] = await desk.calls()
    waiting = Fiber.objects.filter(name="chat.expire_question", finished_at=None)
    assert await db(waiting.count) == 1
    match how:
        case "approve" | "deny":
            await desk.reply(call, is_approved=how == "approve")
        case "say more":
            await desk.room.admit("say: Something else.")
        case "clear":
            await desk.room.handle.clear()
        case "delete":
            await db(lambda: delete_instance(AgentInstance.objects.get()))
    assert await db(waiting.count) == 0
