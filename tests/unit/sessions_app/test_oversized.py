"""What a message loses before it is stored."""

import copy
from typing import Any, cast

import pytest

from sessions_app.core.messages.oversized import ROW_MAX_BYTES, Cut, fit_row, sanitise
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import byte_size


def message(*parts: Part, role: str = "assistant", **fields: Any) -> Message:
    return cast("Message", {"id": "m1", "role": role, "parts": list(parts), **fields})


def text(content: str) -> Part:
    return {"type": "text", "text": content}


def tool(output: Any, call_id: str = "c1", state: str = "output-available") -> Part:
    return {"type": "tool-read", "toolCallId": call_id, "state": state, "input": {"a": 1}, "output": output}


class Shelf:
    """Keeps originals and gives an address for each."""

    def __init__(self) -> None:
        self.cuts: list[Cut] = []

    def __call__(self, cut: Cut) -> str:
        self.cuts.append(cut)
        return f"/files/{len(self.cuts)}"


# Sanitising (C6 29)


def test_strips_openai_item_id_and_encrypted_reasoning_and_keeps_the_rest() -> None:
    openai = {"itemId": "rs_1", "reasoningEncryptedContent": "xx", "logprobs": [1]}
    part: Part = {**text("hi"), "providerMetadata": {"openai": openai, "other": {"a": 1}}}
    clean = sanitise(message(part))
    assert clean["parts"][0]["providerMetadata"] == {"openai": {"logprobs": [1]}, "other": {"a": 1}}


def test_emptied_metadata_disappears() -> None:
    metadata = {"openai": {"itemId": "rs_1"}}
    part: Part = {**tool(1), "providerMetadata": metadata, "callProviderMetadata": metadata}
    assert sanitise(message(part))["parts"] == [tool(1)]


def test_metadata_of_calls_is_cleaned_too() -> None:
    part: Part = {**tool(1), "callProviderMetadata": {"openai": {"itemId": "fc_1", "x": 1}}}
    assert sanitise(message(part))["parts"][0]["callProviderMetadata"] == {"openai": {"x": 1}}


