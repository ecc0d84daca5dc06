"""An answer of several turns has one line of sums; a running turn says what it does."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.utils import timezone

from chat.models import AgentInstance, Turn
from fibers.models import Fiber, FiberStep
from sessions_app.messages.services import put_assistant
from tests.db.chat.conftest import ApiClient, make_turn, text_message
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.services import begin_call
from tools_app.core.tool_calls import ToolCall
from tools_app.models import ToolCallRecord


def continued(instance: AgentInstance, parent: Turn, message_id: str, **fields: Any) -> Turn:
    """Go on from an answer in another message."""
    assert instance.session_id is not None
    made = make_turn(instance, trigger="continue", parent=parent, assistant_id=message_id, **fields)
    put_assistant(
        instance.session_id, text_message(message_id, "assistant"), after=parent.assistant_id, turn_id=made.id
    )
    return made


def messages(client: ApiClient, instance: AgentInstance, query: str = "") -> dict[str, JSONObject]:
    return {item["id"]: item for item in client.get(f"/instances/{instance.id}/messages{query}").json()["items"]}


def test_the_last_message_has_the_sums(as_alice: ApiClient, conversation: AgentInstance) -> None:
    first = Turn.objects.get(assistant_id="a1")
    Turn.objects.filter(pk=first.pk).update(input_tokens=10, output_tokens=1, cost=Decimal("0.1"), step_count=1)
    second = continued(conversation, first, "a2", input_tokens=20, output_tokens=2, cost=Decimal("0.2"), step_count=2)
    third = continued(conversation, second, "a3", input_tokens=30, cached_tokens=5, reasoning_tokens=3, step_count=3)
    found = messages(as_alice, conversation)
    assert [found[name]["answer"] for name in ("q1", "a1", "a2")] == [None, None, None]
    assert [found[name]["turn"]["parent_id"] for name in ("a1", "a2", "a3")] == [None, first.pk, second.pk]
    answer = found["a3"]["answer"]
    durations = [found[name]["turn"]["duration_ms"] for name in ("a1", "a2", "a3")]
    assert answer == {
        "turn_ids": [first.pk, second.pk, third.pk],
        "input_tokens": 60,
        "output_tokens": 3,
        "reasoning_tokens": 3,
        "cached_tokens": 5,
        "cost": "0.3",
        "step_count": 6,
        "duration_ms": sum(durations),
    }


def test_an_answer_of_one_turn_needs_no_sums(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert messages(as_alice, conversation)["a1"]["answer"] is None


def test_what_is_before_the_page_is_not_counted(as_alice: ApiClient, conversation: AgentInstance) -> None:
    first = Turn.objects.get(assistant_id="a1")
    continued(conversation, continued(conversation, first, "a2", step_count=2), "a3", step_count=3)
    assert messages(as_alice, conversation, "?limit=2")["a3"]["answer"]["step_count"] == 5
    assert messages(as_alice, conversation, "?limit=1")["a3"]["answer"] is None


def activity(client: ApiClient, instance: AgentInstance) -> JSONObject | None:
    found: JSONObject | None = client.get(f"/instances/{instance.id}/messages").json()["running"]["activity"]
    return found


def since(found: JSONObject | None) -> str:
    assert found is not None
    return str(found["since"])[:19]


def test_a_running_turn_says_what_it_does(as_alice: ApiClient, alice: Any, conversation: AgentInstance) -> None:
    turn = make_turn(conversation, status="pending", started_at=None)
    assert activity(as_alice, conversation) is None
    begun = timezone.now() - timedelta(minutes=5)
    Turn.objects.filter(pk=turn.pk).update(started_at=begun)
    Fiber.objects.filter(pk=turn.fiber_id).update(status="running")
    found = activity(as_alice, conversation)
    assert found == {"kind": "model", "name": None, "since": found and found["since"]}
    assert since(found) == begun.isoformat()[:19]
    begin_call(ToolCall(call_id="c", tool_name="pay", input={}), turn_id=turn.pk, owner_id=alice.pk)
    found = activity(as_alice, conversation)
    assert found is not None
    assert (found["kind"], found["name"]) == ("tool", "pay")
    assert since(found) > begun.isoformat()[:19]
    ToolCallRecord.objects.update(status="succeeded")
    FiberStep.objects.create(fiber_id=turn.fiber_id, step_key="call:c", value={}, attempt=1)
    found = activity(as_alice, conversation)
    assert found is not None
    assert found["kind"] == "model"
    assert since(found) > begun.isoformat()[:19]


def test_an_approved_call_runs_in_the_turn_that_goes_on(
    as_alice: ApiClient, alice: Any, conversation: AgentInstance
) -> None:
    first = Turn.objects.get(assistant_id="a1")
    begin_call(ToolCall(call_id="c", tool_name="pay", input={}), turn_id=first.pk, owner_id=alice.pk)
    begun = timezone.now() - timedelta(minutes=5)
    make_turn(conversation, status="running", parent=first, started_at=begun)
    found = activity(as_alice, conversation)
    assert found is not None
    assert (found["kind"], found["name"], since(found)) == ("tool", "pay", begun.isoformat()[:19])


def test_a_wait_and_a_retry_are_activities(as_alice: ApiClient, conversation: AgentInstance) -> None:
    now = timezone.now()
    noted = {"kind": "retry", "code": "overloaded", "attempt": 2, "attempts": 3}
    noted |= {"retryAt": (now + timedelta(minutes=1)).isoformat(), "since": now.isoformat()}
    turn = make_turn(conversation, status="running", retry=noted)
    found = activity(as_alice, conversation)
    assert found is not None
    assert (found["kind"], found["name"], since(found)) == ("retry", None, now.isoformat()[:19])
    wait = {"kind": "manager", "label": "The manager", "call_id": "c", "since": now.isoformat(), "until": None}
    Fiber.objects.filter(pk=turn.fiber_id).update(status="parked", waits=[wait])
    found = activity(as_alice, conversation)
    assert found is not None
    assert (found["kind"], found["name"], since(found)) == ("waiting", "The manager", now.isoformat()[:19])
