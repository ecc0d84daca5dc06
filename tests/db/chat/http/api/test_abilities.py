"""What an agent has besides its conversation, over the API: state, methods, agents below, code, skills, workspaces."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent import declared
from chat.models import AgentInstance, AgentRun, Turn
from tests.db.chat.conftest import ApiClient
from tests.db.chat.counting_agent import CounterBase
from tests.db.chat.http.api.problems import assert_problem
from tools_app.models.code_runs import Execution, ExecutionCall
from tools_app.workspace.services import create_workspace

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _served() -> Iterator[None]:
    class CounterUnderTest(CounterBase):
        """Counts."""

    yield
    declared.unregister(CounterUnderTest)


@pytest.fixture
def counter(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    return make_instance(alice, "one", agent="counter-under-test")


def test_a_class_says_what_it_declares(as_alice: ApiClient) -> None:
    shown = as_alice.get("/agents/counter-under-test").json()
    own = {"add", "countTo", "fails", "odd"}  # besides those that all have
    assert [(each["name"], each["is_streaming"]) for each in shown["methods"] if each["name"] in own] == [
        ("add", False),
        ("countTo", True),
        ("fails", False),
        ("odd", False),
    ]
    assert shown["methods"][0]["signature"] == "(by: int = 1)"
    assert shown["methods"][0]["description"] == "Count on."
    assert (shown["sub_agents"], shown["config_access"], shown["chats"]) == (["counter-under-test"], "read", True)
    assert_problem(as_alice.get("/agents/nothing"), 404, "agent_not_found")


def test_state_is_read_and_set_over_the_version_that_was_read(as_alice: ApiClient, counter: AgentInstance) -> None:
    path = f"/instances/{counter.pk}/state"
    assert as_alice.get(path).json() == {"state": {"count": 0}, "version": 0}
    assert as_alice.send("PUT", path, {"state": {"count": 2}, "version": 0}).json()["version"] == 1
    assert_problem(as_alice.send("PUT", path, {"state": {"count": 9}, "version": 0}), 409, "state_outdated")
    assert as_alice.send("PUT", path, {"state": {"count": 3}}).json() == {"state": {"count": 3}, "version": 2}
    refused = as_alice.send("PUT", path, {"state": {"count": -1}})
    assert_problem(refused, 422, "state_refused")
    assert "secret" not in refused.content.decode()
    assert_problem(as_alice.send("PUT", path + "?as=guest", {"state": {"count": 4}}), 422, "state_refused")
    assert as_alice.get(path).json() == {"state": {"count": 3}, "version": 2}


def test_methods_for_clients_are_called(as_alice: ApiClient, counter: AgentInstance) -> None:
    path = f"/instances/{counter.pk}/methods"
    assert as_alice.send("POST", f"{path}/add", {"args": [4]}).json() == {"result": {"count": 4}, "items": None}
    assert as_alice.get(f"/instances/{counter.pk}/state").json()["version"] == 1
    assert as_alice.send("POST", f"{path}/countTo", {"args": [3]}).json() == {"result": "done", "items": [0, 1, 2]}
    for method, args in (("add", ["x"]), ("add", [1, 2]), ("get_model", []), ("nothing", []), ("odd", [])):
        assert_problem(as_alice.send("POST", f"{path}/{method}", {"args": args}), 422, "call_refused")
    assert_problem(as_alice.send("POST", f"{path}/countTo", {"args": [1001]}), 422, "call_refused")
    failed = as_alice.send("POST", f"{path}/fails", {})
    assert failed.status_code == 500
    assert "secret" not in failed.content.decode()
    assert_problem(as_alice.send("POST", f"{path}/add?as=guest", {}), 422, "state_refused")


def test_agents_below_are_opened_and_set_to_work(as_alice: ApiClient, counter: AgentInstance) -> None:
    below = {"agent": "counter-under-test", "name": "two"}
    made = as_alice.send("POST", f"/instances/{counter.pk}/sub-agents", below)
    assert made.status_code == 201
    assert AgentInstance.objects.get(pk=made.json()["id"]).parent_id == counter.pk
    assert as_alice.send("POST", f"/instances/{counter.pk}/sub-agents", below).json()["id"] == made.json()["id"]
    wanted = {"agent": "counter-under-test", "input": "say: x", "run_id": "r1", "display": {"name": "Counter"}}
    run = as_alice.send("POST", f"/instances/{counter.pk}/runs", wanted).json()
    assert (run["run_id"], run["status"], run["is_detached"]) == ("r1", "starting", True)
    assert as_alice.send("POST", f"/instances/{counter.pk}/runs", wanted).json()["id"] == run["id"]
    assert AgentRun.objects.count() == 1
    for path, more in (("sub-agents", {"name": "x"}), ("runs", {"input": "x"})):
        refused = as_alice.send("POST", f"/instances/{counter.pk}/{path}", {"agent": "assistant", **more})
        assert_problem(refused, 404, "agent_not_found")  # the class does not let clients open it
    closed = {"agent": "counter-under-test", "name": "closed"}
    assert as_alice.send("POST", f"/instances/{counter.pk}/sub-agents", closed).status_code == 404
    assert as_alice.send("POST", f"/instances/{counter.pk}/runs", {**wanted, "run_id": "closed"}).status_code == 404


def test_a_run_that_a_person_starts_counts_as_a_message(
    as_alice: ApiClient, counter: AgentInstance, settings: Any
) -> None:
    settings.THINK_TURNS_PER_MINUTE = 2
    wanted = {"agent": "counter-under-test", "input": "say: x"}
    outcomes = [as_alice.send("POST", f"/instances/{counter.pk}/runs", wanted).json() for _ in range(3)]
    assert Turn.objects.count() == 2
    assert [each["outcome"] is None for each in outcomes] == [True, True, False]
    assert "2 messages within a minute" in outcomes[2]["outcome"]["error"]


def test_code_that_ran_is_listed_with_its_calls(as_alice: ApiClient, counter: AgentInstance, alice: User) -> None:
    for number in range(3):
        made = Execution.objects.create(
            key=f"k{number}",
            scope=counter.pk,
            owner=alice,
            turn_id="t",
            call_id="c",
            code=f"return {number}",
            clock_ms=0,
            status="succeeded",
            outcome="ok",
            value=number,
        )
    ExecutionCall.objects.create(execution=made, ordinal=1, name="read", input=["/a"], status="succeeded", output="A")
    path = f"/instances/{counter.pk}/executions"
    first = as_alice.get(f"{path}?limit=2").json()
    assert [each["code"] for each in first["items"]] == ["return 2", "return 1"]
    rest = as_alice.get(f"{path}?limit=2&cursor={first['next_cursor']}").json()
    assert ([each["value"] for each in rest["items"]], rest["next_cursor"]) == ([0], None)
    one = as_alice.get(f"{path}/{made.pk}").json()
    assert (one["calls"][0]["name"], one["calls"][0]["output"]) == ("read", "A")
    assert_problem(as_alice.get(f"{path}/999999"), 404, "execution_not_found")


def test_skills_are_listed(as_alice: ApiClient, counter: AgentInstance) -> None:
    tidy, odd = as_alice.get(f"/instances/{counter.pk}/skills").json()
    assert tidy == {"name": "tidy", "description": "How to tidy up.", "fault": ""}
    assert odd["name"] == "odd"
    assert odd["fault"]


def test_workspaces_are_attached_and_detached(
    as_alice: ApiClient, alice: User, bob: User, counter: AgentInstance, make_instance: Callable[..., AgentInstance]
) -> None:
    path = f"/instances/{counter.pk}/workspaces"
    other = make_instance(alice, "other")
    assert as_alice.send("PUT", f"{path}/theirs", {"instance_id": other.pk}).json()["can_write"] is False
    assert as_alice.send("PUT", f"{path}/theirs", {"instance_id": other.pk, "can_write": True}).json()["can_write"]
    assert [each["name"] for each in as_alice.get(path).json()] == ["theirs"]
    mine = create_workspace(alice.pk)
    assert_problem(as_alice.send("PUT", f"{path}/theirs", {"workspace_id": mine.pk}), 409, "workspace_exists")
    bobs = create_workspace(bob.pk)
    assert_problem(as_alice.send("PUT", f"{path}/bobs", {"workspace_id": bobs.pk}), 404, "workspace_not_found")
    his = make_instance(bob, "his")
    assert as_alice.send("PUT", f"{path}/bobs", {"instance_id": his.pk}).status_code == 404
    for body in ({}, {"workspace_id": mine.pk, "instance_id": other.pk}):
        assert as_alice.send("PUT", f"{path}/x", body).status_code == 422
    assert as_alice.send("PUT", f"{path}/default", {"workspace_id": mine.pk}).status_code == 422
    assert as_alice.send("DELETE", f"{path}/theirs").status_code == 204
    assert as_alice.send("DELETE", f"{path}/theirs").status_code == 404
    assert as_alice.get(path).json() == []
