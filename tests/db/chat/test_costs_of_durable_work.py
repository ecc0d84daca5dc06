"""What durable work asks of the database: nothing where there is none, and no more for a thousand of each kind."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.access import api_tokens
from chat.models import AgentInstance
from chat.models.runs import AgentRun
from fibers.core.schedules.states import ScheduleStatus
from fibers.core.states import FiberStatus
from fibers.execution.recovery import sweep
from fibers.models import Fiber
from fibers.models.schedules import Schedule
from tests.db.chat.conftest import ApiClient
from tests.db.chat.openings import kinds, opened

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 1_000


def fill(instance: AgentInstance) -> None:
    """Give a conversation a thousand parked fibers, schedules of later and runs under way."""
    Fiber.objects.bulk_create(
        [
            Fiber(
                name="chat.agent_fiber:assistant.report",
                payload={"instance_id": instance.pk, "method": "report", "payload": None},
                scope=instance.pk,
                owner_id=instance.owner_id,
                status=FiberStatus.PARKED,
                attempt=1,
            )
            for _ in range(MANY)
        ]
    )
    Schedule.objects.bulk_create(
        [
            Schedule(
                scope=instance.pk,
                owner_id=instance.owner_id,
                kind="interval",
                spec="3600",
                function="chat.scheduled_run:assistant",
                status=ScheduleStatus.ACTIVE,
                next_at=timezone.now() + timedelta(hours=1),
            )
            for _ in range(MANY)
        ]
    )
    AgentRun.objects.bulk_create(
        [
            AgentRun(parent=instance, owner_id=instance.owner_id, run_id=f"run {number}", agent="assistant")
            for number in range(MANY)
        ]
    )


def count_of(read: Any) -> int:
    """The statements that a read sends."""
    read()  # a connection that is made anew costs statements of its own
    with CaptureQueriesContext(connection) as queries:
        read()
    return len(queries)


def test_the_list_of_conversations_costs_the_same_with_a_thousand_of_each(
    as_alice: ApiClient, talk: AgentInstance
) -> None:
    def read() -> None:
        assert as_alice.get("/instances?limit=100").status_code == 200

    bare = count_of(read)
    fill(talk)
    assert count_of(read) == bare == 4  # the session, the user, where they are a member, the list


@pytest.mark.parametrize("path", ["", "/messages?limit=50"])
def test_opening_a_conversation_costs_the_same_with_a_thousand_of_each(
    as_alice: ApiClient, talk: AgentInstance, path: str
) -> None:
    def read() -> None:
        assert as_alice.get(f"/instances/{talk.pk}{path}").status_code == 200

    bare = count_of(read)
    fill(talk)
    assert count_of(read) == bare


@pytest.mark.parametrize("kind", ["fibers", "schedules", "runs"])
def test_the_lists_of_durable_work_read_a_page_with_a_fixed_number_of_statements(
    as_alice: ApiClient, talk: AgentInstance, kind: str
) -> None:
    def read() -> None:
        assert as_alice.get(f"/instances/{talk.pk}/{kind}").status_code == 200

    bare = count_of(read)
    fill(talk)
    assert count_of(read) <= bare + 2


async def test_a_socket_opens_with_the_same_statements_where_there_is_no_work_and_one_look_where_there_is(
    alice: User, talk: AgentInstance
) -> None:
    _row, secret = await sync_to_async(api_tokens.create_token)(alice, name="t")
    here, query = f"/agents/assistant/{talk.name}", f"token={secret}"
    await opened("/agents/assistant/warm", query=query)
    assert kinds(await opened(here, query=query)) == ["token and user", "snapshot", "window"]
    await sync_to_async(fill)(talk)
    found = await opened(here, query=query)
    assert len(found) <= 4, found


def test_an_idle_sweep_costs_the_same_with_a_thousand_of_each(talk: AgentInstance) -> None:
    bare = count_of(sweep)
    fill(talk)
    assert Fiber.objects.filter(parked_until__lt=Now()).count() == 0
    with CaptureQueriesContext(connection) as queries:
        sweep()
    assert len(queries) == bare
    assert {query["sql"].split()[0] for query in queries} == {"SELECT"}  # nothing is written
