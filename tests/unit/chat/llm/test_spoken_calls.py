"""Calls that a model wrote into its text are calls only where nothing else can be meant."""

import json
from typing import Any

import pytest

from chat.core.model.language_model import ToolSpec
from chat.llm.adapters.spoken_calls import spoken_calls
from chat.llm.registry import resolve_model
from chat.llm.testing import collect_until_error, make_request
from tests.odd_provider import Reply, odd_provider
from tests.providers.corpus import in_words
from thinkproject.kernel.jsonvalue import JSONObject

LOOKS: JSONObject = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "n": {"type": "integer"},
        "deep": {"type": "boolean"},
        "tags": {"type": ["array", "null"]},
        "near": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "place": {"$ref": "#/$defs/Place"},
    },
}
TOOLS: dict[str, JSONObject] = {"look": LOOKS, "now": {"type": "object"}}
LOOK = {"name": "look", "arguments": {"q": "a"}}
WRITTEN = json.dumps(LOOK)
OTHER = WRITTEN.replace('"a"', '"b"')
INVOKED = '<invoke name="look">\n<parameter name="q">a</parameter>\n</invoke>'
DEEPSEEK = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n"
    '{"q": "a"}\n```<｜tool▁call▁end｜>\n'
    "<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
DEEPSEEK_3_2 = (
    '<｜DSML｜function_calls>\n<｜DSML｜invoke name="look">\n<｜DSML｜parameter name="q" string="true">a'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"
)
KIMI = (
    "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>"
    '{"q": "a"}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}'
    "<|tool_call_end|><|tool_calls_section_end|>"
)
HARMONY = (
    "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary to=functions.look "
    '<|constrain|>json<|message|>{"q": "a"}<|call|>'
)
A, B = ("look", {"q": "a"}), ("look", {"q": "b"})
NOW: tuple[str, JSONObject] = ("now", {})


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
        (f"{WRITTEN}\n{OTHER}", [A, B]),
        (f"{WRITTEN}\n</tool_call>", [A]),
        ('<tool_call>{"name": "now"}</tool_call>', [NOW]),
        ("<tool_call>{'arguments': {'q': 'a'}, 'name': 'look'}</tool_call>", [A]),
        (f"<tool_calls>[{WRITTEN}]</tool_calls>", [A]),
        (f"<tool_calls>\n{WRITTEN}\n{OTHER}\n</tool_calls>", [A, B]),
        (f"<TOOLCALL>[{WRITTEN}]</TOOLCALL>", [A]),
        (f"<longcat_tool_call>{WRITTEN}</longcat_tool_call>", [A]),
        (f"<|tool_call|>[{WRITTEN}]<|/tool_call|>", [A]),
        (f"<function_call> {WRITTEN}", [A]),
        (f"functools[{WRITTEN}]", [A]),
        (f"I look.<|action_start|><|plugin|>{WRITTEN}<|action_end|>", [A]),
        (
            '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "look", "parameters": {"q": "a"}}]<|END_ACTION|>',
            [A],
        ),
        (
            json.dumps(
                {"tool_calls": [{"id": "1", "type": "function", "function": {**LOOK, "arguments": '{"q":"a"}'}}]}
            ),
            [A],
        ),
        ('I look.[TOOL_CALLS]look[ARGS]{"q": "a"}', [A]),
        ('[TOOL_CALLS]look[CALL_ID]abcdefghi[ARGS]{"q": "a"}[TOOL_CALLS]now{}</s>', [A, NOW]),
        (f'<|python_tag|>{WRITTEN}; {{"name": "now", "parameters": {{}}}}<|eom_id|>', [A, NOW]),
        ('<|python_tag|>look.call(q="a")<|eom_id|>', [A]),
        ('[look(q="a"), now()]', [A, NOW]),
        ('<|python_start|>[look(q="a")]<|python_end|>', [A]),
        ('<function_calls>\nlook(q="a")\nnow()\n</function_calls>', [A, NOW]),
        ('```tool_code\nlook(q="a")\n```', [A]),
        (DEEPSEEK, [A, NOW]),
        (DEEPSEEK_3_2, [A]),
        (KIMI, [A, NOW]),
        (HARMONY, [A]),
        ('<|start|>assistant to=functions.look<|channel|>commentary json<|message|>{"q": "a"}<|call|>', [A]),
        ('<|channel|>commentary to=functions.look<|message|>{"q": "a"}', [A]),
        ("<start_function_call>call:look{q:<escape>a<escape>}<end_function_call>", [A]),
        ('<|tool_call>call:look{q:<|"|>a<|"|>}<tool_call|>', [A]),
        (f"<function_calls>{INVOKED}</function_calls>", [A]),
        (f"<minimax:tool_call>\n{INVOKED}\n</minimax:tool_call>", [A]),
        ("<tool_call>look\n<arg_key>q</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", [A]),
        ("<tool_call>now\n</tool_call>\n<tool_call>now</tool_call>", [NOW, NOW]),
        ("<tool_call>\n<function=look>\n<parameter=q>\na\n</parameter>\n</function>\n</tool_call>", [A]),
        ("<seed:tool_call><function=look><parameter=q>a</parameter></function></seed:tool_call>", [A]),
        ("I look.\n<function=look>\n<parameter=q>\na\n</parameter>\n</function>\n</tool_call>", [A]),
        ("Its tag is `<tool_call>`.\n<tool_call>\n<function=now>\n</function>\n</tool_call>", [NOW]),
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
        "[look(" * 3000,
        "look",
        "now()",
        'look {"q": "a"}',
        "[now]",
        "[look('a')]",
        "[look(**{'q': 'a'})]",
        "[look(q=open('a'))]",
        "```python\nnow()\n```",
        f"```\n<tool_call>{WRITTEN}</tool_call>\n```",
        "The tag <tool_call> begins a call.",
        "<tool_call></tool_call>",
        "<tool_call>now",
        f"<tool_call>{WRITTEN}</tool_calls>",
        "<function=look>",
        "Write `<function=now></function>` in one line.",
        "<function=look>\n<parameter=q>\na\n</function>",
        "<tool_call>look<arg_key>q</arg_key>",
        "<|python_tag|>print(1)",
        "[TOOL_CALLS] is the mark, and {} follows.",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>There.<|return|>",
        "<|start|>assistant<|other|>",
    ],
)
def test_other_words_are_text(text: str) -> None:
    assert spoken_calls(text, TOOLS) == []


