"""Chats of Open WebUI: messages by id in `chat.history`, or in order in `chat.messages`."""

import html
import re
from collections.abc import Iterator
from typing import Final

from sessions_app.core.messages.shapes import Part
from sessions_app.transfer.archives.shapes import Content, FileRef, Node, NodeKind
from sessions_app.transfer.archives.values import (
    call_part,
    fitting_id,
    hidden_part,
    instant_of,
    object_of,
    objects_of,
    other_part,
    reasoning_part,
    settle,
    text_of,
    text_part,
    texts_of,
)
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

SYSTEM_NODE: Final = "system"
_DETAILS: Final = re.compile(
    r'<details\b(?P<attributes>[^>]*\btype="(?:reasoning|tool_calls|code_interpreter)"[^>]*)>(?P<body>.*?)</details>',
    re.DOTALL,
)
_ATTRIBUTE: Final = re.compile(r'(\w+)="([^"]*)"')
_SUMMARY: Final = re.compile(r"\s*<summary>.*?</summary>", re.DOTALL)


def is_open_webui(value: JSONObject) -> bool:
    """Whether it is a chat of Open WebUI."""
    chat = _chat(value)
    return isinstance(chat.get("history"), dict) or bool(_messages(chat))


def chat_of(value: JSONObject) -> JSONObject:
    """The chat itself, which the list has inside of a record."""
    return _chat(value)


def open_webui_nodes(value: JSONObject) -> Iterator[Node]:
    """The messages of a chat as nodes, its instructions first."""
    chat = _chat(value)
    entries = _messages(chat)
    system = text_of(chat.get("system")) or text_of(object_of(chat.get("params")).get("system"))
    if system.strip():
        yield Node(id=SYSTEM_NODE, parent_id=None, kind=NodeKind.HIDDEN, parts=[hidden_part("system", system)])
    for node_id, parent_id, entry in entries:
        node = _node(node_id, parent_id, entry)
        if node.parent_id is None and system.strip():
            node.parent_id = SYSTEM_NODE
        yield node


def _chat(value: JSONObject) -> JSONObject:
    chat = value.get("chat")
    return chat if isinstance(chat, dict) else value


def _messages(chat: JSONObject) -> list[tuple[str, str | None, JSONObject]]:
    """Ids, ids of parents, messages."""
    history = chat.get("history")
    messages = history.get("messages") if isinstance(history, dict) else None
    if isinstance(messages, dict):
        found = [(str(key), object_of(each)) for key, each in messages.items()]
        return [(key, text_of(each.get("parentId")) or None, each) for key, each in found]
    if isinstance(history, dict) or ("chat" in chat and not isinstance(chat["chat"], dict)):
        return []
    linear = objects_of(chat.get("messages")) if "models" in chat or "timestamp" in chat else []
    ids = [text_of(each.get("id")) or f"message-{place}" for place, each in enumerate(linear)]
    return list(zip(ids, [None, *ids], linear, strict=False))


def _node(node_id: str, parent_id: str | None, entry: JSONObject) -> Node:
    role = text_of(entry.get("role"))
    node = Node(
        id=node_id,
        parent_id=parent_id,
        kind=NodeKind.NOTHING,
        children=texts_of(entry.get("childrenIds")),
        created_at=instant_of(entry.get("timestamp")),
        model=text_of(entry.get("model")) if role == "assistant" else "",
    )
    parts = _files(entry) + _parts(node_id, entry)
    if not parts:
        return node
    if role in {"user", "assistant"}:
        node.kind, node.parts = (NodeKind.PERSON if role == "user" else NodeKind.MODEL), parts
    else:
        node.kind, node.parts = NodeKind.HIDDEN, [hidden_part(role, _content_text(entry.get("content")))]
    return node


def _parts(node_id: str, entry: JSONObject) -> list[Content]:
    output = objects_of(entry.get("output"))
    if output:
        parts = _from_output(node_id, output)
    elif entry.get("role") == "assistant":
        parts = list(_from_details(node_id, _content_text(entry.get("content"))))
    else:
        parts = list(_from_content(entry.get("content")))
    error = entry.get("error")
    text = text_of(error) or text_of(object_of(error).get("content")) or text_of(object_of(error).get("message"))
    return [*parts, text_part(f"> {text}")] if text else parts


