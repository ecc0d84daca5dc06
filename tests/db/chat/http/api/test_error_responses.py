"""The OpenAPI document names the errors of each operation, and callers with a token may read it."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.access import api_tokens
from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient

HELLO = {"message": {"parts": [{"type": "text", "text": "hi"}]}}
Json = dict[str, Any]


@pytest.fixture
def document(as_alice: ApiClient) -> Json:
    found: Json = as_alice.get("/openapi.json").json()
    return found


def declared(document: Json, method: str, path: str) -> set[str]:
    return set(document["paths"][f"/api/v1{path}"][method]["responses"])


def test_errors_follow_from_the_shape_of_an_operation(document: Json) -> None:
    assert declared(document, "get", "/model") == {"200", "400", "401"}
    assert declared(document, "get", "/agents") == {"200", "400", "401", "422"}
    assert declared(document, "get", "/turns/{turn_id}") == {"200", "400", "401", "403", "404", "422"}
    assert declared(document, "put", "/instances/{instance_id}/leaf") == {
        "200", "400", "401", "403", "404", "413", "422"
    }  # fmt: skip


def test_errors_that_depend_on_state_are_declared_where_they_happen(document: Json) -> None:
    assert {"409", "429"} < declared(document, "post", "/instances/{instance_id}/turns")
    assert {"206", "304", "416"} < declared(document, "get", "/files/{file_id}")
    assert "429" not in declared(document, "get", "/instances")


def test_every_error_is_a_problem_and_a_429_has_a_retry_after(document: Json) -> None:
    components = document["components"]
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    named = components["responses"][response["$ref"].removeprefix("#/components/responses/")]
                    [(kind, content)] = named["content"].items()
                    assert kind == "application/problem+json"
                    assert content["schema"] == {"$ref": "#/components/schemas/Problem"}
    assert set(components["schemas"]["Problem"]["required"]) == {"type", "title", "status", "detail", "code", "data"}
    assert components["responses"]["TooManyRequests"]["headers"]["Retry-After"]["required"] is True


def test_the_document_is_for_callers(alice: User, as_alice: ApiClient, as_nobody: ApiClient) -> None:
    _row, secret = api_tokens.create_token(alice, name="t")
    by_token = as_nobody.get("/openapi.json", Authorization=f"Bearer {secret}")
    assert by_token.status_code == 200
    assert by_token.json() == as_alice.get("/openapi.json").json()
    wrong = as_alice.get("/openapi.json", Authorization="Bearer think_wrong")
    assert (wrong.status_code, wrong["Content-Type"]) == (401, "application/problem+json")
    for path in ("/openapi.json", "/docs"):
        reply = Client().get(f"/api/v1{path}")
        assert (reply.status_code, reply["Location"].startswith("/sign-in/")) == (302, True)
    assert as_alice.get("/docs").status_code == 200


def test_each_limit_has_a_retry_time(
    alice: User, as_alice: ApiClient, make_instance: Callable[..., AgentInstance], settings: Any
) -> None:
    instance = make_instance(alice, "talk")
    settings.THINK_TURNS_PER_MINUTE = 1
    assert as_alice.send("POST", f"/instances/{instance.pk}/turns", HELLO).status_code == 202
    for path, body in (("turns", HELLO), ("submissions", {"messages": [HELLO["message"]]}), ("compact", {})):
        refused = as_alice.send("POST", f"/instances/{instance.pk}/{path}", body)
        assert (refused.status_code, refused.json()["data"]["passes"]) == (429, True), path
        assert refused["Retry-After"] == str(refused.json()["data"]["retry_after_seconds"])
        assert 50 <= int(refused["Retry-After"]) <= 60, "when the first message is a minute old"
    settings.THINK_INSTANCES_PER_USER = 1
    refused = as_alice.send("POST", "/instances", {"agent": "assistant"})
    assert (refused.status_code, refused["Retry-After"]) == (429, "60")
