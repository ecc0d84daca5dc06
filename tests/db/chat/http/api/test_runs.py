"""Runs in the API: pages, one, the tree with counts in few queries, and the end of one that is stopped."""

from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.instances.rows import ensure_instance
from chat.models import AgentInstance, AgentRun, Turn
from chat.sub_agents import views as runs
from fibers.models import Fiber
from tests.db.chat.conftest import ApiClient, make_turn
from tests.db.chat.http.api.problems import assert_problem
from tests.db.chat.notes import keys
from tests.db.chat.runs_by_hand import end_run, start_run
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("notes")]


def parent(alice: User) -> AgentInstance:
    return ensure_instance(keys(alice)[0])


def list_of(api: ApiClient, instance: AgentInstance, query: str = "") -> Any:
    return api.get(f"/instances/{instance.pk}/runs{query}").json()


def test_runs_are_listed_newest_first_page_by_page(as_alice: ApiClient, alice: User) -> None:
    for at in range(5):
        start_run(alice, "say: x", f"r{at}")
    AgentRun.objects.update(created_at=AgentRun.objects.earliest("created_at").created_at)  # all at one moment
    found: list[str] = []
    cursor = ""
    while True:
        page = list_of(as_alice, parent(alice), f"?limit=2&cursor={cursor}")
        found += [run["id"] for run in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == list(AgentRun.objects.order_by("-pk").values_list("pk", flat=True))
    assert list_of(as_alice, parent(alice), "?cursor=run_gone") == {"items": [], "next_cursor": None}


def test_a_run_has_its_status_its_childs_turns_their_cost_and_open_questions(as_alice: ApiClient, alice: User) -> None:
    run = start_run(alice, "say: x")
    assert run.child is not None
    assert run.turn is not None
    Turn.objects.filter(pk=run.turn_id).update(cost=Decimal("0.5"))
    seen = [as_alice.get(f"/runs/{run.pk}").json()["status"]]
    for status in ("running", "parked"):
        Fiber.objects.filter(pk=run.turn.fiber_id).update(status=status)
        seen.append(as_alice.get(f"/runs/{run.pk}").json()["status"])
    assert seen == ["starting", "running", "waiting"]
    Fiber.objects.filter(pk=run.turn.fiber_id).update(status="completed")
    make_turn(run.child, cost=Decimal("0.25"))
    ToolCallRecord.objects.create(
        turn_id=run.turn.pk,
        call_id="c",
        tool_name="pay",
        input={},
        scope=run.child.pk,
        owner_id=alice.pk,
        status=CallStatus.ASKED,
    )
    shown = as_alice.get(f"/runs/{run.pk}").json()
    assert (shown["status"], shown["turn_count"], shown["cost"], shown["question_count"]) == ("waiting", 2, "0.75", 1)
    end_run(run, ok=False, status="interrupted", error="Late.", reason="no-progress")
    shown = as_alice.get(f"/runs/{run.pk}").json()
    assert (shown["status"], shown["outcome"]["reason"]) == ("interrupted", "no-progress")


def test_the_tree_has_all_levels_and_reads_each_once(as_alice: ApiClient, alice: User) -> None:
    for at in range(3):
        above = start_run(alice, "say: x", f"r{at}")
        for below in range(2):
            assert above.child is not None
            AgentRun.objects.create(
                parent=above.child, owner=alice, run_id=f"{at}.{below}", agent="note-under-test", child=above.child
            )
    root = parent(alice).pk
    with CaptureQueriesContext(connection) as queries:
        found = runs.run_tree(root)
    assert [run.run_id for run in found] == ["r2", "r1", "r0", "2.1", "2.0", "1.1", "1.0", "0.1", "0.0"]
    assert len(queries) == 2  # a child that is its own parent is not read for ever
    shown = as_alice.get(f"/instances/{parent(alice).pk}/runs/tree").json()
    assert ([run["id"] for run in shown["items"]], shown["is_complete"]) == ([run.id for run in found], True)


def test_the_list_reads_all_counts_in_one_query(alice: User) -> None:
    for at in range(4):
        start_run(alice, "say: x", f"r{at}")
    instance = parent(alice)
    with CaptureQueriesContext(connection) as queries:
        assert len(runs.run_page(instance.pk).items) == 4
    assert len(queries) == 1


def test_a_run_is_stopped_once(as_alice: ApiClient, alice: User) -> None:
    run = start_run(alice, "say: x")
    assert as_alice.send("POST", f"/runs/{run.pk}/stop").json() == {"stopped": True}
    end_run(run, ok=False, status="aborted", error="Stopped.")
    assert as_alice.send("POST", f"/runs/{run.pk}/stop").json() == {"stopped": False}
    assert run.turn is not None
    assert Fiber.objects.get(pk=run.turn.fiber_id).status == "cancelled"


def test_runs_of_others_are_not_there(as_bob: ApiClient, alice: User) -> None:
    run = start_run(alice, "say: x")
    assert_problem(as_bob.get(f"/runs/{run.pk}"), 404, "run_not_found")
    assert_problem(as_bob.send("POST", f"/runs/{run.pk}/stop"), 404, "run_not_found")
    assert_problem(as_bob.get(f"/instances/{run.parent_id}/runs"), 404, "instance_not_found")
