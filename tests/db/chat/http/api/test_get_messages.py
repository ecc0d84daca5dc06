"""The transcript that published clients load before they open a socket."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from chat.access import api_tokens
from chat.http.usechat.messages import get_messages
from chat.models import AgentInstance
from sessions_app.messages.services import queue_messages
from tests.db.chat.conftest import ApiClient, say, text_message

PATH = "/agents/assistant/talk/get-messages"


def test_the_path_comes_root_first_and_the_queue_last(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert conversation.session_id is not None
    queue_messages(conversation.session_id, [text_message("q2", "user")])
    reply = as_alice.http.get(PATH)
    assert reply["Content-Type"] == "application/json"
    assert [message["id"] for message in reply.json()] == ["q1", "a1", "q2"]
    assert reply.json()[0]["parts"] == [{"type": "text", "text": "text of q1"}]
    assert reply.json()[2]["metadata"]["queued"] is True


def test_an_unknown_instance_is_empty_and_stays_unmade(as_alice: ApiClient) -> None:
    reply = as_alice.http.get("/agents/assistant/unborn/get-messages")
    assert (reply.status_code, reply.json()) == (200, [])
    assert not AgentInstance.objects.exists()


@pytest.mark.parametrize(
    "path", ["/agents/nobody/x/get-messages", "/agents/Assistant/x/get-messages", "/agents/assistant/get-messages"]
)
def test_an_unknown_agent_is_not_found(as_alice: ApiClient, path: str) -> None:
    assert as_alice.http.get(path).status_code == 404


def test_it_answers_below_extra_path_and_for_other_methods(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert len(as_alice.http.get("/agents/assistant/talk/settings/get-messages").json()) == 2
    assert len(as_alice.http.post(PATH).json()) == 2
    assert as_alice.http.options(PATH).status_code == 204
    assert as_alice.http.delete(PATH).status_code == 405
    assert as_alice.http.get("/agents/assistant/talk/sub/child/x/get-messages").status_code == 404


def test_a_token_in_the_query_will_do(alice: User, conversation: AgentInstance) -> None:
    _row, secret = api_tokens.create_token(alice, name="t")
    assert len(Client().get(f"{PATH}?token={secret}").json()) == 2
    assert len(Client().get(PATH, headers={"Authorization": f"Bearer {secret}"}).json()) == 2
    assert Client().get(f"{PATH}?token=wrong").status_code == 401
    assert Client().get(PATH).status_code == 401


def test_a_wrong_token_is_not_saved_by_a_cookie(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert as_alice.http.get(f"{PATH}?token=wrong").status_code == 401


def test_a_listed_origin_may_read_it(as_alice: ApiClient, conversation: AgentInstance, settings: Any) -> None:
    settings.CORS_ALLOWED_ORIGINS, settings.CORS_URLS_REGEX = ["http://localhost:5173"], "^/"
    reply = as_alice.http.get(PATH, headers={"Origin": "http://localhost:5173"})
    assert reply["Access-Control-Allow-Origin"] == "http://localhost:5173"
    assert reply["Access-Control-Allow-Credentials"] == "true"
    other = as_alice.http.get(PATH, headers={"Origin": "http://localhost:5174"})
    assert "Access-Control-Allow-Origin" not in other


def test_a_slash_in_a_name_is_not_a_segment(alice: User, make_instance: Callable[..., AgentInstance]) -> None:
    say(make_instance(alice, "a/b"), "slashed", "answer")
    say(make_instance(alice, "a"), "plain", "answer")
    raw = "/agents/assistant/a%2Fb/get-messages"
    request = RequestFactory().get(raw)
    request.user = alice
    request.session = SessionStore()
    request.scope = {"raw_path": raw.encode()}  # type: ignore[attr-defined]  # as an ASGI server gives it
    assert json.loads(get_messages(request).content)[0]["id"] == "slashed"


@pytest.mark.parametrize("length", [1, 40])
def test_it_costs_three_statements_with_a_token_and_one_less_when_the_list_is_kept(
    alice: User, conversation: AgentInstance, length: int
) -> None:
    for number in range(length):
        say(conversation, f"q-{number}", f"a-{number}")
    _row, secret = api_tokens.create_token(alice, name="t")
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    client.get("/agents/assistant/unborn/get-messages")  # which notes that the token is used
    counts, bodies = [], []
    for _ in range(2):
        with CaptureQueriesContext(connection) as captured:
            bodies.append(client.get(PATH).content)
        counts.append(len(captured))
    assert counts == [3, 2]
    assert bodies[0] == bodies[1]
    assert len(json.loads(bodies[0])) == 2 * length + 2


def test_it_costs_four_statements_with_a_cookie(as_alice: ApiClient, conversation: AgentInstance) -> None:
    with CaptureQueriesContext(connection) as captured:
        as_alice.http.get(PATH)
    tables = [query["sql"].split("FROM")[1].split()[0].strip('"') for query in captured.captured_queries[:2]]
    assert tables == ["django_session", "auth_user"]
    assert len(captured) == 4


def test_what_is_kept_is_not_older_than_the_conversation(as_alice: ApiClient, conversation: AgentInstance) -> None:
    for number in range(3):
        say(conversation, f"q-{number}", f"a-{number}")
        assert [message["id"] for message in as_alice.http.get(PATH).json()][-1] == f"a-{number}"
