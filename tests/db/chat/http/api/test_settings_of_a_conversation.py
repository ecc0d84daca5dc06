"""What the API tells and takes besides messages: configuration, costs, budgets, titles."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance
from sessions_app.messages.usage import SessionUsage, add_usage
from tests.db.chat.conftest import ApiClient, make_turn
from tests.db.chat.turns.agents.everyday import Typed


@pytest.fixture
def typed(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    return make_instance(alice, "typed", agent="typed")


def test_a_configuration_with_the_schema_it_has_to_fit(as_alice: ApiClient, typed: AgentInstance) -> None:
    path = f"/instances/{typed.id}/config"
    empty = as_alice.get(path).json()
    assert (empty["config"], empty["version"]) == (None, 0)
    assert empty["config_schema"]["properties"]["level"]["maximum"] == 5
    stored = as_alice.send("PUT", path, {"config": {"colour": "red"}}).json()
    assert (stored["config"], stored["version"]) == ({"colour": "red", "level": 1}, 1)
    assert as_alice.get(path).json() == stored


def test_a_refused_configuration_names_the_expected_value(as_alice: ApiClient, typed: AgentInstance) -> None:
    path = f"/instances/{typed.id}/config"
    reply = as_alice.send("PUT", path, {"config": {"colour": "red", "level": 9}})
    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (422, "config_invalid")
    assert problem["data"]["problems"] == [{"at": "level", "expected": "Input should be less than or equal to 5"}]
    assert as_alice.get(path).json()["version"] == 0


def test_nobodys_change_is_lost(as_alice: ApiClient, typed: AgentInstance) -> None:
    path = f"/instances/{typed.id}/config"
    as_alice.send("PUT", path, {"config": {"colour": "red"}, "version": 0})
    reply = as_alice.send("PUT", path, {"config": {"colour": "blue"}, "version": 0})
    assert (reply.status_code, reply.json()["code"]) == (409, "config_changed")
    assert as_alice.get(path).json()["config"]["colour"] == "red"


@pytest.mark.parametrize(
    ("access", "read", "written"), [("private", 403, 403), ("read", 200, 403), ("write", 200, 200)]
)
def test_the_class_decides_who_may(
    as_alice: ApiClient, typed: AgentInstance, monkeypatch: pytest.MonkeyPatch, access: str, read: int, written: int
) -> None:
    monkeypatch.setattr(Typed, "config_access", access)
    path = f"/instances/{typed.id}/config"
    assert as_alice.get(path).status_code == read
    assert as_alice.send("PUT", path, {"config": {"colour": "red"}}).status_code == written


def test_a_configuration_is_private_unless_the_class_shares_it(
    as_alice: ApiClient, conversation: AgentInstance, make_instance: Callable[..., AgentInstance], alice: User
) -> None:
    gone = make_instance(alice, "gone", agent="retired")
    assert as_alice.get(f"/instances/{conversation.id}/config").json()["code"] == "config_private"
    assert as_alice.get(f"/instances/{gone.id}/config").status_code == 404


def test_usage_with_sub_agents(as_alice: ApiClient, conversation: AgentInstance) -> None:
    child = ensure_instance(key_of(conversation).below("assistant", "child"))
    for instance, cost in ((conversation, "0.1"), (child, "0.25")):
        assert instance.session_id is not None
        add_usage(instance.session_id, SessionUsage(input_tokens=3, output_tokens=2, cost=Decimal(cost)))
    used = as_alice.get(f"/instances/{conversation.id}/usage").json()
    assert {name: part["cost"] for name, part in used.items()} == {"own": "0.1", "sub_agents": "0.25", "total": "0.35"}
    assert used["total"]["input_tokens"] == 6
    [session] = as_alice.get(f"/instances/{conversation.id}/sessions").json()
    assert (session["cost"], session["output_tokens"], session["max_cost"]) == ("0.1", 2, None)


def test_turns_report_their_cost(as_alice: ApiClient, conversation: AgentInstance) -> None:
    turn = make_turn(conversation, cost=Decimal("0.0123"))
    assert as_alice.get(f"/turns/{turn.id}").json()["cost"] == "0.0123"


def test_a_budget_is_set_and_lifted(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = f"/sessions/{conversation.session_id}/budget"
    assert as_alice.get(path).json() == {"cost": "0", "max_cost": None}
    assert as_alice.send("PUT", path, {"max_cost": "1.5"}).json()["max_cost"] == "1.5"
    assert as_alice.send("PUT", path, {"max_cost": None}).json()["max_cost"] is None


@pytest.mark.parametrize("amount", [-1, "NaN", "1e30", "a lot", [], True])
def test_a_budget_is_an_amount(as_alice: ApiClient, conversation: AgentInstance, amount: Any) -> None:
    path = f"/sessions/{conversation.session_id}/budget"
    assert as_alice.send("PUT", path, {"max_cost": amount}).status_code == 422
    assert as_alice.get(path).json()["max_cost"] is None


def test_a_title_may_be_marked_provisional(as_alice: ApiClient) -> None:
    made = as_alice.send(
        "POST", "/instances", {"agent": "assistant", "name": "a", "title": "First words", "title_is_provisional": True}
    ).json()
    assert AgentInstance.objects.get(pk=made["id"]).title_is_provisional
    as_alice.send("PATCH", f"/instances/{made['id']}", {"title": "First words"})
    assert not AgentInstance.objects.get(pk=made["id"]).title_is_provisional
