"""Results of servers as models read them: text, values, files, all within bounds."""

import base64
from typing import Any

import pytest

from tools_app.core.mcp.results import prompt_output, resource_output, tool_output
from tools_app.core.output_limits import OutputLimit, cut_output, page_of
from tools_app.errors import ToolError

PIXEL = base64.b64encode(b"\x89PNG pixel").decode()
MANY = 1_000_000


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def test_texts_are_joined_and_a_value_stands_for_them() -> None:
    assert tool_output({"content": [text("a"), text("b")]}, max_bytes=MANY).value == "a\n\nb"
    both = {"content": [text('{"a": 1}')], "structuredContent": {"a": 1}}
    assert tool_output(both, max_bytes=MANY).value == {"a": 1}
    assert tool_output({"content": []}, max_bytes=MANY).value == "(no output)"


SAME: list[tuple[list[str], Any]] = [
    (['{"b": [1, null], "a": "ü"}'], {"a": "ü", "b": [1, None]}),  # other order and spaces
    (['{\n  "a": "\\u00fc"\n}\n'], {"a": "ü"}),
    (["hello"], {"result": "hello"}),  # a value that the server has put into a field
    (["[1, 2]"], {"result": [1, 2]}),
    (["1", "2"], {"result": [1, 2]}),  # a block for each item
    (["a", '{"b": 1}'], {"result": ["a", {"b": 1}]}),
    (["the whole file"], {"content": "the whole file", "path": "a.txt"}),
    (["true"], True),
    ([], {"a": 1}),
    (["  "], {"a": 1}),
    (["7"], 7.0),
]
MORE: list[tuple[list[str], Any, str]] = [
    (["line 1 of the file"], {"fileName": "a.txt"}, "line 1 of the file"),
    (["1"], {"ok": True}, "1"),
    (["2 found", '{"n": 2}'], {"n": 2}, "2 found"),  # only what repeats it goes
    (['{"a": 1}'], {"a": 1, "b": 2}, '{"a": 1}'),
    (["a", "b"], {"result": ["a", "c"]}, "a\n\nb"),
    (["[" * 5_000], {"a": 1}, "[" * 5_000),
    (["NaN"], {"a": "x"}, "NaN"),
]


@pytest.mark.parametrize(("texts", "value"), SAME)
def test_what_text_and_value_both_say_is_there_once(texts: list[str], value: Any) -> None:
    result = {"content": [text(each) for each in texts], "structuredContent": value}
    assert tool_output(result, max_bytes=MANY).value == value


@pytest.mark.parametrize(("texts", "value", "left"), MORE)
def test_a_text_that_says_more_than_the_value_is_kept_beside_it(texts: list[str], value: Any, left: str) -> None:
    result = {"content": [text(each) for each in texts], "structuredContent": value}
    assert tool_output(result, max_bytes=MANY).value == {"text": left, "structuredContent": value}


def test_an_empty_value_takes_no_text_away_and_pictures_stay() -> None:
    picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    empties: list[Any] = [{}, [], ""]
    for empty in empties:
        assert tool_output({"content": [text("a")], "structuredContent": empty}, max_bytes=MANY).value == "a"
    found = tool_output({"content": [picture, text("a")], "structuredContent": {"b": 1}}, max_bytes=MANY)
    assert found.value == {"text": "a", "structuredContent": {"b": 1}}
    assert [media.name for media in found.media] == ["image-1.png"]


def test_a_failure_tells_text_and_value() -> None:
    failed = {"content": [text("it broke")], "structuredContent": {"code": 12}, "isError": True}
    with pytest.raises(ToolError, match=r'^it broke\n\n\{"code":12\}$'):
        tool_output(failed, max_bytes=MANY)
    failed["content"] = [text('{"code": 12}')]
    with pytest.raises(ToolError, match=r'^\{"code": 12\}$'):
        tool_output(failed, max_bytes=MANY)
    with pytest.raises(ToolError, match=r'^\{"code":12\}$'):
        tool_output({**failed, "content": []}, max_bytes=MANY)


def test_both_parts_of_an_output_are_cut_at_their_ends_and_read_by_lines() -> None:
    lines = "\n".join(f"line {number}" for number in range(3_000))
    result = {"content": [text(f"{lines}\nFAILED total")], "structuredContent": {"exit": 1}}
    value = tool_output(result, max_bytes=MANY).value
    cut = cut_output(value, OutputLimit(max_bytes=4_000))
    assert cut is not None
    assert cut.output["structuredContent"] == {"exit": 1}
    shown = cut.output["text"]
    assert shown.startswith("line 0\n")
    assert shown.endswith("FAILED total")
    assert cut_output(cut.output, OutputLimit(max_bytes=4_000)) is None
    page = page_of(value, first_line=3_000, max_lines=10, max_bytes=1_000).text
    assert page.endswith('FAILED total\nstructuredContent: {\n  "exit": 1\n}')


def test_a_failure_is_an_error_with_the_servers_words() -> None:
    with pytest.raises(ToolError, match="it broke"):
        tool_output({"content": [text("it broke")], "isError": True}, max_bytes=MANY)
    with pytest.raises(ToolError, match="failed"):
        tool_output({"content": [], "isError": True}, max_bytes=MANY)


def test_pictures_sounds_and_files_are_media() -> None:
    content = [
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///a/report.pdf", "blob": PIXEL, "mimeType": "application/pdf"}},
        {"type": "resource", "resource": {"uri": "note://1", "text": "words"}},
        {"type": "resource_link", "uri": "note://2", "name": "two"},
    ]
    found = tool_output({"content": content}, max_bytes=MANY)
    assert [media.name for media in found.media] == ["image-1.png", "audio-2.wav", "report.pdf"]
    assert found.media[0].data == b"\x89PNG pixel"
    assert found.value == "[note://1]\nwords\n\n[resource two: note://2]"


def test_what_is_too_large_broken_or_unknown_is_named() -> None:
    content = [
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "image", "data": "not base64!", "mimeType": "image/png"},
        {"type": "hologram"},
    ]
    found = tool_output({"content": content}, max_bytes=5)
    assert found.media == []
    assert "too large" in str(found.value)
    assert "cannot be read" in str(found.value)
    assert "'hologram'" in str(found.value)


def test_there_are_only_so_many_files() -> None:
    content = [{"type": "image", "data": PIXEL, "mimeType": "image/png"}] * 40
    assert len(tool_output({"content": content}, max_bytes=MANY).media) == 16


def test_resources_and_prompts() -> None:
    assert resource_output({"contents": [{"uri": "a://b", "text": "c"}]}, max_bytes=MANY).value == "[a://b]\nc"
    messages = [{"role": "user", "content": text("ask")}, {"role": "assistant", "content": text("answer")}]
    assert prompt_output({"messages": messages}, max_bytes=MANY).value == "user: ask\n\nassistant: answer"
