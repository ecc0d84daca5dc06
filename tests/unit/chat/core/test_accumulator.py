"""The fold of messages: ids, metadata, text, reasoning, data, files, and what recovery asks of it."""

from typing import cast

import pytest

from chat.core.wire import chunks
from chat.core.wire.accumulator import Accumulator, fold, to_input_object, tool_name
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


def parts(*given: Chunk, message: Message | None = None) -> list[Part]:
    return fold(given, message)["parts"]


def after(*given: Chunk) -> Accumulator:
    accumulator = Accumulator()
    for chunk in given:
        accumulator.apply(chunk)
    return accumulator


def test_start_gives_the_message_its_id() -> None:
    expected: Message = {"id": "m1", "role": "assistant", "parts": []}
    assert fold([chunks.start("m1")]) == expected


def test_first_id_stays() -> None:
    assert fold([chunks.start("m1"), chunks.start("m2")])["id"] == "m1"
    assert fold([chunks.start("m2")], {"id": "m1", "role": "assistant", "parts": []})["id"] == "m1"


def test_nothing_folds_to_an_empty_message() -> None:
    expected: Message = {"id": "", "role": "assistant", "parts": []}
    assert fold([]) == expected


def test_metadata_merges_shallowly() -> None:
    folded = fold(
        [
            chunks.start("m", metadata={"a": {"x": 1}, "b": 1}),
            chunks.message_metadata({"a": {"y": 2}}),
            chunks.finish("stop", metadata={"c": 3}),
            {"type": "message-metadata", "messageMetadata": "odd"},  # type: ignore[typeddict-item]  # of a stranger
        ]
    )
    assert folded["metadata"] == {"a": {"y": 2}, "b": 1, "c": 3}


def test_text_streams_and_is_done() -> None:
    stream = [chunks.text_start("t"), chunks.text_delta("t", "He"), chunks.text_delta("t", "llo")]
    assert parts(*stream) == [{"type": "text", "text": "Hello", "state": "streaming"}]
    assert parts(*stream, chunks.text_end("t")) == [{"type": "text", "text": "Hello", "state": "done"}]


def test_text_delta_goes_to_the_last_text_part_whatever_its_id() -> None:
    folded = parts(chunks.text_start("t1"), chunks.text_start("t2"), chunks.text_delta("t1", "x"))
    assert [part["text"] for part in folded] == ["", "x"]


def test_text_delta_without_a_start_opens_a_part() -> None:
    assert parts(chunks.text_delta("t", "x")) == [{"type": "text", "text": "x", "state": "streaming"}]


def test_text_end_without_a_text_is_ignored() -> None:
    assert parts(chunks.text_end("t"), chunks.reasoning_end("r")) == []


def test_citations_of_version_7_are_kept() -> None:
    assert parts(chunks.text_start("t"), {**chunks.text_end("t"), "citations": [{"n": 1}]})[0]["citations"] == [
        {"n": 1}
    ]


def test_reasoning_metadata_merges_over_the_whole_part() -> None:
    folded = parts(
        chunks.reasoning_start("r", provider_metadata={"p": {"id": 1}}),
        chunks.reasoning_delta("r", "hm", provider_metadata={"q": {"k": 2}}),
        chunks.reasoning_end("r", provider_metadata={"p": {"signature": "s"}}),
    )
    expected = {"p": {"signature": "s"}, "q": {"k": 2}}
    assert folded == [{"type": "reasoning", "text": "hm", "state": "done", "providerMetadata": expected}]


def test_text_and_reasoning_do_not_mix() -> None:
    folded = parts(
        chunks.text_start("t"),
        chunks.reasoning_start("r"),
        chunks.text_delta("t", "a"),
        chunks.reasoning_delta("r", "b"),
    )
    assert [(part["type"], part["text"]) for part in folded] == [("text", "a"), ("reasoning", "b")]


def test_steps_are_parts() -> None:
    assert parts(chunks.start_step(), chunks.finish_step(), {"type": "step-start"}) == [
        {"type": "step-start"},
        {"type": "step-start"},
    ]


def test_reset_step_drops_the_output_of_the_step() -> None:
    accumulator = after(
        chunks.start_step(),
        chunks.text_delta("t", "kept"),
        chunks.start_step(),
        chunks.text_start("u"),
        chunks.text_delta("u", "gone"),
        chunks.tool_input_start("c", "add"),
        {"type": "reset-step"},
        chunks.tool_output_available("c", 1),
    )
    assert [part.get("text") for part in accumulator.message["parts"]] == [None, "kept", None]
    assert (accumulator.open_text_id, accumulator.open_calls, accumulator.step_count) == (None, {}, 2)


def test_reset_step_without_a_step_changes_nothing() -> None:
    assert len(parts(chunks.text_delta("t", "x"), {"type": "reset-step"})) == 1


