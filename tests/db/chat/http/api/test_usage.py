"""Usage by time, model, agent and conversation; what limits leave; what comes next costs."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.instances.rows import ensure_instance, ensure_session, key_of
from chat.models import AgentInstance, SideCall, SideCallKind, Turn
from chat.reads import usage
from chat.reads.budgets import budgets_of_person
from chat.reads.limits import limits_of_person
from sessions_app.models import Session
from tests.db.chat.conftest import ApiClient, make_turn, say

Make = Callable[..., AgentInstance]
LARGE, SMALL = "acme-large", "acme-small"


def spend(instance: AgentInstance, model: str, cost: str, *, days_ago: float = 0, **fields: Any) -> Turn:
    turn = make_turn(instance, model_name=model, cost=Decimal(cost), input_tokens=100, output_tokens=10, **fields)
    Turn.objects.filter(pk=turn.pk).update(accepted_at=timezone.now() - timedelta(days=days_ago))
    return turn


def report(client: ApiClient, days: int, zone: str = "UTC") -> Any:
    return client.get(f"/usage?days={days}", **{"X-Time-Zone": zone}).json()


@pytest.fixture
def spent(alice: User, conversation: AgentInstance, make_instance: Make) -> AgentInstance:
    other = make_instance(alice, "other", title="Other", agent="coder")
    Turn.objects.all().delete()
    spend(conversation, LARGE, "0.10")
    spend(conversation, LARGE, "0.20", error_code="overloaded")
    spend(other, SMALL, "0.01", days_ago=2)
    spend(other, SMALL, "0.02", days_ago=20)
    spend(other, LARGE, "9.00", days_ago=40)
    return other


def test_sums_are_by_model_agent_and_conversation(
    as_alice: ApiClient, conversation: AgentInstance, spent: AgentInstance
) -> None:
    found = report(as_alice, 7)
    assert (found["total"]["cost"], found["total"]["turn_count"], found["total"]["failed_count"]) == ("0.31", 3, 1)
    assert (found["total"]["input_tokens"], found["total"]["output_tokens"]) == (300, 30)
    assert [(row["key"], row["figures"]["cost"]) for row in found["by_model"]] == [(LARGE, "0.3"), (SMALL, "0.01")]
    assert [row["key"] for row in found["by_agent"]] == ["assistant", "coder"]
    first, second = found["by_conversation"]
    assert (first["key"], first["label"], first["agent"]) == (conversation.pk, "A talk", "assistant")
    assert (second["key"], second["label"], second["agent"]) == (spent.pk, "Other", "coder")


@pytest.mark.parametrize(("days", "cost", "points"), [(1, "0.3", 24), (7, "0.31", 7), (30, "0.33", 30)])
def test_each_piece_of_time_is_there(
    as_alice: ApiClient, spent: AgentInstance, days: int, cost: str, points: int
) -> None:
    found = report(as_alice, days)
    assert (found["total"]["cost"], len(found["points"])) == (cost, points)
    assert sum(Decimal(point["figures"]["cost"]) for point in found["points"]) == Decimal(cost)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns", "Pacific/Kiritimati"])
def test_days_begin_at_the_persons_midnight(as_alice: ApiClient, spent: AgentInstance, zone: str) -> None:
    found = report(as_alice, 7, zone)
    starts = [datetime.fromisoformat(point["start"]).astimezone(ZoneInfo(zone)) for point in found["points"]]
    assert {(start.hour, start.minute) for start in starts} == {(0, 0)}
    assert starts[-1].date() == timezone.now().astimezone(ZoneInfo(zone)).date()
    assert Decimal(found["points"][-1]["figures"]["cost"]) == Decimal("0.3")


def test_a_day_on_which_the_clock_changes_has_all_of_its_hours() -> None:
    vienna = ZoneInfo("Europe/Vienna")
    spring, autumn = datetime(2026, 3, 29, tzinfo=vienna), datetime(2026, 10, 25, tzinfo=vienna)
    assert (len(usage._hours(spring)), len(usage._hours(autumn))) == (23, 25)


def test_what_others_used_is_not_counted(as_bob: ApiClient, spent: AgentInstance) -> None:
    found = report(as_bob, 30)
    assert (found["total"]["turn_count"], found["by_model"], found["by_conversation"]) == (0, [], [])


def side_call(instance: AgentInstance, kind: SideCallKind, model: str, cost: str, *, days_ago: float = 0) -> None:
    row = SideCall.objects.create(
        instance=instance, kind=kind, model_name=model, input_tokens=50, output_tokens=5, cost=Decimal(cost)
    )
    SideCall.objects.filter(pk=row.pk).update(created_at=timezone.now() - timedelta(days=days_ago))


def test_titles_and_summaries_count_by_their_own_kind_and_in_every_sum(
    as_alice: ApiClient, conversation: AgentInstance, spent: AgentInstance
) -> None:
    side_call(conversation, SideCallKind.TITLE, SMALL, "0.002")
    side_call(spent, SideCallKind.COMPACTION, LARGE, "0.5", days_ago=1)
    side_call(spent, SideCallKind.COMPACTION, "acme-tiny", "0.1", days_ago=1)
    side_call(spent, SideCallKind.SUMMARY, LARGE, "7", days_ago=9)
    found = report(as_alice, 7)
    kinds = [(row["key"], row["figures"]["cost"], row["figures"]["side_call_count"]) for row in found["by_kind"]]
    assert kinds == [("compaction", "0.6", 2), ("answer", "0.31", 0), ("title", "0.002", 1)]
    assert (found["total"]["cost"], found["total"]["turn_count"], found["total"]["side_call_count"]) == ("0.912", 3, 3)
    for table in ("by_kind", "by_model", "by_agent", "by_conversation", "points"):
        assert sum(Decimal(row["figures"]["cost"]) for row in found[table]) == Decimal("0.912"), table
        assert sum(row["figures"]["input_tokens"] for row in found[table]) == 450, table
    models = {row["key"]: row["figures"]["cost"] for row in found["by_model"]}
    assert models == {LARGE: "0.8", "acme-tiny": "0.1", SMALL: "0.012"}
    assert [row["key"] for row in found["by_conversation"]] == [spent.pk, conversation.pk]


def test_budgets_say_what_they_leave(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance, spent: AgentInstance
) -> None:
    below = ensure_instance(
        InstanceKey(owner_id=conversation.owner_id, agent="assistant", name="below", parent=key_of(conversation))
    )
    deep = ensure_instance(InstanceKey(owner_id=conversation.owner_id, agent="x", name="d", parent=key_of(below)))
    for instance, cost in ((conversation, "0.10"), (below, "0.20"), (deep, "0.05"), (spent, "3")):
        instance.refresh_from_db()
        Session.objects.filter(pk=ensure_session(instance)).update(cost=Decimal(cost))
    for instance, limit in ((conversation, "1"), (spent, "2")):
        path = f"/sessions/{instance.session_id}/budget"
        assert as_alice.send("PUT", path, {"max_cost": limit}).status_code == 200
    full, open_ = as_alice.get("/usage/budgets").json()
    assert (full["instance_id"], full["cost"], full["max_cost"], full["left"]) == (spent.pk, "3", "2", "0")
    assert (open_["title"], open_["cost"], open_["max_cost"], open_["left"]) == ("A talk", "0.35", "1", "0.65")
    alone = as_alice.get(f"/sessions/{conversation.session_id}/budget").json()
    assert (alone["cost"], alone["max_cost"]) == (open_["cost"], open_["max_cost"])  # as the budget itself counts
    assert as_bob.get("/usage/budgets").json() == []
    as_alice.send("DELETE", f"/instances/{conversation.pk}")
    assert [each["instance_id"] for each in as_alice.get("/usage/budgets").json()] == [spent.pk]


def test_budgets_take_the_same_queries_whatever_there_is(alice: User, make_instance: Make) -> None:
    def limited(name: str) -> None:
        instance = make_instance(alice, name)
        Session.objects.filter(pk=ensure_session(instance)).update(max_cost=1)
        ensure_instance(InstanceKey(owner_id=alice.pk, agent="assistant", name="below", parent=key_of(instance)))

    limited("first")
    with CaptureQueriesContext(connection) as few:
        assert len(budgets_of_person(alice.pk)) == 1
    for number in range(5):
        limited(f"n{number}")
    with CaptureQueriesContext(connection) as many:
        assert len(budgets_of_person(alice.pk)) == 6
    assert len(many) == len(few)


def test_a_report_takes_five_queries_whatever_there_is(alice: User, spent: AgentInstance, make_instance: Make) -> None:
    for number in range(30):
        spend(make_instance(alice, f"n{number}"), f"model-{number}", "0.001")
    with CaptureQueriesContext(connection) as captured:
        found = usage.usage_of_person(alice.pk, 30, UTC)
    assert (len(captured), len(found.by_model), len(found.by_conversation)) == (5, 25, 25)
    assert found.total.turn_count == 34
    with CaptureQueriesContext(connection) as captured:
        everybody = usage.usage_of_everybody(30, UTC)
    assert (len(captured), everybody.by_person[0].label) == (6, alice.username)


def test_errors_are_counted_by_kind(conversation: AgentInstance) -> None:
    for code in ("overloaded", "overloaded", "quota_exceeded", ""):
        spend(conversation, LARGE, "0", error_code=code)
    assert usage.errors_by_kind(1, UTC) == [("overloaded", 2), ("quota_exceeded", 1)]


def test_limits_say_what_is_used(as_alice: ApiClient, conversation: AgentInstance, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 60
    settings.THINK_FILES_QUOTA_BYTES = 0
    for _ in range(2):
        say(conversation, f"q{_}x", f"a{_}x")
    found = {limit["name"]: limit for limit in as_alice.get("/usage/limits").json()}
    assert found["turns"] == {"name": "turns", "used": 3, "limit": 60, "unit": "count", "window_seconds": 60}
    assert (found["conversations"]["used"], found["conversations"]["window_seconds"]) == (1, 0)
    assert (found["workspace_bytes"]["unit"], "file_bytes" in found) == ("bytes", False)


def test_a_limit_that_is_full_refuses_what_comes_next(
    as_alice: ApiClient, conversation: AgentInstance, settings: Any
) -> None:
    settings.THINK_TURNS_PER_MINUTE = 1
    [view] = [limit for limit in as_alice.get("/usage/limits").json() if limit["name"] == "turns"]
    assert (view["used"], view["limit"]) == (1, 1)
    body = {"message": {"parts": [{"type": "text", "text": "hi"}]}}
    refused = as_alice.send("POST", f"/instances/{conversation.pk}/turns", body)
    assert (refused.status_code, refused.json()["data"]["passes"]) == (429, True)


def test_limits_take_the_same_queries_whatever_there_is(alice: User, make_instance: Make) -> None:
    with CaptureQueriesContext(connection) as few:
        limits_of_person(alice.pk)
    for number in range(5):
        say(make_instance(alice, f"n{number}"), f"q{number}", f"a{number}")
    with CaptureQueriesContext(connection) as many:
        limits_of_person(alice.pk)
    assert len(many) == len(few) <= 11
    used = {view.name: view.used for view in limits_of_person(alice.pk)}
    assert (used["messages"], used["message_bytes"] > 0) == (10, True)


@pytest.mark.django_db(transaction=True)
def test_the_next_message_has_a_price_from_what_the_last_ones_took(
    as_alice: ApiClient, conversation: AgentInstance, settings: Any
) -> None:
    settings.THINK_MODEL, settings.OPENAI_API_KEY = "openai/acme-large", "sk-test"
    settings.THINK_PRICES = {"acme-large": {"input": 1, "output": 10}}
    for output, steps in ((100, 1), (100, 1), (400, 2), (400, 2)):
        make_turn(conversation, output_tokens=output, step_count=steps)
    found = as_alice.get(f"/instances/{conversation.pk}/next-price").json()
    low, high = Decimal(found["low"]), Decimal(found["high"])
    assert Decimal("0.001") < low < high, "the output alone costs 0.001, or 0.004"
    assert high > Decimal("0.004")


@pytest.mark.django_db(transaction=True)
def test_a_model_without_a_price_has_none(as_alice: ApiClient, conversation: AgentInstance, settings: Any) -> None:
    settings.THINK_MODEL, settings.OPENAI_API_KEY = "openai/acme-large", "sk-test"
    found = as_alice.get(f"/instances/{conversation.pk}/next-price").json()
    assert found == {"model": None, "low": None, "high": None}


@pytest.mark.django_db(transaction=True)
def test_the_price_is_for_those_who_may_write(as_bob: ApiClient, conversation: AgentInstance) -> None:
    assert as_bob.get(f"/instances/{conversation.pk}/next-price").status_code == 404
