"""Calls that a model wrote into its text are calls only where nothing else can be meant."""

import json

import pytest

from chat.llm.adapters.spoken_calls import spoken_calls
from thinkproject.kernel.jsonvalue import JSONObject

TOOLS = ("look", "now")
LOOK = {"name": "look", "arguments": {"q": "a"}}
WRITTEN = json.dumps(LOOK)
OTHER = WRITTEN.replace('"a"', '"b"')
A, B = ("look", {"q": "a"}), ("look", {"q": "b"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"<tool_call>\n{WRITTEN}\n</tool_call>", [A]),
        (f"I look it up.\n<tool_call>{WRITTEN}</tool_call>\n", [A]),
        (f"<tool_call>{WRITTEN}</tool_call>\n<tool_call>{OTHER}</tool_call>", [A, B]),
        (f"```json\n{WRITTEN}\n```", [A]),
        (f"```\n{WRITTEN}\n```", [A]),
        ('{"name": "look", "parameters": {"q": "a"}}', [A]),
        (f"[TOOL_CALLS][{WRITTEN}]", [A]),
        ('<|python_tag|>{"type": "function", "name": "now", "parameters": {}}', [("now", {})]),
        ('<function=look>{"q": "a"}</function>', [A]),
    ],
)
def test_calls_in_the_words_of_templates(text: str, expected: list[tuple[str, JSONObject]]) -> None:
    assert spoken_calls(text, TOOLS) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello.",
        f"Write `<tool_call>{WRITTEN}</tool_call>`",
        f"Like this:\n```\n<tool_call>{WRITTEN}</tool_call>",
        f"<tool_call>{WRITTEN}</tool_call> is how it is written.",
        f"<tool_call>{WRITTEN}",
        '<tool_call>{"name": "look", "arguments": {"q": "a"</tool_call>',
        f"Here is an example:\n```json\n{WRITTEN}\n```",
        f"{WRITTEN}\nThat is all.",
        '{"name": "Anna", "arguments": {"many": true}}',
        '{"name": "look", "arguments": "many"}',
        '{"name": "look", "arguments": {"q": "a"}, "age": 7}',
        '[{"name": "look", "arguments": {"q": "a"}}, {"name": "other", "arguments": {}}]',
        "[1, 2]",
        "[" * 5000,
    ],
)
def test_other_words_are_text(text: str) -> None:
    assert spoken_calls(text, TOOLS) == []


def test_a_tool_that_was_not_offered_is_not_called() -> None:
    assert spoken_calls(WRITTEN, ("now",)) == []
