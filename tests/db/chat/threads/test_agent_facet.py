"""`AgentFacet`: values by key, failures of what schedules call, and the end of an instance."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from chat.agent import declared
from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.instance.instance import make_agent
from chat.instances.rows import find_instance
from chat.operations.removal import delete_instance
from chat.think import AgentFacet
from tests.db.chat.turns.agents.planning import run_due
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)

SEEN: list[str] = []


@pytest.fixture
def facet_key(alice: User) -> Iterator[InstanceKey]:
    SEEN.clear()

    class FacetUnderTest(AgentFacet):
        """Counts, and fails when it is to."""

        async def count(self) -> None:
            number = await self.storage.get("count", 0)
            assert isinstance(number, int)
            await self.storage.put("count", number + 1)

        def break_down(self) -> None:
            raise RuntimeError("broken")

        def on_error(self, error: Exception) -> None:
            SEEN.append(str(error))

    yield InstanceKey(owner_id=alice.pk, agent="facet-under-test", name="one")
    declared.unregister(FacetUnderTest)


def facet(key: InstanceKey) -> AgentFacet:
    made = make_agent(key)
    assert isinstance(made, AgentFacet)
    return made


async def test_values_are_kept_by_key_across_objects(facet_key: InstanceKey) -> None:
    one = facet(facet_key)
    assert await one.storage.get("none") is None
    assert await one.storage.keys() == []
    await one.storage.put("a/b ü", {"files": [1, None]})
    await one.storage.put("a/b ü", {"files": [2]})
    await one.storage.put("other", "text")
    again = facet(facet_key).storage
    assert await again.get("a/b ü") == {"files": [2]}
    assert await again.keys() == ["a/b ü", "other"]
    assert await again.delete("other") is True
    assert await again.delete("other") is False
    assert await again.get("other", 7) == 7


async def test_a_schedule_calls_its_methods_and_reports_what_fails(facet_key: InstanceKey) -> None:
    handle = AgentHandle(facet_key)
    await run_due(await handle.schedule(3600, "count"))
    assert await facet(facet_key).storage.get("count") == 1
    await run_due(await handle.schedule(3600, "break_down"))
    assert SEEN == ["broken"]


async def test_an_instance_is_destroyed_once_it_is_deleted(facet_key: InstanceKey) -> None:
    one = facet(facet_key)
    assert await one.is_destroyed()
    await one.storage.put("a", 1)
    assert not await one.is_destroyed()
    row = await db(find_instance, facet_key)
    assert row is not None
    await db(delete_instance, row)
    assert await one.is_destroyed()
    assert await one.storage.get("a") is None
