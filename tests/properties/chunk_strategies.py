"""Chunks and messages as hypothesis makes them: valid ones in any order, with few ids so that they meet."""

from typing import cast

from hypothesis import strategies as st

from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages.shapes import OURS, Message
from thinkproject.kernel.jsonvalue import JSONValue

texts = st.text(alphabet=st.characters(codec=None), max_size=6)
json_values: st.SearchStrategy[JSONValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
metadata = st.none() | st.dictionaries(st.sampled_from(["p", "q"]), json_values, max_size=2)
entries = st.fixed_dictionaries(
    {}, optional={"url": texts, "mediaType": st.just("image/png") | texts, "filename": texts, "error": texts}
)
details = metadata | st.fixed_dictionaries(
    {
        OURS: json_values
        | st.fixed_dictionaries(
            {},
            optional={
                "title": texts,
                "attachments": st.lists(entries | json_values, max_size=2),
                "whole": json_values | st.fixed_dictionaries({"bytes": json_values}, optional={"id": texts}),
            },
        )
    }
)
"""The `toolMetadata` of a result: another product's, ours, or what a client made of it."""
part_ids = st.sampled_from(["t1", "t2"])
call_ids = st.sampled_from(["c1", "c2", ""])
names = st.sampled_from(["add", "loc", ""])
raw_inputs = st.sampled_from(["", '{"a"', ": 1}", '{"a": 1}', "[1]", "x"])
approval_ids = st.sampled_from(["p1", "p2"])

deltas: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(chunks.text_delta, part_ids, texts, provider_metadata=metadata),
    st.builds(chunks.reasoning_delta, part_ids, texts, provider_metadata=metadata),
    st.builds(chunks.tool_input_delta, call_ids, raw_inputs),
)
framing: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(chunks.start, st.none() | st.sampled_from(["m1", "m2"]), metadata=metadata),
    st.builds(chunks.start_step),
    st.builds(chunks.finish_step),
    st.builds(chunks.finish, st.sampled_from(["stop", "tool-calls"]), metadata=metadata),
    st.builds(chunks.message_metadata, st.dictionaries(texts, json_values, max_size=2)),
    st.builds(chunks.error, texts),
    st.just({"type": "reset-step"}),
    st.just({"type": "novelty"}),
)
text_parts: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(chunks.text_start, part_ids, provider_metadata=metadata),
    st.builds(chunks.text_end, part_ids, provider_metadata=metadata | st.just({OURS: {"wasThought": True}})),
    st.builds(chunks.reasoning_start, part_ids, provider_metadata=metadata),
    st.builds(chunks.reasoning_end, part_ids, provider_metadata=metadata),
)
tool_parts: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(chunks.tool_input_start, call_ids, names, dynamic=st.booleans()),
    st.builds(chunks.tool_input_available, call_ids, names, json_values | raw_inputs),
    st.builds(chunks.tool_input_error, call_ids, names, json_values, texts),
    st.builds(chunks.tool_approval_request, approval_ids, call_ids),
    st.builds(
        lambda approval_id, approved: {
            "type": "tool-approval-response",
            "approvalId": approval_id,
            "approved": approved,
        },
        approval_ids,
        st.booleans(),
    ),
    st.builds(chunks.tool_output_available, call_ids, json_values, preliminary=st.booleans(), metadata=details),
    st.builds(chunks.tool_output_error, call_ids, texts, metadata=details),
    st.builds(chunks.tool_output_denied, call_ids),
)
other_parts: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(chunks.file, texts, st.just("image/png")),
    st.builds(lambda url: {"type": "source-url", "sourceId": "s", "url": url}, texts),
    st.builds(
        chunks.data,
        st.sampled_from(["w", "v"]),
        json_values,
        part_id=st.none() | st.sampled_from(["1", "2"]),
        transient=st.booleans(),
    ),
)
any_chunk = st.one_of(deltas, deltas, framing, text_parts, tool_parts, other_parts)
streams = st.lists(any_chunk, max_size=25)

states = st.sampled_from(
    [
        "input-streaming",
        "input-available",
        "approval-requested",
        "approval-responded",
        "output-available",
        "output-error",
        "output-denied",
        "odd",
    ]
)
odd_part: st.SearchStrategy[JSONValue] = st.dictionaries(
    st.sampled_from(
        [
            "type",
            "text",
            "state",
            "toolCallId",
            "toolName",
            "input",
            "rawInput",
            "output",
            "approval",
            "url",
            "errorText",
        ]
    ),
    json_values,
    max_size=6,
)
message_parts: st.SearchStrategy[JSONValue] = st.one_of(
    st.just({"type": "step-start"}),
    st.fixed_dictionaries({"type": st.just("text"), "text": texts}),
    st.fixed_dictionaries(
        {
            "type": st.just("reasoning"),
            "text": texts,
            "state": st.sampled_from(["done", "streaming"]),
            "providerMetadata": metadata,
        }
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["tool-add", "dynamic-tool"]), "toolCallId": call_ids | texts, "state": states},
        optional={
            "toolName": names | texts,
            "input": json_values,
            "rawInput": raw_inputs,
            "output": json_values,
            "errorText": texts,
            "approval": st.none() | st.fixed_dictionaries({"approved": json_values}, optional={"reason": json_values}),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("file"), "url": texts, "mediaType": st.sampled_from(["image/png", "text/plain", "x"])}
    ),
    odd_part,
    json_values,
)
any_messages: st.SearchStrategy[JSONValue] = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "assistant", "system"]),
            "parts": st.lists(message_parts, max_size=6),
        }
    ),
    max_size=6,
)
ui_messages = cast("st.SearchStrategy[list[Message]]", any_messages)
