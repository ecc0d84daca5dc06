"""Conversations over the API: made, listed, renamed, seen, deleted."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.models import AgentInstance, Attachment, StreamSegment, Turn
from chat.turns.state.deletion import BATCH
from sessions_app.models import Message, Session
from tests.db.chat.conftest import ApiClient, make_turn, say
from thinkproject.kernel.object_storage import object_storage

Make = Callable[..., AgentInstance]


def test_a_new_conversation_gets_a_generated_name(as_alice: ApiClient) -> None:
    reply = as_alice.send("POST", "/instances", {"agent": "assistant"})
    assert reply.status_code == 201
    assert reply.json()["name"].startswith("chat_")
    assert AgentInstance.objects.get(pk=reply.json()["id"]).session is not None


def test_the_same_name_opens_the_same_conversation(as_alice: ApiClient) -> None:
    first = as_alice.send("POST", "/instances", {"agent": "assistant", "name": "work", "title": "Work"})
    second = as_alice.send("POST", "/instances", {"agent": "assistant", "name": "work", "title": "Other"})
    assert first.json()["id"] == second.json()["id"]
    assert second.json()["title"] == "Work"


def test_two_users_have_their_own_of_one_name(as_alice: ApiClient, as_bob: ApiClient) -> None:
    hers = as_alice.send("POST", "/instances", {"agent": "assistant", "name": "default"}).json()
    his = as_bob.send("POST", "/instances", {"agent": "assistant", "name": "default"}).json()
    assert hers["id"] != his["id"]
    assert [item["id"] for item in as_bob.get("/instances").json()["items"]] == [his["id"]]


def test_an_unknown_agent_is_not_found(as_alice: ApiClient) -> None:
    reply = as_alice.send("POST", "/instances", {"agent": "nobody"})
    assert (reply.status_code, reply.json()["code"]) == (404, "agent_not_found")
    assert not AgentInstance.objects.exists()


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_list_is_newest_first_and_pages_without_gap_or_double(
    as_alice: ApiClient, alice: User, make_instance: Make, limit: int
) -> None:
    now = timezone.now()
    made = [make_instance(alice, f"n{i}") for i in range(7)]
    for index, row in enumerate(made):
        # Pairs share an instant: the id has to break the tie.
        AgentInstance.objects.filter(pk=row.pk).update(active_at=now - timedelta(seconds=index // 2))
    seen: list[str] = []
    cursor = ""
    while True:
        page = as_alice.get(f"/instances?limit={limit}&cursor={cursor}").json()
        seen += [item["id"] for item in page["items"]]
        assert page["has_more"] == (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        cursor = page["next_cursor"]
    expected = AgentInstance.objects.order_by("-active_at", "id").values_list("id", flat=True)
    assert seen == list(expected)


def test_the_list_filters_by_agent_and_words(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    make_instance(alice, "a", title="Holiday plans")
    make_instance(alice, "b", title="Tax return", agent="retired")
    assert [i["title"] for i in as_alice.get("/instances?search=holiday").json()["items"]] == ["Holiday plans"]
    assert [i["name"] for i in as_alice.get("/instances?agent=retired").json()["items"]] == ["b"]


@pytest.mark.parametrize("cursor", ["x", "W10=", "WyJhIiwgImIiXQ==", "%00", "WzEsMl0="])
def test_a_cursor_that_is_none_is_refused(as_alice: ApiClient, cursor: str) -> None:
    assert as_alice.get(f"/instances?cursor={cursor}").status_code == 422


def test_the_list_states_what_runs_and_what_is_unread(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    idle, busy, done = (make_instance(alice, name) for name in ("idle", "busy", "done"))
    make_turn(busy, status="running")
    make_turn(done)
    flags = {i["id"]: (i["is_running"], i["is_unread"]) for i in as_alice.get("/instances").json()["items"]}
    assert flags == {idle.id: (False, False), busy.id: (True, False), done.id: (False, True)}
    assert as_alice.send("PATCH", f"/instances/{done.id}", {"seen": True}).json()["is_unread"] is False
    make_turn(done)
    assert as_alice.get(f"/instances/{done.id}").json()["is_unread"] is True


def test_the_list_costs_the_same_for_any_length(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    def cost() -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert as_alice.get("/instances?limit=100").status_code == 200
        return len(queries)

    make_turn(make_instance(alice))
    cost()  # a connection that is made anew costs statements of its own
    few = cost()
    for _ in range(20):
        make_turn(make_instance(alice), status="running")
    assert cost() == few == 4  # the session, the user, what is shared with the user, the list


def test_a_title_is_cleaned_and_bounded(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = f"/instances/{conversation.id}"
    assert as_alice.send("PATCH", path, {"title": "  Two\n words "}).json()["title"] == "Two words"
    assert as_alice.send("PATCH", path, {"title": "x" * 101}).status_code == 422


def test_an_unknown_field_is_refused(as_alice: ApiClient, conversation: AgentInstance) -> None:
    reply = as_alice.send("PATCH", f"/instances/{conversation.id}", {"owner": 2})
    assert reply.status_code == 422
    assert reply.json()["data"]["errors"][0]["where"] == ["body", "owner"]


@pytest.mark.parametrize(
    ("method", "path", "body", "where"),
    [
        ("PATCH", "", {"title": 5}, [["body", "title"]]),
        ("PATCH", "", [], [["body"]]),
        ("POST", "/turns", {"message": {"parts": "x"}}, [["body", "message", "parts"]]),
        ("POST", "/turns", {"message": {"parts": [{"type": "text"}, 5]}}, [["body", "message", "parts", "1"]]),
        ("PATCH", "", {"model_choice": {"temperature": "warm"}}, [["body", "model_choice", "temperature"]]),
    ],
)
def test_an_error_names_the_field_that_was_sent(
    as_alice: ApiClient, conversation: AgentInstance, method: str, path: str, body: Any, where: list[list[str]]
) -> None:
    reply = as_alice.send(method, f"/instances/{conversation.id}{path}", body)
    assert reply.status_code == 422
    assert [error["where"] for error in reply.json()["data"]["errors"]] == where


def test_deleting_takes_everything_along_and_nothing_else(
    as_alice: ApiClient, alice: User, conversation: AgentInstance, make_instance: Make
) -> None:
    other = make_instance(alice, "other")
    kept = say(other, "q2", "a2")
    running = make_turn(conversation, status="running")
    for turn in (running, kept):
        StreamSegment.objects.create(stream=turn.id, first_offset=0, last_offset=0, data="{}")
    assert as_alice.send("DELETE", f"/instances/{conversation.id}?forever=true").status_code == 204
    assert list(AgentInstance.objects.values_list("id", flat=True)) == [other.id]
    assert list(Turn.objects.values_list("id", flat=True)) == [kept.id]
    assert list(StreamSegment.objects.values_list("stream", flat=True)) == [kept.id]
    assert set(Message.objects.values_list("message_id", flat=True)) == {"q2", "a2"}
    assert list(Session.objects.values_list("id", flat=True)) == [other.session_id]
    running.fiber.refresh_from_db()
    assert running.fiber.cancel_requested_at is not None


def test_deleting_makes_no_statement_as_long_as_its_history(
    as_alice: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    for _ in range(3 * BATCH):
        make_turn(conversation)
    most: list[int] = []

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        most.append(len(params or ()))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count):
        assert as_alice.send("DELETE", f"/instances/{conversation.id}?forever=true").status_code == 204
    assert not Turn.objects.exists()
    assert max(most) < 2 * BATCH
    assert len(most) < 3 * BATCH / 2  # and none of its own for each turn


def test_deleting_removes_its_files_and_their_bytes(
    as_alice: ApiClient,
    alice: User,
    conversation: AgentInstance,
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    from chat.files import attachments

    row = attachments.store_bytes(alice.pk, b"hello", name="a.txt")
    attachments.claim(alice.pk, [row.id], conversation)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        as_alice.send("DELETE", f"/instances/{conversation.id}?forever=true")
    assert not Attachment.objects.exists()
    assert not object_storage().exists(row.storage_name)


def test_a_user_keeps_a_bounded_number(as_alice: ApiClient, alice: User, make_instance: Make, settings: object) -> None:
    settings.THINK_INSTANCES_PER_USER = 2  # type: ignore[attr-defined]
    make_instance(alice)
    assert as_alice.send("POST", "/instances", {"agent": "assistant"}).status_code == 201
    reply = as_alice.send("POST", "/instances", {"agent": "assistant"})
    assert (reply.status_code, reply.json()["code"]) == (429, "quota_exceeded")


def test_an_instance_whose_class_is_gone_opens_read_only(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    relic = make_instance(alice, "old", agent="retired")
    say(relic, "q", "a")
    alive = make_instance(alice, "new")
    flags = {item["id"]: item["is_read_only"] for item in as_alice.get("/instances").json()["items"]}
    assert flags == {relic.id: True, alive.id: False}
    assert [m["id"] for m in as_alice.get(f"/instances/{relic.id}/messages").json()["items"]] == ["q", "a"]
    body = {"message": {"parts": [{"type": "text", "text": "hi"}]}}
    assert as_alice.send("POST", f"/instances/{relic.id}/turns", body).status_code == 404
