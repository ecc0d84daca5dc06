"""The check of messages that come from outside."""

import json
from typing import Any

import pytest

from sessions_app.core.messages.messages import (
    MAX_DEPTH,
    MAX_PARTS,
    is_message_id,
    is_within_depth,
    message_ids,
    parse_message,
)
from sessions_app.errors import MessageInvalid


def hello(**fields: Any) -> dict[str, Any]:
    return {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}], **fields}


def test_a_message_keeps_its_known_keys_alone() -> None:
    assert parse_message(hello(metadata={"a": 1}, createdAt="now", content="old")) == hello(metadata={"a": 1})
    assert "metadata" not in parse_message(hello(metadata=None))


def test_empty_parts_are_accepted() -> None:
    assert parse_message(hello(parts=[]))["parts"] == []


def test_nul_and_lone_surrogates_in_texts_survive() -> None:
    text = "a\0b \ud83d \udc00"
    parsed = parse_message(json.loads(json.dumps(hello(parts=[{"type": "text", "text": text}]))))
    assert parsed["parts"][0]["text"] == text


@pytest.mark.parametrize("bad", [None, "", 3, "x" * 129, "a\0", "\ud800", ["m"]])
def test_bad_ids_are_refused(bad: object) -> None:
    assert not is_message_id(bad)
    with pytest.raises(MessageInvalid, match="id"):
        parse_message(hello(id=bad))


def test_an_id_may_have_128_characters() -> None:
    assert parse_message(hello(id="é" * 128))["id"] == "é" * 128


def test_ids_are_kept_once_and_in_order() -> None:
    assert message_ids(["b", "a", "b", "", 3, None, "x\0"]) == ["b", "a"]


@pytest.mark.parametrize("bad", [None, "tool", "USER", 3, ["user"], {}])
def test_filters_messages_with_invalid_role(bad: object) -> None:
    with pytest.raises(MessageInvalid, match="role"):
        parse_message(hello(role=bad))


@pytest.mark.parametrize("bad", [None, "hi", {"type": "text"}, 3])
def test_parts_must_be_a_list(bad: object) -> None:
    with pytest.raises(MessageInvalid, match="parts"):
        parse_message(hello(parts=bad))


@pytest.mark.parametrize("bad", [None, "x", 3, [], True])
def test_a_message_is_an_object(bad: object) -> None:
    with pytest.raises(MessageInvalid, match="object"):
        parse_message(bad)


@pytest.mark.parametrize("bad", ["x", 3, [1]])
def test_metadata_is_an_object(bad: object) -> None:
    with pytest.raises(MessageInvalid, match="metadata"):
        parse_message(hello(metadata=bad))


def test_a_bad_part_is_named_by_its_index() -> None:
    with pytest.raises(MessageInvalid, match="Part 1") as raised:
        parse_message(hello(parts=[{"type": "text", "text": "ok"}, {"type": "nonsense"}]))
    assert raised.value.data == {"part": 1}


def test_too_many_parts_are_refused() -> None:
    parts = [{"type": "step-start"}] * (MAX_PARTS + 1)
    assert len(parse_message(hello(parts=parts[1:]))["parts"]) == MAX_PARTS
    with pytest.raises(MessageInvalid, match="1000 parts"):
        parse_message(hello(parts=parts))


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def test_deep_nesting_is_refused_at_any_depth() -> None:
    with pytest.raises(MessageInvalid, match="deep"):
        parse_message(hello(metadata={"x": nested(100_000)}))
    with pytest.raises(MessageInvalid, match="deep"):
        parse_message(hello(metadata={"x": nested(MAX_DEPTH - 1)}))
    assert parse_message(hello(metadata={"x": nested(MAX_DEPTH - 2)}))


def test_depth_counts_containers() -> None:
    assert is_within_depth(3, 0)
    assert is_within_depth([], 1)
    assert not is_within_depth([[1]], 1)
    assert is_within_depth({"a": [1]}, 2)


def test_too_many_bytes_are_refused() -> None:
    with pytest.raises(MessageInvalid, match="bytes") as raised:
        parse_message(hello(parts=[{"type": "text", "text": "é" * 100}]), max_bytes=200)
    assert raised.value.data == {"max_bytes": 200}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    with pytest.raises(MessageInvalid):
        parse_message(hello(metadata={"x": value}))
