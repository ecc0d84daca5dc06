"""Threads as conversations of their own: found by their short id, opened by clients, by their owner alone."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.agent.base import InstanceKey
from chat.instances.rows import find_instance
from chat.threads import registry
from tests.db.chat.notes import opener
from tests.db.chat.threads.conftest import OpenDesk

pytestmark = pytest.mark.django_db(transaction=True)
ROUTE = "coder-under-test"


def signed_in(user: User) -> Client:
    made = Client()
    made.force_login(user)
    return made


def test_a_thread_is_found_by_its_short_id_by_its_owner(
    coders_key: InstanceKey, coders: None, alice: User, bob: User
) -> None:
    thread = registry.create_thread(coders_key, ROUTE, "Parser")
    row = find_instance(coders_key.below(ROUTE, thread.id))
    assert row is not None
    found = signed_in(alice).get(f"/api/v1/threads/{thread.id}").json()
    assert (found["id"], found["title"], found["agent"]) == (row.pk, "Parser", ROUTE)
    assert found["parent_id"] == row.parent_id
    client = signed_in(alice)
    for unknown in ("f0000000", coders_key.name, "x" * 300):  # the orchestrator's own name is none
        assert client.get(f"/api/v1/threads/{unknown}").status_code == 404
    assert signed_in(bob).get(f"/api/v1/threads/{thread.id}").status_code == 404
    assert Client().get(f"/api/v1/threads/{thread.id}").status_code == 401


def test_agents_say_which_agent_answers_their_threads(coders: None, alice: User) -> None:
    agents = signed_in(alice).get("/api/v1/agents?unlisted=true").json()
    threads = {each["name"]: each["thread_agent"] for each in agents}
    assert (threads["coders-under-test"], threads[ROUTE]) == (ROUTE, None)


async def test_clients_open_threads_that_exist_and_make_none(open_desk: OpenDesk, alice: User) -> None:
    desk = await open_desk()
    await desk.send("create_thread", name="Parser")
    thread = (await desk.next("threads"))["threads"][0]
    async with opener(alice) as connect:
        await connect(f"/agents/coders-under-test/desk/sub/{ROUTE}/{thread['id']}")
        refused = await connect(f"/agents/coders-under-test/desk/sub/{ROUTE}/unknown", is_ready=False)
        assert (await refused.receive_output(timeout=15))["code"] == 4404
