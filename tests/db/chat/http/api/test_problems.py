"""Every error is a problem document; odd input crashes nothing."""

import json
from typing import Any

import pytest

from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient
from tests.db.chat.http.api.problems import assert_problem
from thinkproject.api import api


def test_each_kind_of_error_is_a_problem(as_alice: ApiClient, as_nobody: ApiClient) -> None:
    assert_problem(as_nobody.get("/instances"), 401, "unauthenticated")
    assert_problem(as_alice.get("/instances/ins_nowhere"), 404, "instance_not_found")
    assert_problem(as_alice.get("/turns/trn_nowhere"), 404, "turn_not_found")
    assert_problem(as_alice.get("/files/att_nowhere"), 404, "attachment_not_found")
    assert_problem(as_alice.get("/nowhere"), 404, "not_found")
    assert_problem(as_alice.get("/instances?limit=0"), 422, "invalid")
    assert_problem(as_alice.send("POST", "/instances", {}), 422, "invalid")
    assert_problem(as_alice.send("POST", "/files"), 422, "invalid")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff",
        b"NaN",
        b'{"agent": NaN}',
        b'{"agent": Infinity}',
        b"[" * 100_000,
        b'{"agent":"assistant","title":' + b"[" * 200 + b"]" * 200 + b"}",
    ],
)
def test_what_is_no_json_is_a_bad_request(as_alice: ApiClient, body: bytes) -> None:
    reply = as_alice.http.generic("POST", "/api/v1/instances", body, content_type="application/json")
    assert_problem(reply, 400, "bad_request")


@pytest.mark.parametrize(
    "body",
    [
        [],
        None,
        1,
        {"agent": 1},
        {"agent": "assistant", "name": ""},
        {"agent": "assistant", "name": "a\x00b"},
        {"agent": "assistant", "name": "x" * 256},
        {"agent": "assistant", "title": "\ud800"},
        {"agent": "assistant", "title": "a\x00b"},
        {"agent": "\x00"},
        {"agent": "assistant", "title": {"$ne": 1}},
    ],
)
def test_odd_values_are_refused(as_alice: ApiClient, body: object) -> None:
    reply = as_alice.send("POST", "/instances", body)
    assert 400 <= reply.status_code < 500
    assert not AgentInstance.objects.exists()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "text": "a\x00b\ud800"},
        {"type": "text", "text": 10**30},
        {"type": "unknown", "deep": [[[[1]]]]},
        {"type": 7},
        {"no": "type"},
        {"type": "data-x", "data": 1e308},
    ],
)
def test_odd_parts_never_crash_and_never_break_the_page(
    as_alice: ApiClient, conversation: AgentInstance, part: dict[str, Any]
) -> None:
    body = {"message": {"parts": [part]}}
    reply = as_alice.send("POST", f"/instances/{conversation.id}/turns", body)
    assert reply.status_code in {202, 422}
    page = as_alice.get(f"/instances/{conversation.id}/messages")
    assert page.status_code == 200
    json.loads(page.content)


@pytest.mark.parametrize("odd", ["%00", "a%00b", "%F0%9F%98%80", "..%2f..%2fetc", "a" * 300, "'; DROP TABLE--"])
def test_odd_ids_are_not_found(as_alice: ApiClient, odd: str) -> None:
    for path in ("/instances/", "/turns/", "/files/", "/sessions/"):
        tail = "/messages" if path == "/sessions/" else ""
        assert as_alice.get(f"{path}{odd}{tail}").status_code == 404
    assert as_alice.get(f"/instances?search={odd}&agent={odd}").status_code in {200, 422}


@pytest.mark.parametrize("odd", ["a\x00b", "a\ud800b"])
def test_odd_ids_in_bodies_are_refused(as_alice: ApiClient, conversation: AgentInstance, odd: str) -> None:
    path = f"/instances/{conversation.id}"
    hello = {"message": {"parts": [{"type": "text", "text": "hi"}]}}
    assert as_alice.send("PUT", f"{path}/leaf", {"message_id": odd}).status_code == 422
    for field in ("request_id", "parent_id", "message_id"):
        assert as_alice.send("POST", f"{path}/turns", hello | {field: odd}).status_code == 422
    inner = {"message": {"id": odd, **hello["message"]}}
    assert as_alice.send("POST", f"{path}/turns", inner).status_code == 422


def test_a_body_beyond_the_limit_is_too_large(as_alice: ApiClient, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    reply = as_alice.send("POST", "/instances", {"agent": "x" * 200})
    assert_problem(reply, 413, "too_large")


def test_every_operation_is_documented() -> None:
    schema = api.get_openapi_schema(path_prefix="/api/v1/")
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            where = f"{method} {path}"
            assert operation.get("summary"), where
            assert operation.get("description"), where
            assert operation.get("tags"), where
            assert operation.get("security"), where
            assert "_" in operation["operationId"], where