@pytest.mark.parametrize("blank", ["", "  \n", None])
def test_blank_reasoning_without_metadata_is_dropped(blank: str | None) -> None:
    scraps = {"providerMetadata": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": None}}}
    reasoning = cast("Part", {"type": "reasoning", "text": blank, **scraps})
    assert sanitise(message(reasoning, text("answer")))["parts"] == [text("answer")]


def test_preserves_redacted_thinking_with_blank_text() -> None:
    redacted: Part = {"type": "reasoning", "text": "", "providerMetadata": {"anthropic": {"redactedData": "abc"}}}
    clean = message(redacted, {"type": "reasoning", "text": "thought"})
    assert sanitise(clean) is clean


def test_odd_metadata_is_left_alone() -> None:
    no_object = cast("Part", {**text("a"), "providerMetadata": "x"})
    odd = message(no_object, {**text("b"), "providerMetadata": {"openai": ["itemId"]}}, text(""))
    assert sanitise(odd) is odd


def test_sanitising_leaves_its_argument_alone() -> None:
    before = message({**text("a"), "providerMetadata": {"openai": {"itemId": "1"}}})
    frozen = copy.deepcopy(before)
    sanitise(before)
    assert before == frozen


# The row guard (C6 28)


def test_a_small_message_is_the_same_object() -> None:
    small = message(tool("x" * 5000), metadata={"a": 1})
    assert fit_row(small) is small


def test_a_message_of_exactly_the_limit_stays() -> None:
    exact = message(text(""))
    exact["parts"][0]["text"] = "x" * (ROW_MAX_BYTES - byte_size(exact))
    assert byte_size(exact) == ROW_MAX_BYTES
    assert fit_row(exact) is exact
    exact["parts"][0]["text"] += "x"
    assert byte_size(fit_row(exact)) < ROW_MAX_BYTES


def test_messages_over_the_limit_have_tool_outputs_compacted() -> None:
    big = message(text("kept"), tool("x" * 2_000_000), tool("short", "c2"), metadata={"own": 1})
    stored = fit_row(big)
    assert byte_size(stored) <= ROW_MAX_BYTES
    assert stored["metadata"] == {"own": 1, "compactedToolOutputs": ["c1"]}
    assert stored["parts"][1]["output"].endswith("... [truncated 2000000 chars]")
    assert len(stored["parts"][1]["output"]) == 1000
    assert stored["parts"][0] == text("kept")
    assert stored["parts"][2] == tool("short", "c2")


def test_every_long_output_is_compacted_once_the_message_is_too_large() -> None:
    stored = fit_row(message(tool("x" * 1001), tool({"a": "y" * 2_000_000}, "c2"), tool("z" * 1000, "c3")))
    assert stored["metadata"]["compactedToolOutputs"] == ["c1", "c2"]
    assert isinstance(stored["parts"][1]["output"], dict)


def test_compacts_messages_with_multi_byte_unicode_that_exceed_the_byte_limit() -> None:
    wide = message(tool("é" * 1_000_000))
    assert len(wide["parts"][0]["output"]) < ROW_MAX_BYTES
    assert byte_size(fit_row(wide)) < ROW_MAX_BYTES


def test_an_output_of_another_state_is_no_output() -> None:
    stored = fit_row(message(tool("x" * 2_000_000, state="output-error")))
    assert "compactedToolOutputs" not in stored["metadata"]
    assert byte_size(stored) <= ROW_MAX_BYTES


def test_truncates_large_text_parts_oldest_first_and_stops_when_it_fits() -> None:
    stored = fit_row(message(text("a" * 900_000), text("b" * 900_000), text("c" * 800_000), role="user"))
    head = "a" * 500
    assert stored["parts"][0]["text"] == f"[Text truncated for storage (900000 chars). First 500 chars: {head}...]"
    assert stored["parts"][1] == text("b" * 900_000)
    assert stored["metadata"] == {"compactedTextParts": [0]}


def test_texts_of_an_assistant_go_only_after_its_outputs() -> None:
    stored = fit_row(message(text("a" * 1_000_000), tool("x" * 1_000_000)))
    assert stored["parts"][0] == text("a" * 1_000_000)
    assert stored["metadata"] == {"compactedToolOutputs": ["c1"]}


def test_outputs_of_other_roles_are_not_compacted_as_outputs() -> None:
    stored = fit_row(message(tool("x" * 2_000_000), role="user"))
    assert stored["metadata"] == {"compactedParts": [0]}


def test_text_counts_are_utf16() -> None:
    stored = fit_row(message(text("🙂" * 500_000), role="user"))
    assert stored["parts"][0]["text"].startswith("[Text truncated for storage (1000000 chars). First 500 chars: 🙂")
    assert stored["parts"][0]["text"].count("🙂") == 250


@pytest.mark.parametrize(
    "part",
    [
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64," + "A" * 2_000_000},
        {"type": "reasoning", "text": "r" * 2_000_000},
        {"type": "data-x", "data": {"rows": ["r" * 1000] * 2000}},
        {"type": "tool-x", "toolCallId": "c", "state": "input-available", "input": {"body": "b" * 2_000_000}},
        {"type": "tool-x", "toolCallId": "c", "state": "input-streaming", "input": "b" * 2_000_000},
        {"type": "text", "text": 3, "x": "b" * 2_000_000},
        {"type": "data-" + "d" * 2_000_000},
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_anything_large_is_made_to_fit(part: Part, role: str) -> None:
    stored = fit_row(message(text("before"), part, text("after"), role=role))
    assert byte_size(stored) <= ROW_MAX_BYTES
    assert stored["parts"][0] == text("before")
    assert stored["parts"][-1] == text("after")
    assert stored["metadata"]["compactedParts"] == [1]
    assert fit_row(stored) is stored


def test_half_a_data_url_is_no_url() -> None:
    stored = fit_row(message({"type": "file", "mediaType": "image/png", "url": "data:," + "A" * 2_000_000}))
    assert stored["parts"][0] == {"type": "file", "mediaType": "image/png", "url": "about:blank"}


def test_many_small_parts_lose_the_middle() -> None:
    stored = fit_row(message(*[text(f"{i} " + "x" * 900) for i in range(5000)]))
    assert ROW_MAX_BYTES * 0.9 < byte_size(stored) <= ROW_MAX_BYTES
    assert stored["parts"][0]["text"].startswith("0 ")
    assert stored["parts"][-1]["text"].startswith("4999 ")
    [place] = stored["metadata"]["compactedParts"]
    assert "parts omitted for storage" in stored["parts"][place]["text"]


def test_large_metadata_goes_before_parts_do() -> None:
    stored = fit_row(message(text("kept"), metadata={"junk": ["j" * 1000] * 3000, "compactedTextParts": [4]}))
    assert stored["parts"] == [text("kept")]
    assert stored["metadata"] == {"compactedTextParts": [4]}


def test_lone_surrogates_count_as_they_are_stored() -> None:
    parts = [text("é" * 900) for _ in range(900)]  # 1.6 MB, but three times that once escaped
    stored = fit_row(message(text("\ud800"), *parts))
    assert byte_size(stored) <= ROW_MAX_BYTES


def test_the_original_is_left_alone() -> None:
    big = message(tool("x" * 2_000_000), metadata={"compactedToolOutputs": ["old"]})
    stored = fit_row(big)
    assert big["parts"][0]["output"] == "x" * 2_000_000
    assert big["metadata"] == {"compactedToolOutputs": ["old"]}
    assert stored["metadata"]["compactedToolOutputs"] == ["old", "c1"]


# Originals are kept


def test_originals_are_handed_over_before_they_are_cut() -> None:
    shelf = Shelf()
    big = message(tool({"a": "x" * 1_000_000}), text("t" * 2_000_000))
    stored = fit_row(big, spill=shelf)
    assert [(cut.part_index, cut.field, cut.tool_call_id) for cut in shelf.cuts] == [
        (0, "output", "c1"),
        (1, "text", ""),
    ]
    assert shelf.cuts[0].original == {"a": "x" * 1_000_000}
    assert shelf.cuts[1].original == "t" * 2_000_000
    assert stored["metadata"]["spilled"] == {"0.output": "/files/1", "1.text": "/files/2"}


def test_parts_left_out_are_handed_over_together() -> None:
    shelf = Shelf()
    parts = [text("x" * 900) for _ in range(3000)]
    stored = fit_row(message(*parts), spill=shelf)
    [cut] = shelf.cuts
    assert cut.field == ""
    kept = [part for part in stored["parts"] if part in parts]
    assert len(cut.original) + len(kept) == 3000
    assert stored["metadata"]["spilled"] == {str(cut.part_index): "/files/1"}


def test_without_an_address_nothing_is_noted() -> None:
    stored = fit_row(message(tool("x" * 2_000_000)), spill=lambda cut: None)
    assert stored["metadata"] == {"compactedToolOutputs": ["c1"]}


def test_a_message_that_fits_spills_nothing() -> None:
    shelf = Shelf()
    fit_row(message(tool("x" * 5000)), spill=shelf)
    assert shelf.cuts == []
