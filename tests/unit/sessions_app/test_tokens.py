"""Counting tokens: the two rules of thumb, what of a message counts, and counters by name."""

import hashlib
import sys
from pathlib import Path

import pytest

from sessions_app.core.compaction import tokens
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.errors import TokenCounterUnknown

TOOL: Part = {
    "type": "tool-read",
    "toolCallId": "c1",
    "state": "output-available",
    "input": {"a": 1},
    "output": "x" * 40,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 2), ("x" * 40, 10), ("x" * 41, 11), ("a b c d e f g h i j", 13), ("😀" * 40, 20)],
)
def test_estimate_takes_the_larger_of_characters_and_words(text: str, expected: int) -> None:
    assert tokens.estimate_text(text) == expected


@pytest.mark.parametrize(("length", "expected"), [(0, 0), (1, 0), (2, 1), (3, 1), (6, 2), (10, 3), (11, 3)])
def test_length_over_four_rounds_halves_up(length: int, expected: int) -> None:
    assert tokens.length_over_four("x" * length) == expected


def test_an_emoji_counts_two_units() -> None:
    assert tokens.length_over_four("hello world") == 3
    assert tokens.length_over_four("😀") == 1


def test_messages_count_text_reasoning_tool_input_and_output() -> None:
    parts: list[Part] = [
        {"type": "text", "text": "x" * 40},
        {"type": "reasoning", "text": "x" * 80},
        TOOL,
        {"type": "step-start"},
    ]
    message: Message = {"id": "m", "role": "assistant", "parts": parts}
    assert tokens.estimate_message(message) == 4 + 10 + 20 + 2 + 10
    assert tokens.estimate_messages([message, message], system_prompt="x" * 400) == 100 + 2 * 46


def test_a_counter_that_gives_no_number_counts_nothing() -> None:
    assert tokens.count_tokens("text", lambda text: float("nan")) == 0  # type: ignore[arg-type,return-value] # on purpose
    assert tokens.count_tokens("text", lambda text: float("inf")) == 0  # type: ignore[arg-type,return-value] # on purpose
    assert tokens.count_tokens("text", lambda text: -5) == 0


def test_counters_are_found_by_name() -> None:
    assert tokens.counter_named("estimate") is tokens.estimate_text
    assert tokens.counter_named("length_over_four") is tokens.length_over_four
    assert tokens.counter_named("builtins:len")("four") == 4


@pytest.mark.parametrize("name", ["", "nothing", "builtins:nothing", "no.such.module:f", "math:pi", "tiktoken:of_mine"])
def test_unknown_counters_are_refused(name: str) -> None:
    with pytest.raises(TokenCounterUnknown):
        tokens.counter_named(name)


@pytest.fixture
def tiktoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library of that name which counts letters, and an empty folder for its data."""
    (tmp_path / "tiktoken.py").write_text(
        "class E:\n    def encode(self, text, disallowed_special):\n        return list(text)\n"
        "def get_encoding(name):\n    return E()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tiktoken", raising=False)
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(data))
    tokens._tiktoken.cache_clear()
    return data


def test_a_tokenizer_without_its_data_is_refused_before_it_could_fetch_any(tiktoken: Path) -> None:
    filename = tokens._ENCODINGS["o200k_base"][0]
    with pytest.raises(TokenCounterUnknown, match="nothing is downloaded"):
        tokens.counter_named("tiktoken")
    (tiktoken / filename).write_text("broken")
    with pytest.raises(TokenCounterUnknown, match="is not the data"):
        tokens.counter_named("tiktoken")


def test_a_tokenizer_with_its_data_counts(tiktoken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filename, _ = tokens._ENCODINGS["o200k_base"]
    (tiktoken / filename).write_text("data")
    monkeypatch.setitem(tokens._ENCODINGS, "o200k_base", (filename, hashlib.sha256(b"data").hexdigest()))
    assert tokens.counter_named("tiktoken:o200k_base")("abc\ud800") == 4
