"""The form in which the API refuses."""

from typing import Any


def assert_problem(reply: Any, status: int, code: str) -> None:
    assert reply.status_code == status, reply.content
    assert reply["Content-Type"] == "application/problem+json"
    body = reply.json()
    assert set(body) == {"type", "title", "status", "detail", "code", "data"}
    assert (body["status"], body["code"], body["type"]) == (status, code, f"urn:think:error:{code}")