def test_files_and_sources_are_appended() -> None:
    given: list[chunks.Chunk] = [
        chunks.file("/f", "image/png"),
        {"type": "source-url", "sourceId": "s1", "url": "https://example.org", "title": "E"},
        {"type": "source-document", "sourceId": "s2", "mediaType": "text/plain", "title": "Notes"},
        {"type": "reasoning-file", "url": "/g", "mediaType": "image/png"},
        {"type": "custom", "kind": "acme.thing"},
    ]
    assert parts(*given) == given


def test_data_with_an_id_replaces_its_part() -> None:
    folded = parts(
        chunks.data("w", {"c": 1}, part_id="1"),
        chunks.data("w", {"c": 2}, part_id="2"),
        chunks.data("w", 3, part_id="1"),
    )
    assert folded == [{"type": "data-w", "id": "1", "data": 3}, {"type": "data-w", "id": "2", "data": {"c": 2}}]


def test_data_of_another_type_with_the_same_id_is_another_part() -> None:
    assert len(parts(chunks.data("a", 1, part_id="1"), chunks.data("b", 1, part_id="1"))) == 2


def test_data_without_an_id_is_appended() -> None:
    assert parts(chunks.data("w", 1), chunks.data("w", 1)) == [{"type": "data-w", "data": 1}] * 2


def test_transient_data_is_never_stored() -> None:
    assert parts(chunks.data("w", 1, transient=True)) == []


def test_unknown_chunks_are_ignored() -> None:
    accumulator = after({"type": "novelty"}, chunks.abort())
    assert (accumulator.message["parts"], accumulator.last_chunk_type) == ([], "abort")


def test_seed_is_continued_and_not_changed() -> None:
    seed = cast(
        "Message",
        {
            "id": "m1",
            "role": "assistant",
            "createdAt": "x",
            "metadata": {"a": 1},
            "parts": [{"type": "step-start"}, {"type": "text", "text": "Hel", "state": "streaming"}],
        },
    )
    folded = fold([chunks.text_delta("t", "lo"), chunks.text_end("t"), chunks.message_metadata({"b": 2})], seed)
    assert folded["parts"][1] == {"type": "text", "text": "Hello", "state": "done"}
    assert (cast("JSONObject", folded)["createdAt"], folded["metadata"]) == ("x", {"a": 1, "b": 2})
    assert seed["parts"][1] == {"type": "text", "text": "Hel", "state": "streaming"}
    assert seed["metadata"] == {"a": 1}


def test_message_is_a_snapshot() -> None:
    accumulator = after(chunks.start("m"), chunks.text_delta("t", "a"), chunks.tool_input_start("c", "add"))
    before = accumulator.message
    for chunk in (
        chunks.text_delta("t", "b"),
        chunks.text_end("t"),
        chunks.tool_output_available("c", 1),
        chunks.message_metadata({"k": 1}),
    ):
        accumulator.apply(chunk)
    assert [part.get("text") for part in before["parts"]] == ["a", None]
    assert (before["parts"][0]["state"], before["parts"][1]["state"]) == ("streaming", "input-streaming")
    assert "metadata" not in before


def test_open_parts_are_known_by_id() -> None:
    accumulator = after(chunks.text_start("t"), chunks.reasoning_start("r"))
    assert (accumulator.open_text_id, accumulator.open_reasoning_id) == ("t", "r")
    accumulator.apply(chunks.text_end("t"))
    assert (accumulator.open_text_id, accumulator.open_reasoning_id) == (None, "r")


def test_there_is_something_to_store_once_a_part_is_more_than_a_step() -> None:
    assert not after(chunks.start("m"), chunks.start_step()).has_parts
    assert after(chunks.start_step(), chunks.text_start("t")).has_parts


def test_what_was_shown_counts_by_step() -> None:
    accumulator = after(chunks.start_step(), chunks.text_delta("t", "a"))
    assert accumulator.has_shown_in_step
    accumulator.apply(chunks.start_step())
    assert not accumulator.has_shown_in_step


def test_end_of_the_turn_is_known() -> None:
    accumulator = after(chunks.start("m"), chunks.error("no"), chunks.finish("error"))
    assert (accumulator.error_text, accumulator.finish_reason, accumulator.message_id) == ("no", "error", "m")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', {}),
        ("[1]", {}),
        ("", {}),
        (None, {}),
        ([1], {}),
        (3, {}),
    ],
)
def test_tool_inputs_become_objects(value: JSONValue, expected: JSONObject) -> None:
    assert to_input_object(value) == expected


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"type": "tool-add"}, "add"),
        ({"type": "tool-add", "toolName": "sum"}, "sum"),
        ({"type": "dynamic-tool", "toolName": "x"}, "x"),
        ({"type": "dynamic-tool"}, ""),
        ({"type": "text"}, ""),
        ({}, ""),
    ],
)
def test_tool_parts_have_a_name(part: JSONObject, name: str) -> None:
    assert tool_name(part) == name
