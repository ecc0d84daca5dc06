"""Conversations of LibreChat: messages that name their parents, flat or inside of each other."""

from collections.abc import Iterator
from typing import Final

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
)
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, load

NO_PARENT: Final = "00000000-0000-0000-0000-000000000000"
SYSTEM_NODE: Final = "system"


def is_librechat(value: JSONObject) -> bool:
    """Whether it is a conversation of LibreChat."""
    messages = value.get("messagesTree", value.get("messages"))
    return isinstance(messages, list) and ("conversationId" in value or "recursive" in value or "branches" in value)


def librechat_nodes(value: JSONObject) -> Iterator[Node]:
    """The messages of a conversation as nodes, in the order of the file; children directly behind their parents."""
    system = text_of(object_of(value.get("options")).get("promptPrefix")).strip()
    if system:
        yield Node(id=SYSTEM_NODE, parent_id=None, kind=NodeKind.HIDDEN, parts=[hidden_part("system", system)])
    waiting: list[tuple[JSONObject, str | None]] = [
        (each, None) for each in reversed(objects_of(value.get("messagesTree", value.get("messages"))))
    ]
    count = 0
    while waiting:
        entry, above = waiting.pop()
        count += 1
        node_id = text_of(entry.get("messageId")) or f"message-{count}"
        parent_id = text_of(entry.get("parentMessageId")) or above
        parent_id = None if parent_id in {NO_PARENT, "", None} else parent_id
        yield _node(node_id, parent_id or (SYSTEM_NODE if system else None), entry)
        waiting += [(child, node_id) for child in reversed(objects_of(entry.get("children")))]


def _node(node_id: str, parent_id: str | None, entry: JSONObject) -> Node:
    is_person = entry.get("isCreatedByUser") is True or (
        "isCreatedByUser" not in entry and text_of(entry.get("sender")).lower() == "user"
    )
    parts = _files(entry) + _parts(node_id, entry)
    kind = NodeKind.PERSON if is_person else NodeKind.MODEL
    return Node(
        id=node_id,
        parent_id=parent_id,
        kind=kind if parts else NodeKind.NOTHING,
        parts=parts,
        created_at=instant_of(entry.get("createdAt")),
        model="" if is_person else text_of(entry.get("model")),
    )


def _parts(node_id: str, entry: JSONObject) -> list[Content]:
    content = objects_of(entry.get("content"))
    parts = [part for place, each in enumerate(content) for part in _piece(f"{node_id}-{place}", each)]
    text = text_of(entry.get("text"))
    if text.strip() and not parts:
        return [text_part(text)]
    return parts


def _piece(name: str, value: JSONObject) -> list[Content]:
    kind = text_of(value.get("type"))
    inner = value.get(kind)
    text = text_of(inner) or text_of(object_of(inner).get("value"))
    match kind:
        case "text":
            return [text_part(text)] if text.strip() else []
        case "think":
            return [reasoning_part(text)] if text else []
        case "tool_call":
            return [_call(name, object_of(inner))]
        case "error":
            return [text_part(f"> {text}")] if text else []
        case "image_file":
            return [_file(object_of(inner))]
    return [other_part(value)]


def _call(name: str, call: JSONObject) -> Content:
    function = object_of(call.get("function"))
    tool = text_of(call.get("name")) or text_of(function.get("name")) or text_of(call.get("type"))
    part = call_part(tool, fitting_id(text_of(call.get("id")) or name), _arguments(call.get("args", function)))
    output = call.get("output", function.get("output"))
    if output is not None or call.get("progress") == 1:
        settle(part, "" if output is None else output)
    return part


def _arguments(value: JSONValue) -> JSONValue:
    value = object_of(value).get("arguments", value) if isinstance(value, dict) else value
    if isinstance(value, str):
        try:
            return load(value)
        except ValueError:
            return value
    return value if value is not None else {}


def _files(entry: JSONObject) -> list[Content]:
    return [_file(each) for each in objects_of(entry.get("files"))]


def _file(value: JSONObject) -> FileRef:
    name = text_of(value.get("filename")) or text_of(value.get("filepath")).rpartition("/")[2] or "file"
    return FileRef(name=name, key=text_of(value.get("file_id")) or name, text=text_of(value.get("text")))
