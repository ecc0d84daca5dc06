"""Search over the API: what is found, where it opens, and no one else's."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.models import AgentInstance
from sessions_app.messages.services import append_messages, put_assistant
from sessions_app.models import Message
from sessions_app.testing import text_message
from tests.db.chat.conftest import ApiClient, say

Make = Callable[..., AgentInstance]


def test_a_hit_opens_at_its_message(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    append_messages(conversation.session_id, [text_message("user", "🎉 Where are my Keys?", "q9")])
    append_messages(conversation.session_id, [text_message("assistant", f"answer {n}", f"a{n}") for n in range(20, 40)])
    reply = as_alice.get("/search?q=key").json()
    assert (reply["has_more"], reply["next_cursor"], reply["is_partial"], reply["problem"]) == (False, None, False, "")
    [hit] = reply["items"]
    assert (hit["message_id"], hit["role"], hit["is_on_path"], hit["leaf_id"]) == ("q9", "user", True, "a39")
    assert (hit["instance_id"], hit["agent"], hit["title"]) == (conversation.id, "assistant", "A talk")
    assert (hit["path"], hit["is_current_session"]) == ("assistant/talk", True)
    [[low, high]] = hit["highlights"]
    assert hit["snippet"].encode("utf-16-le")[low * 2 : high * 2].decode("utf-16-le") == "Keys"
    page = as_alice.get(f"/sessions/{hit['session_id']}/messages?around=q9&limit=4").json()
    assert [item["id"] for item in page["items"]] == ["a1", "q9", "a20", "a21"]
    assert (page["has_more"], page["has_newer"], page["leaf_id"], page["queued"]) == (True, True, "a39", [])
    below = as_alice.get(f"/instances/{conversation.id}/messages?after=a21&limit=3").json()
    assert [item["id"] for item in below["items"]] == ["a22", "a23", "a24"]
    end = as_alice.get(f"/instances/{conversation.id}/messages?after=a36").json()
    assert ([item["id"] for item in end["items"]], end["has_newer"]) == (["a37", "a38", "a39"], False)


def test_a_message_beside_the_shown_path_opens_in_its_branch(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    put_assistant(conversation.session_id, text_message("assistant", "another", "a1b"), after="q1")
    page = as_alice.get(f"/instances/{conversation.id}/messages?around=a1").json()
    assert ([item["id"] for item in page["items"]], page["leaf_id"]) == (["q1", "a1"], "a1")
    assert (page["session_id"], page["shown_leaf_id"]) == (
        conversation.session_id,
        "a1b",
    )  # so a page knows it is beside
    assert as_alice.get(f"/instances/{conversation.id}/messages").json()["leaf_id"] == "a1b"


def test_pages_that_do_not_exist_are_refused(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = f"/instances/{conversation.id}/messages"
    assert as_alice.get(f"{path}?around=nothing").status_code == 404
    assert as_alice.get(f"{path}?around=q1&before=q1").json()["code"] == "input_invalid"


@pytest.mark.database
@pytest.mark.django_db(transaction=True)
def test_a_search_is_narrowed_by_who_wrote_and_when(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    for number in range(6):
        role = "assistant" if number % 2 else "user"
        append_messages(conversation.session_id, [text_message(role, f"teapot {number}", f"m{number}")])
        written = datetime(2026, 3, 1 + number, 12, tzinfo=UTC)
        Message.objects.filter(session_id=conversation.session_id, message_id=f"m{number}").update(created_at=written)

    def found(query: str) -> set[str]:
        return {item["message_id"] for item in as_alice.get(f"/search?q=teapot{query}").json()["items"]}

    assert found("") == {f"m{number}" for number in range(6)}
    assert found("&role=user") == {"m0", "m2", "m4"}
    assert found("&role=assistant&since=2026-03-03T00:00:00Z") == {"m3", "m5"}
    assert found("&since=2026-03-02T12:00:00&until=2026-03-04T12:00:00Z") == {"m1", "m2"}
    assert found(f"&role=user&instance={conversation.pk}&until=2026-03-02T00:00:00%2B00:00") == {"m0"}
    assert found("&role=assistant&until=2026-03-01T00:00:00Z") == set()
    page = as_alice.get("/search?q=teapot&role=user&limit=2").json()
    rest = as_alice.get(f"/search?q=teapot&role=user&limit=2&cursor={page['next_cursor']}").json()
    assert len({item["message_id"] for item in [*page["items"], *rest["items"]]}) == 3
    assert as_alice.get("/search?q=teapot&role=system").status_code == 422
    assert as_alice.get("/search?q=teapot&since=yesterday").status_code == 422


def test_a_search_can_be_narrowed(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    first, second = make_instance(alice, "one"), make_instance(alice, "two", agent="echo")
    say(first, "q1", "a1")
    say(second, "q2", "a2")

    def ids(query: str) -> set[str]:
        return {item["message_id"] for item in as_alice.get(f"/search?q=text&{query}").json()["items"]}

    assert ids("") == {"q1", "a1", "q2", "a2"}
    assert ids(f"instance={first.id}") == ids("agent=assistant") == {"q1", "a1"}
    assert ids(f"session={second.session_id}") == ids(f"session={second.session_id}&agent=echo") == {"q2", "a2"}
    assert ids(f"session={second.session_id}&instance={first.id}") == ids("agent=nobody") == set()
    page = as_alice.get("/search?q=text&limit=3").json()
    rest = as_alice.get(f"/search?q=text&limit=3&cursor={page['next_cursor']}").json()
    assert page["has_more"]
    assert (len(page["items"]), len(rest["items"]), rest["has_more"]) == (3, 1, False)


def test_nothing_of_anybody_else_is_found(as_bob: ApiClient, conversation: AgentInstance) -> None:
    assert as_bob.get("/search?q=text").json()["items"] == []
    assert as_bob.get(f"/search?q=text&instance={conversation.id}").status_code == 404
    assert as_bob.get(f"/search?q=text&session={conversation.session_id}").status_code == 404


@pytest.mark.parametrize("query", ["", "%22", "OR", "-text", "x" * 1_001])
def test_a_malformed_query_is_no_error(as_alice: ApiClient, conversation: AgentInstance, query: str) -> None:
    reply = as_alice.get(f"/search?q={query}")
    assert (reply.status_code, reply.json()["items"]) == (200, [])
    assert reply.json()["problem"]


def test_a_cursor_that_is_none_is_refused(as_alice: ApiClient) -> None:
    assert as_alice.get("/search?q=text&cursor=x").json()["code"] == "cursor_invalid"


def test_a_search_costs_the_same_queries_whatever_it_finds(
    as_alice: ApiClient, alice: User, make_instance: Make
) -> None:
    counts = []
    for number in range(3):
        say(make_instance(alice, f"talk {number}"), f"q{number}", f"a{number}")
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get("/search?q=text").json()["items"]
        counts.append(len(queries))
    assert len(set(counts)) == 1
