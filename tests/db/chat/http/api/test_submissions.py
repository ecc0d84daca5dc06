"""Messages over the API that are added without a turn, or handed in for one."""

from typing import Any

import pytest

from chat.models import AgentInstance, Turn
from chat.turns.admission.stop import cancel_turn
from sessions_app.messages import selectors
from tests.db.chat.conftest import ApiClient, make_turn
from tests.db.chat.turns.agents.gated import Drop

TEXT: dict[str, Any] = {"parts": [{"type": "text", "text": "hello"}]}


def path(instance: AgentInstance, name: str) -> str:
    return f"/instances/{instance.id}/{name}"


def shown(instance: AgentInstance) -> list[str]:
    assert instance.session_id is not None
    return [message.id for message in selectors.window(instance.session_id)]


def test_messages_are_added_without_a_turn(as_alice: ApiClient, conversation: AgentInstance) -> None:
    body = {"messages": [TEXT | {"id": "q2"}, TEXT | {"id": "a2", "role": "assistant"}]}
    for _ in range(2):  # safe to repeat
        reply = as_alice.send("POST", path(conversation, "messages"), body)
        assert (reply.status_code, reply.json()) == (201, {"ids": ["q2", "a2"]})
    assert shown(conversation) == ["q1", "a1", "q2", "a2"]
    assert Turn.objects.count() == 1


def test_messages_are_added_below_a_parent_or_as_a_beginning(as_alice: ApiClient, conversation: AgentInstance) -> None:
    as_alice.send("POST", path(conversation, "messages"), {"messages": [TEXT | {"id": "n"}], "parent_id": "q1"})
    assert shown(conversation) == ["q1", "n"]
    as_alice.send("POST", path(conversation, "messages"), {"messages": [TEXT | {"id": "r"}], "parent_id": None})
    assert shown(conversation) == ["r"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"messages": []}, 422),
        ({"messages": [TEXT | {"role": "system"}]}, 422),
        ({"messages": [TEXT], "parent_id": "nobody"}, 404),
        ({"messages": [{"parts": [{"type": 3}]}]}, 422),
        ({"messages": [{"parts": [{"type": "tool-x", "toolCallId": "c", "state": "approval-responded"}]}]}, 201),
        (
            {
                "messages": [
                    {"role": "assistant", "parts": [{"type": "tool-x", "toolCallId": "c", "state": "input-available"}]}
                ]
            },
            422,
        ),
    ],
)
def test_what_cannot_be_added_is_reported_and_changes_nothing(
    as_alice: ApiClient, conversation: AgentInstance, body: dict[str, Any], status: int
) -> None:
    reply = as_alice.send("POST", path(conversation, "messages"), body)
    assert reply.status_code == status, reply.content
    if status != 201:
        assert shown(conversation) == ["q1", "a1"]


def test_a_submission_is_accepted_once_for_each_key(as_alice: ApiClient, conversation: AgentInstance) -> None:
    body = {"messages": [TEXT, TEXT], "metadata": {"order": 7}}
    headers = {"Idempotency-Key": "hook-1"}
    first = as_alice.send("POST", path(conversation, "submissions"), body, **headers)
    second = as_alice.send("POST", path(conversation, "submissions"), body, **headers)
    assert (first.status_code, second.status_code) == (202, 202)
    made = first.json()
    assert (made["accepted"], made["status"], made["metadata"]) == (True, "pending", {"order": 7})
    assert second.json() == made | {"accepted": False}
    assert shown(conversation) == ["q1", "a1"]  # not before its turn
    assert as_alice.get(f"/submissions/{made['id']}").json()["idempotency_key"] == "hook-1"


def test_submissions_are_listed_and_cancelled(as_alice: ApiClient, conversation: AgentInstance) -> None:
    ids = [
        as_alice.send("POST", path(conversation, "submissions"), {"messages": [TEXT]}).json()["id"] for _ in range(3)
    ]
    listed = as_alice.get(path(conversation, "submissions") + "?limit=2").json()
    assert [one["id"] for one in listed] == ids[:0:-1]
    for cancelled in (True, False):
        reply = as_alice.send("POST", f"/submissions/{ids[0]}/cancel")
        assert reply.json() == {"cancelled": cancelled}
    assert as_alice.get(f"/submissions/{ids[0]}").json()["status"] == "aborted"


def test_a_turn_of_a_client_is_no_submission(as_alice: ApiClient, conversation: AgentInstance) -> None:
    turn = as_alice.send("POST", path(conversation, "turns"), {"message": TEXT}, **{"Idempotency-Key": "k"}).json()
    assert as_alice.get(f"/submissions/{turn['id']}").status_code == 404
    assert as_alice.send("POST", f"/submissions/{turn['id']}/cancel").status_code == 404
    assert as_alice.get(path(conversation, "submissions")).json() == []
    reply = as_alice.send("POST", path(conversation, "submissions"), {"messages": [TEXT]}, **{"Idempotency-Key": "k"})
    assert (reply.status_code, reply.json()["code"]) == (409, "turn_conflict")


def test_a_dropped_message_is_a_conflict(as_alice: ApiClient, alice: Any, make_instance: Any) -> None:
    instance = make_instance(alice, agent=Drop.route_name())
    running = make_turn(instance, status="running")
    before = AgentInstance.objects.values().get()
    reply = as_alice.send("POST", path(instance, "turns"), {"message": TEXT, "request_id": "r2"})
    assert (reply.status_code, reply.json()["code"]) == (409, "turn_dropped")
    assert (Turn.objects.count(), AgentInstance.objects.values().get()) == (1, before)
    cancel_turn(running.pk)
    Turn.objects.filter(pk=running.pk).update(finished_at=running.started_at)
    running.fiber.status = "cancelled"
    running.fiber.save()
    assert as_alice.send("POST", path(instance, "turns"), {"message": TEXT, "request_id": "r2"}).status_code == 202
