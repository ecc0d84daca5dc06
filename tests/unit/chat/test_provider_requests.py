"""The exact request of each step, from records that hold only what is new."""

from typing import Any

from chat.reads.provider_requests import provider_requests
from thinkproject.kernel.jsonvalue import fingerprint


def record(body: dict[str, Any], shared: int, key: str = "messages") -> dict[str, Any]:
    stored = {**body, key: body[key][shared:]}
    return {"request": {"hash": fingerprint(body), "shared_messages": shared, "messages_key": key, "body": stored}}


def test_each_request_is_put_together_exactly() -> None:
    first = {"model": "m", "messages": [{"role": "user", "content": "a"}]}
    second = {"model": "m", "messages": [*first["messages"], {"role": "assistant"}, {"role": "tool"}]}
    third = {"model": "other", "messages": [first["messages"][0], {"role": "user", "content": "changed"}]}
    records = [("model:0", record(first, 0)), ("call:x", {"output": 1}), ("model:1", record(second, 1))]
    found = provider_requests([*records, ("model:2", record(third, 1))])
    assert [request.body for request in found] == [first, second, third]
    assert [request.step_key for request in found] == ["model:0", "model:1", "model:2"]
    assert all(request.is_exact for request in found)


def test_a_hole_is_seen() -> None:
    first = {"model": "m", "messages": [1]}
    second = {"model": "m", "messages": [1, 2, 3]}
    (only,) = provider_requests([("model:1", record(second, 2))])
    assert only.body["messages"] == [3]
    assert not only.is_exact
    assert provider_requests([("model:0", record(first, 0))])[0].is_exact


def test_the_other_wire_has_another_key() -> None:
    body = {"model": "m", "input": [{"role": "user"}]}
    (only,) = provider_requests([("model:0", record(body, 0, "input"))])
    assert only.body == body


def test_odd_records_are_left_out() -> None:
    odd: list[Any] = [None, 1, {}, {"request": None}, {"request": {"body": 1}}, {"sealed": True}]
    assert provider_requests([("k", value) for value in odd]) == []