def _from_content(content: JSONValue) -> Iterator[Content]:
    if isinstance(content, str):
        if content.strip():
            yield text_part(content)
        return
    for each in objects_of(content):
        url = text_of(object_of(each.get("image_url")).get("url"))
        if text_of(each.get("text")):
            yield text_part(each["text"])
        elif url:
            yield FileRef(name="image", url=url, key=url)
        else:
            yield other_part(each)


def _content_text(content: JSONValue) -> str:
    texts = [part.get("text", "") for part in _from_content(content) if not isinstance(part, FileRef)]
    return "\n\n".join(text for text in texts if text)


def _from_details(node_id: str, text: str) -> Iterator[Part]:
    """The reasoning and the calls that older versions wrote into the text, and the text around them."""
    end = 0
    for place, match in enumerate(_DETAILS.finditer(text)):
        if between := text[end : match.start()].strip():
            yield text_part(between)
        end = match.end()
        attributes = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(match["attributes"])}
        body = _SUMMARY.sub("", match["body"], count=1).strip()
        if attributes["type"] == "reasoning":
            lines = [line.removeprefix(">").removeprefix(" ") for line in html.unescape(body).splitlines()]
            yield reasoning_part("\n".join(lines))
        else:
            yield _call(f"{node_id}-{place}", attributes, body)
    if rest := text[end:].strip():
        yield text_part(rest)


def _call(node_id: str, attributes: dict[str, str], body: str) -> Part:
    name = attributes.get("name") or attributes["type"]
    arguments = _decoded(attributes.get("arguments", "")) or {"input": html.unescape(body)}
    call = call_part(name, fitting_id(attributes.get("id") or node_id), arguments)
    result = attributes.get("result") or attributes.get("output")
    if result or attributes.get("done") == "true":
        settle(call, _decoded(result or ""))
    return call


def _decoded(text: str) -> JSONValue:
    """The value of JSON text, which is sometimes written as JSON twice; the text itself where it is none."""
    value: JSONValue = text
    for _ in range(2):
        try:
            value = load(value) if isinstance(value, str) and value.strip() else value
        except ValueError:
            break
    return value


def _from_output(node_id: str, output: list[JSONObject]) -> list[Content]:
    parts: list[Content] = []
    calls: dict[str, Part] = {}
    for place, item in enumerate(output):
        match item.get("type"):
            case "message":
                parts += [text_part(text) for text in _item_texts(item.get("content")) if text.strip()]
            case "reasoning":
                texts = [*_item_texts(item.get("summary")), *_item_texts(item.get("content"))]
                parts += [reasoning_part("\n\n".join(texts))] if any(texts) else []
            case "function_call":
                call_id = fitting_id(text_of(item.get("call_id")) or text_of(item.get("id")) or f"{node_id}-{place}")
                calls[call_id] = call_part(text_of(item.get("name")), call_id, _decoded(text_of(item.get("arguments"))))
                parts.append(calls[call_id])
            case "function_call_output":
                call_id = fitting_id(text_of(item.get("call_id")) or f"{node_id}-{place}")
                if call_id not in calls:
                    calls[call_id] = call_part(text_of(item.get("name")), call_id, {})
                    parts.append(calls[call_id])
                settle(calls[call_id], _output_value(item.get("output")))
            case "open_webui:code_interpreter":
                call = call_part("code_interpreter", fitting_id(f"{node_id}-{place}"), {"code": item.get("code")})
                settle(call, item.get("output"))
                parts.append(call)
            case _:
                parts.append(other_part(item))
    return parts


def _item_texts(content: JSONValue) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [text_of(each.get("text")) for each in objects_of(content) if text_of(each.get("text"))]


def _output_value(value: JSONValue) -> JSONValue:
    texts = _item_texts(value)
    return "\n".join(texts) if texts else value


def _files(entry: JSONObject) -> list[Content]:
    found: list[Content] = []
    for each in objects_of(entry.get("files")):
        file = object_of(each.get("file"))
        url = text_of(each.get("url"))
        name = text_of(each.get("name")) or text_of(file.get("filename")) or text_of(each.get("type")) or "file"
        text = text_of(object_of(file.get("data")).get("content")) or text_of(each.get("content"))
        key = text_of(each.get("id")) or url or name
        found.append(FileRef(name=name, key=key, url=url if url.startswith("data:") else "", text=text))
    return found
