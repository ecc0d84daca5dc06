"""Results of servers as models read them: text, values, files, all within bounds."""

import base64

import pytest

from tools_app.core.mcp.results import prompt_output, resource_output, tool_output
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
