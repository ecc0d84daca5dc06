"""Which turns count among those of a person that may run at a time: what people ask for, not what agents delegate."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent import declared
from chat.instance.handle import AgentHandle
from chat.llm.scripted import ScriptedModel
from chat.think import InstanceKey, Think
from fibers.models import Fiber
from fibers.testing import worker
from tests.db.chat.turns.conftest import MakeRoom
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


async def shares() -> list[str | None]:
    return await db(lambda: list(Fiber.objects.filter(name="chat.turn").order_by("pk").values_list("share", flat=True)))


async def test_turns_that_a_person_asks_for_count(make_room: MakeRoom) -> None:
    room = make_room()
    await room.admit("hello")
    assert await shares() == [f"user:{room.key.owner_id}"]


async def test_turns_of_children_do_not_count(make_room: MakeRoom) -> None:
    room = make_room()
    child = room.key.below("plain", "child")
    await AgentHandle(child).submit_messages("hello")
    assert await shares() == [None]


async def test_a_turn_that_waits_for_another_of_the_same_person_never_waits_for_ever(
    transactional_db: None, settings: Any
) -> None:
    """Without the exemption the parent would hold the only place that its delegate needs."""
    settings.THINK_RUNNING_TURNS_PER_USER = 1
    user = await db(lambda: User.objects.create_user("alice", password="alice-password"))
    answers: list[str] = []

    class DelegateUnderTest(Think):
        def get_model(self) -> ScriptedModel:
            return ScriptedModel()

        def on_chat_message(self, options: Any) -> Any:
            return words("done")

    class ParentUnderTest(Think):
        def get_model(self) -> ScriptedModel:
            return ScriptedModel()

        def on_chat_message(self, options: Any) -> Any:
            return self.delegate()

        async def delegate(self) -> Any:
            other = InstanceKey(owner_id=user.pk, agent="delegate-under-test", name="other")
            result = await AgentHandle(other).chat("Do it.", waits_for_hook=False)
            answers.append(result.status.value)
            async for chunk in words("parent done"):
                yield chunk

    try:
        parent = AgentHandle(InstanceKey(owner_id=user.pk, agent="parent-under-test", name="one"))
        async with worker():
            result = await parent.chat("Begin.", waits_for_hook=False)
        assert result.status.value == "completed"
    finally:
        declared.unregister(DelegateUnderTest)
        declared.unregister(ParentUnderTest)
    assert answers == ["completed"]


async def words(text: str) -> Any:
    yield {"type": "text-start", "id": "t"}
    yield {"type": "text-delta", "id": "t", "delta": text}
    yield {"type": "text-end", "id": "t"}
