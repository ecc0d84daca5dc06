"""Turns over the API: admitted once, listed, cancelled, looked into."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat.models import AgentInstance, Turn
from fibers.models import Fiber, FiberStep
from sessions_app.messages import selectors
from tests.db.chat.conftest import ApiClient, make_turn, say

HELLO: dict[str, Any] = {"message": {"parts": [{"type": "text", "text": "hello"}]}}


def post(client: ApiClient, instance: AgentInstance, body: object, **headers: str) -> Any:
    return client.send("POST", f"/instances/{instance.id}/turns", body, **headers)


def test_a_message_becomes_a_pending_turn(as_alice: ApiClient, conversation: AgentInstance) -> None:
    reply = post(as_alice, conversation, HELLO | {"request_id": "r1"})
    assert reply.status_code == 202, reply.content
    body = reply.json()
    assert (body["status"], body["request_id"], body["accepted"]) == ("pending", "r1", True)
    turn = Turn.objects.get(pk=body["id"])
    assert conversation.session_id is not None
    assert [m.id for m in selectors.queued(conversation.session_id)] == turn.input_ids
    assert (turn.base_id, turn.base_is_explicit) == (None, False)


def test_the_same_idempotency_key_is_one_turn(as_alice: ApiClient, conversation: AgentInstance) -> None:
    first = post(as_alice, conversation, HELLO, **{"Idempotency-Key": "k"}).json()
    second = post(as_alice, conversation, HELLO, **{"Idempotency-Key": "k"}).json()
    assert (first["id"], first["accepted"]) == (second["id"], True)
    assert second["accepted"] is False
    assert Turn.objects.filter(idempotency_key="k").count() == 1


def test_an_explicit_parent_is_kept_and_null_is_a_new_root(as_alice: ApiClient, conversation: AgentInstance) -> None:
    below = post(as_alice, conversation, HELLO | {"parent_id": "a1"}).json()
    root = post(as_alice, conversation, HELLO | {"parent_id": None}).json()
    places = {t.id: (t.base_id, t.base_is_explicit) for t in Turn.objects.all()}
    assert places[below["id"]] == ("a1", True)
    assert places[root["id"]] == (None, True)


def test_an_edit_stands_beside_the_message(as_alice: ApiClient, conversation: AgentInstance) -> None:
    say(conversation, "q2", "a2")
    body = post(as_alice, conversation, HELLO | {"trigger": "edit-message", "message_id": "q2"}).json()
    turn = Turn.objects.get(pk=body["id"])
    assert (turn.trigger, turn.base_id, turn.base_is_explicit) == ("edit-message", "a1", True)


def test_an_edit_keeps_an_id_of_its_own_and_gets_one_where_it_names_the_first(
    as_alice: ApiClient, conversation: AgentInstance
) -> None:
    edit = {"trigger": "edit-message", "message_id": "q1"}
    own = post(as_alice, conversation, edit | {"message": HELLO["message"] | {"id": "mine"}}).json()
    same = post(as_alice, conversation, edit | {"message": HELLO["message"] | {"id": "q1"}}).json()
    inputs = {turn.id: turn.input_ids for turn in Turn.objects.all()}
    assert inputs[own["id"]] == ["mine"]
    assert len(inputs[same["id"]]) == 1
    assert inputs[same["id"]] != ["q1"]


def test_an_edit_of_what_waits_in_the_queue_is_refused(as_alice: ApiClient, conversation: AgentInstance) -> None:
    make_turn(conversation, status="running")
    waiting = post(as_alice, conversation, {"message": HELLO["message"] | {"id": "q2"}}).json()
    reply = post(as_alice, conversation, HELLO | {"trigger": "edit-message", "message_id": "q2"})
    assert reply.status_code == 422
    assert "still waiting for its turn" in reply.json()["detail"]
    assert Turn.objects.order_by("-position").first() == Turn.objects.get(pk=waiting["id"])


@pytest.mark.parametrize("target", ["q1", "a1"])
def test_regenerating_answers_the_question_again(as_alice: ApiClient, conversation: AgentInstance, target: str) -> None:
    body = post(as_alice, conversation, {"trigger": "regenerate-message", "message_id": target}).json()
    turn = Turn.objects.get(pk=body["id"])
    assert (turn.trigger, turn.base_id, turn.input_ids) == ("regenerate-message", "q1", [])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"message": {"parts": []}},
        {"trigger": "edit-message", "message_id": "q1"},
        {"trigger": "edit-message", **HELLO},
        {"trigger": "edit-message", "message_id": "a1", **HELLO},
        {"trigger": "regenerate-message"},
        {"trigger": "regenerate-message", "message_id": "nowhere"},
        {"trigger": "continue", **HELLO},
        HELLO | {"parent_id": "nowhere"},
        {"trigger": "edit-message", "message_id": "q1", "message": HELLO["message"] | {"id": "a1"}},
        HELLO | {"request_id": "x" * 129},
        HELLO | {"messages": []},
        {"message": {"role": "system", **HELLO["message"]}},
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_nothing(
    as_alice: ApiClient, conversation: AgentInstance, body: dict[str, Any]
) -> None:
    before = Turn.objects.count()
    reply = post(as_alice, conversation, body)
    assert reply.status_code == 422
    assert reply["Content-Type"] == "application/problem+json"
    assert Turn.objects.count() == before
    assert conversation.session_id is not None
    assert selectors.queued(conversation.session_id) == []


def test_too_many_turns_a_minute_are_refused(as_alice: ApiClient, conversation: AgentInstance, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 3  # one is there already
    assert [post(as_alice, conversation, HELLO).status_code for _ in range(3)] == [202, 202, 429]


def test_turns_are_listed_newest_first_by_pages(as_alice: ApiClient, conversation: AgentInstance) -> None:
    made = [make_turn(conversation).id for _ in range(4)]
    first = as_alice.get(f"/instances/{conversation.id}/turns?limit=3").json()
    assert [t["id"] for t in first["items"]] == made[::-1][:3]
    rest = as_alice.get(f"/instances/{conversation.id}/turns?limit=3&cursor={first['next_cursor']}").json()
    assert [t["position"] for t in rest["items"]] == [2, 1]
    assert rest["next_cursor"] is None


def test_cancelling_twice_is_harmless(as_alice: ApiClient, conversation: AgentInstance) -> None:
    turn_id = post(as_alice, conversation, HELLO).json()["id"]
    assert as_alice.send("POST", f"/turns/{turn_id}/cancel").json() == {"cancelled": True}
    assert as_alice.get(f"/turns/{turn_id}").json()["status"] == "aborted"
    assert as_alice.send("POST", f"/turns/{turn_id}/cancel").json() == {"cancelled": False}


def test_steps_report_small_facts_and_sizes(as_alice: ApiClient, alice: User, conversation: AgentInstance) -> None:
    turn = make_turn(conversation)
    value = {"finish": "stop", "text": "x" * 500, "request": {"messages": []}}
    FiberStep.objects.create(fiber=turn.fiber, step_key="model:0", value=value, attempt=1)
    (step,) = as_alice.get(f"/turns/{turn.id}/steps").json()
    assert (step["key"], step["attempt"]) == ("model:0", 1)
    assert step["summary"] == {"finish": "stop", "text": {"bytes": 502}, "request": {"bytes": 15}}


def test_a_turn_names_the_models_that_answered_and_the_switches(
    as_alice: ApiClient, conversation: AgentInstance
) -> None:
    used = [
        {"name": "acme/one", "calls": 1, "tokens": 12, "cost": "1E-7"},
        {"name": "bolt/two", "calls": 2, "tokens": 30, "cost": "0.50"},
    ]
    switch = {"for": 1, "from": "acme/one", "to": "bolt/two", "code": "overloaded"}
    turn = say(conversation, "q2", "a2", model_report={"models": used, "switches": [switch]})
    wanted = {
        "models": [{**used[0], "cost": "0.0000001"}, {**used[1], "cost": "0.5"}],
        "switches": [{"call": 1, "from_model": "acme/one", "to_model": "bolt/two", "code": "overloaded"}],
    }
    assert as_alice.get(f"/turns/{turn.pk}").json()["model_report"] == wanted
    listed = as_alice.get(f"/instances/{conversation.id}/turns").json()["items"]
    assert [each["model_report"] for each in listed] == [wanted, None]
    messages = as_alice.get(f"/instances/{conversation.id}/messages").json()["items"]
    assert messages[-1]["turn"]["model_report"] == wanted


def test_a_turn_has_its_end_together_with_its_status(as_alice: ApiClient, conversation: AgentInstance) -> None:
    now = timezone.now()
    turn = make_turn(conversation, status="running", finished_at=now)  # stopped; its fiber goes on for a moment
    body = as_alice.send("GET", f"/turns/{turn.id}").json()
    assert (body["status"], body["finished_at"], body["duration_ms"]) == ("running", None, None)
    Fiber.objects.filter(pk=turn.fiber_id).update(status="cancelled", finished_at=now)
    body = as_alice.send("GET", f"/turns/{turn.id}").json()
    assert (body["status"], body["finished_at"] is None) == ("aborted", False)
