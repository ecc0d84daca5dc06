"""Chunks: what the constructors make, what counts as shown, what joins, what is refused."""

import pytest

from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.errors import ChunkInvalid
from thinkproject.kernel.jsonvalue import JSONValue

EXAMPLES: list[Chunk] = [
    chunks.start("m1", metadata={"a": 1}),
    chunks.start(),
    chunks.start_step(),
    chunks.text_start("t"),
    chunks.text_delta("t", "hi", provider_metadata={"p": {"k": 1}}),
    chunks.text_end("t"),
    chunks.reasoning_start("r"),
    chunks.reasoning_delta("r", "hm"),
    chunks.reasoning_end("r", provider_metadata={"p": {"signature": "s"}}),
    chunks.tool_input_start("c1", "add", title="Add"),
    chunks.tool_input_delta("c1", '{"a"'),
    chunks.tool_input_available("c1", "add", {"a": 1}),
    chunks.tool_input_error("c2", "add", '{"a"', "cut", dynamic=True),
    chunks.tool_output_available("c1", None, preliminary=True),
    chunks.tool_output_error("c1", "boom"),
    chunks.tool_output_denied("c1"),
    chunks.tool_approval_request("p1", "c1"),
    chunks.file("/f", "image/png"),
    {"type": "source-url", "sourceId": "s", "url": "https://example.org", "title": "E"},
    {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "N", "filename": "n.txt"},
    chunks.data("weather", {"c": 20}, part_id="w", transient=True),
    chunks.message_metadata({"k": "v"}),
    chunks.finish_step(),
    chunks.finish("stop", metadata={"tokens": 3}),
    chunks.error("no"),
    chunks.abort("stopped"),
]
VERSION_7: list[Chunk] = [
    {"type": "reset-step"},
    {"type": "reasoning-file", "url": "/f", "mediaType": "image/png"},
    {"type": "custom", "kind": "acme.thing"},
    {"type": "steering-message", "id": "s", "parts": []},
    {"type": "tool-approval-response", "approvalId": "p1", "approved": True},
    {"type": "finish", "finishReason": "interrupted"},
]


@pytest.mark.parametrize("chunk", EXAMPLES + VERSION_7, ids=lambda chunk: chunk["type"])
def test_chunks_of_both_versions_are_valid(chunk: Chunk) -> None:
    assert chunks.validate({**chunk, "extra": 1}) == {**chunk, "extra": 1}


def test_absent_options_leave_no_key() -> None:
    assert chunks.start() == {"type": "start"}
    assert chunks.tool_output_available("c", None) == {
        "type": "tool-output-available",
        "toolCallId": "c",
        "output": None,
    }
    assert chunks.data("x", 1) == {"type": "data-x", "data": 1}


@pytest.mark.parametrize(
    ("chunk", "complaint"),
    [
        (None, "an object with a type"),
        ({"type": 3}, "an object with a type"),
        ({"type": "text-deltas", "id": "t"}, "no chunk 'text-deltas'"),
        ({"type": "data-", "data": 1}, "no chunk 'data-'"),
        ({"type": "data-x"}, "'data'"),
        ({"type": "text-delta", "id": "t"}, "'delta'"),
        ({"type": "text-delta", "id": "t", "delta": 3}, "'delta' a text"),
        ({"type": "tool-input-available", "toolCallId": "c", "toolName": "n"}, "'input'"),
        ({"type": "tool-approval-response", "approvalId": "p", "approved": 1}, "'approved' true or false"),
        ({"type": "steering-message", "id": "s", "parts": {}}, "'parts' a list"),
        ({"type": "text-start", "id": "t", "providerMetadata": []}, "'providerMetadata' that is not an object"),
        ({"type": "start", "messageId": None}, "'messageId'"),
        ({"type": "data-x", "data": 1, "id": 4}, "'id'"),
        ({"type": "finish", "finishReason": "tired"}, "'tired'"),
    ],
)
def test_other_values_are_refused_by_name(chunk: JSONValue, complaint: str) -> None:
    with pytest.raises(ChunkInvalid, match=complaint):
        chunks.validate(chunk)


@pytest.mark.parametrize(
    ("chunk", "is_shown"),
    [
        (chunks.start("m"), False),
        (chunks.start_step(), False),
        (chunks.text_start("t"), False),
        (chunks.text_delta("t", ""), False),
        (chunks.text_delta("t", "a"), True),
        (chunks.reasoning_start("r"), False),
        (chunks.reasoning_delta("r", ""), False),
        (chunks.reasoning_delta("r", "a"), True),
        (chunks.tool_input_start("c", "n"), True),
        (chunks.tool_input_delta("c", "{"), True),
        (chunks.tool_input_available("c", "n", {}), True),
        (chunks.tool_output_available("c", 1), False),
        (chunks.file("/f", "image/png"), True),
        (chunks.data("x", 1), False),
        (chunks.finish_step(), False),
    ],
    ids=str,
)
def test_content_of_the_model_counts_as_shown(chunk: Chunk, is_shown: bool) -> None:
    assert chunks.is_shown(chunk) is is_shown


@pytest.mark.parametrize(
    ("chunk", "is_boundary"),
    [
        (chunks.text_end("t"), True),
        (chunks.tool_input_available("c", "n", {}), True),
        (chunks.tool_output_available("c", 1), True),
        (chunks.tool_approval_request("p", "c"), True),
        (chunks.finish_step(), True),
        (chunks.text_delta("t", "a"), False),
        (chunks.start_step(), False),
    ],
    ids=str,
)
def test_ends_of_parts_and_steps_are_boundaries(chunk: Chunk, is_boundary: bool) -> None:
    assert chunks.is_boundary(chunk) is is_boundary


def test_adjacent_deltas_of_one_part_join() -> None:
    assert chunks.merge(chunks.text_delta("t", "a"), chunks.text_delta("t", "b")) == chunks.text_delta("t", "ab")
    assert chunks.merge(chunks.reasoning_delta("r", "a"), chunks.reasoning_delta("r", "")) == (
        chunks.reasoning_delta("r", "a")
    )
    assert chunks.merge(chunks.tool_input_delta("c", "{"), chunks.tool_input_delta("c", "}")) == (
        chunks.tool_input_delta("c", "{}")
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (chunks.text_delta("t", "a"), chunks.text_delta("u", "b")),
        (chunks.text_delta("t", "a"), chunks.reasoning_delta("t", "b")),
        (chunks.text_start("t"), chunks.text_start("t")),
        (chunks.tool_input_delta("c", "a"), chunks.tool_input_delta("d", "b")),
        (chunks.text_delta("t", "a"), chunks.text_delta("t", "b", provider_metadata={"p": {"k": 1}})),
        (
            chunks.text_delta("t", "a", provider_metadata={"p": {"k": 1}}),
            chunks.text_delta("t", "b", provider_metadata={"p": {"k": 2}}),
        ),
    ],
    ids=str,
)
def test_other_neighbours_do_not_join(first: Chunk, second: Chunk) -> None:
    assert chunks.merge(first, second) is None


def test_deltas_with_the_same_metadata_join() -> None:
    metadata = {"p": {"k": 1}}
    first = chunks.text_delta("t", "a", provider_metadata=metadata)
    second = chunks.text_delta("t", "b", provider_metadata=metadata)
    assert chunks.merge(first, second) == chunks.text_delta("t", "ab", provider_metadata=metadata)