def test_a_tool_that_was_not_offered_is_not_called() -> None:
    assert spoken_calls(WRITTEN, {"now": {}}) == []


@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("q", "3", "3"),
        ("q", "true", "true"),
        ("q", " a\n\n b ", " a\n\n b "),
        ("q", 'echo "</parameter>" </arg_value>', 'echo "</parameter>" </arg_value>'),
        ("n", "3", 3),
        ("n", "many", "many"),
        ("deep", "True", True),
        ("deep", "false", False),
        ("tags", '["x", "y"]', ["x", "y"]),
        ("tags", "null", None),
        ("near", "1.5", 1.5),
        ("near", "None", None),
        ("place", '{"town": "Graz"}', {"town": "Graz"}),
        ("unknown", "7", "7"),
    ],
)
def test_values_without_quotes_are_of_their_declared_type(name: str, written: str, value: Any) -> None:
    for text in (
        f"<tool_call>\n<function=look>\n<parameter={name}>\n{written}\n</parameter>\n</function>\n</tool_call>",
        f'<invoke name="look"><parameter name="{name}">{written}</parameter></invoke>',
        f"<tool_call>look\n<arg_key>{name}</arg_key>\n<arg_value>{written}</arg_value>\n</tool_call>",
    ):
        assert spoken_calls(text, TOOLS) == [("look", {name: value})]


@pytest.mark.parametrize(
    ("declared", "kinds"),
    [({}, ["reasoning", "call"]), ({"calls_in_text": False}, ["text"]), ({"can_call_tools": False}, ["text"])],
)
@pytest.mark.usefixtures("closed_clients")
async def test_a_site_may_leave_them_as_text(settings: Any, declared: JSONObject, kinds: list[str]) -> None:
    spec = ToolSpec(name="look", description="Look.", input_schema=LOOKS)
    with odd_provider(lambda _body: Reply(text=f"I look.\n<tool_call>{WRITTEN}</tool_call>")) as running:
        settings.THINK_PROVIDERS = {"odd": {"base_url": running.base_url, **declared}}
        events, error = await collect_until_error(resolve_model("odd/m"), make_request("x", tools=(spec,)))
    assert error is None
    assert [next(iter(entry)) for entry in in_words(events) if "finish" not in entry] == kinds
