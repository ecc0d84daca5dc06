"""Transcripts over the API: pages, siblings, turns, the queue, what runs, what failed."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.core.durable_names import COMPACT_FIBER
from chat.models import AgentInstance
from chat.turns.state.compaction_queue import request_compaction, start_compaction
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.services import put_assistant, queue_messages
from sessions_app.models import CompactionTrigger
from tests.db.chat.conftest import ApiClient, make_turn, say, text_message
from tools_app.calls.services import begin_call, settle_call
from tools_app.core.tool_calls import ToolCall, ToolResult

Make = Callable[..., AgentInstance]


def test_a_page_is_root_first_and_older_ones_join_it(as_alice: ApiClient, conversation: AgentInstance) -> None:
    for index in range(2, 6):
        say(conversation, f"q{index}", f"a{index}")
    newest = as_alice.get(f"/instances/{conversation.id}/messages?limit=4").json()
    assert [m["id"] for m in newest["items"]] == ["q4", "a4", "q5", "a5"]
    assert (newest["has_more"], newest["leaf_id"]) == (True, "a5")
    older = as_alice.get(f"/instances/{conversation.id}/messages?before=q4&limit=100").json()
    assert [m["id"] for m in older["items"]] == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert older["has_more"] is False


def test_each_message_knows_its_place_and_its_turn(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    again = make_turn(conversation, assistant_id="a1b", input_tokens=7, output_tokens=5, model_name="openai/x")
    put_assistant(conversation.session_id, text_message("a1b", "assistant"), after="q1", turn_id=again.id)
    question, answer = as_alice.get(f"/instances/{conversation.id}/messages").json()["items"]
    assert (question["parent_id"], question["sibling_ids"], question["turn"]) == (None, ["q1"], None)
    assert (answer["id"], answer["parent_id"]) == ("a1b", "q1")
    assert (answer["sibling_ids"], answer["position"]) == (["a1", "a1b"], 1)
    turn = answer["turn"]
    assert (turn["id"], turn["status"], turn["model"]) == (again.id, "completed", "openai/x")
    assert (turn["input_tokens"], turn["output_tokens"]) == (7, 5)
    assert turn["duration_ms"] >= 0


def test_the_turn_of_an_answer_has_its_cost_its_error_and_its_times(
    as_alice: ApiClient, conversation: AgentInstance
) -> None:
    facts = {"cost": Decimal("0.0123"), "error_text": "It broke.", "error_code": "overloaded"}
    failed = make_turn(conversation, status="failed", assistant_id="a1b", **facts)
    put_assistant(str(conversation.session_id), text_message("a1b", "assistant"), after="q1", turn_id=failed.id)
    turn = as_alice.get(f"/instances/{conversation.id}/messages").json()["items"][-1]["turn"]
    assert (turn["status"], turn["cost"]) == ("error", "0.0123")
    assert turn["error"] == {"code": "overloaded", "message": "It broke."}
    for name in ("accepted_at", "started_at", "finished_at"):
        assert abs(datetime.fromisoformat(turn[name]) - getattr(failed, name)) < timedelta(milliseconds=1)


def test_an_answer_reports_how_long_its_tool_calls_took(as_alice: ApiClient, conversation: AgentInstance) -> None:
    turn = say(conversation, "q2", "a2")
    calls = [{"type": "tool-clock", "toolCallId": name, "state": "output-available"} for name in ("c1", "c2")]
    message = {**text_message("a2", "assistant"), "parts": calls}
    put_assistant(conversation.session_id, message, after="q2", turn_id=turn.id)  # type: ignore[arg-type]
    for name in ("c1", "c2"):
        begin_call(ToolCall(call_id=name, tool_name="clock", input={}), turn_id=turn.id, owner_id=None)
    settle_call("c1", turn_id=turn.id, result=ToolResult(output="noon", duration_ms=1234))
    items = as_alice.get(f"/instances/{conversation.id}/messages").json()["items"]
    assert [item["tool_ms"] for item in items] == [{}, {}, {}, {"c1": 1234}]


def test_another_sibling_can_be_shown(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    put_assistant(conversation.session_id, text_message("a1b", "assistant"), after="q1")
    reply = as_alice.send("PUT", f"/instances/{conversation.id}/leaf", {"message_id": "a1"})
    assert reply.json() == {"leaf_id": "a1"}
    shown = as_alice.get(f"/instances/{conversation.id}/messages").json()
    assert [m["id"] for m in shown["items"]] == ["q1", "a1"]


def test_a_leaf_of_another_conversation_is_refused(
    as_alice: ApiClient, alice: User, conversation: AgentInstance, make_instance: Make
) -> None:
    other = make_instance(alice)
    say(other, "foreign", "answer")
    reply = as_alice.send("PUT", f"/instances/{conversation.id}/leaf", {"message_id": "foreign"})
    assert reply.status_code == 404


def test_queued_messages_follow_marked_and_only_on_the_newest_page(
    as_alice: ApiClient, conversation: AgentInstance
) -> None:
    assert conversation.session_id is not None
    queue_messages(conversation.session_id, [text_message("q2", "user")])
    page = as_alice.get(f"/instances/{conversation.id}/messages").json()
    assert [(m["id"], m["queued"]) for m in page["queued"]] == [("q2", True)]
    assert as_alice.get(f"/instances/{conversation.id}/messages?before=a1").json()["queued"] == []


def test_the_oldest_live_turn_is_the_running_one(as_alice: ApiClient, conversation: AgentInstance) -> None:
    running = make_turn(conversation, status="running")
    make_turn(conversation, status="pending")
    view = as_alice.get(f"/instances/{conversation.id}/messages").json()["running"]
    assert (view["id"], view["turn_id"], view["request_id"]) == (running.id, running.id, running.request_id)
    assert (view["status"], "next_offset" in view) == ("running", False)


def test_a_page_reports_a_summary_in_progress(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = f"/instances/{conversation.id}/messages"
    found = [as_alice.get(path).json()["compacting"]]
    request_compaction(conversation)
    found.append(as_alice.get(path).json()["compacting"])
    Fiber.objects.filter(name=COMPACT_FIBER).update(status=FiberStatus.RUNNING)
    found.append(as_alice.get(path).json()["compacting"])
    assert found == ["", "waiting", "running"]


def test_a_page_omits_a_summary_of_another_history(as_alice: ApiClient, conversation: AgentInstance) -> None:
    start_compaction(conversation.id, "ses_another", CompactionTrigger.MANUAL, conversation.owner_id)
    assert as_alice.get(f"/instances/{conversation.id}/messages").json()["compacting"] == ""


def test_only_the_last_turn_counts_as_failed(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = f"/instances/{conversation.id}/messages"
    make_turn(conversation, status="failed", error_text="It broke.", error_code="overloaded")
    assert as_alice.get(path).json()["failed"]["error"] == {"code": "overloaded", "message": "It broke."}
    make_turn(conversation)
    assert as_alice.get(path).json()["failed"] is None


def test_an_empty_conversation_has_an_empty_page(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    instance = make_instance(alice)
    page = as_alice.get(f"/instances/{instance.id}/messages").json()
    assert page == {
        "session_id": instance.session_id,
        "version": 0,
        "items": [],
        "queued": [],
        "has_more": False,
        "has_newer": False,
        "leaf_id": None,
        "shown_leaf_id": None,
        "running": None,
        "failed": None,
        "compacting": "",
    }


def test_opening_costs_the_same_for_any_length(as_alice: ApiClient, conversation: AgentInstance) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(f"/instances/{conversation.id}/messages?limit=50").status_code == 200
        return len(queries)

    few = cost()
    for index in range(30):
        say(conversation, f"more{index}", f"answer{index}")
    assert cost() == few
    assert few <= 10


def test_lone_surrogates_and_nul_come_back_as_they_went_in(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    odd: Message = {"id": "odd", "role": "assistant", "parts": [{"type": "text", "text": "a\x00b\ud800c"}]}
    put_assistant(conversation.session_id, odd, after="a1")
    last = as_alice.get(f"/instances/{conversation.id}/messages").json()["items"][-1]
    assert last["parts"][0]["text"].startswith("a")


def test_clearing_keeps_the_conversation_and_stops_what_runs(as_alice: ApiClient, conversation: AgentInstance) -> None:
    running = make_turn(conversation, status="running")
    assert as_alice.send("POST", f"/instances/{conversation.id}/clear").status_code == 204
    assert as_alice.get(f"/instances/{conversation.id}/messages").json()["items"] == []
    running.fiber.refresh_from_db()
    assert running.fiber.cancel_requested_at is not None
    generation = conversation.generation
    conversation.refresh_from_db()
    assert conversation.generation == generation + 1


def test_sessions_of_a_conversation_are_listed_and_read(as_alice: ApiClient, conversation: AgentInstance) -> None:
    (session,) = as_alice.get(f"/instances/{conversation.id}/sessions").json()
    assert (session["id"], session["is_current"]) == (conversation.session_id, True)
    page = as_alice.get(f"/sessions/{session['id']}/messages").json()
    assert [m["id"] for m in page["items"]] == ["q1", "a1"]
