"""Conversations of Claude: `chat_messages` in order, in newer archives with the ids of their parents."""

from collections.abc import Iterator
from typing import Final

from sessions_app.core.messages.shapes import Part
from sessions_app.transfer.archives.shapes import Content, FileRef, Node, NodeKind
from sessions_app.transfer.archives.values import (
    call_part,
    fitting_id,
    instant_of,
    object_of,
    objects_of,
    other_part,
    reasoning_part,
    settle,
    text_of,
    text_part,
)
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

_SILENT: Final = frozenset({"token_budget", "flag"})
"""Blocks that say something to the product alone."""


def is_claude(value: JSONObject) -> bool:
    """Whether it is a conversation of Claude."""
    return isinstance(value.get("chat_messages"), list)


def claude_nodes(value: JSONObject) -> Iterator[Node]:
    """The messages of a conversation as nodes."""
    entries = objects_of(value["chat_messages"])
    ids = {text_of(entry.get("uuid")) for entry in entries}
    above: str | None = None
    for place, entry in enumerate(entries):
        node_id = text_of(entry.get("uuid")) or f"message-{place}"
        parent_id = text_of(entry.get("parent_message_uuid"))
        if "parent_message_uuid" in entry:
            above = parent_id if parent_id in ids else None
        yield _node(node_id, above, entry)
        above = node_id


def _node(node_id: str, parent_id: str | None, entry: JSONObject) -> Node:
    parts = _parts(node_id, entry)
    kind = NodeKind.PERSON if entry.get("sender") == "human" else NodeKind.MODEL
    return Node(
        id=node_id,
        parent_id=parent_id,
        kind=kind if parts else NodeKind.NOTHING,
        parts=parts,
        created_at=instant_of(entry.get("created_at")),
        model=text_of(entry.get("model")),
    )


def _parts(node_id: str, entry: JSONObject) -> list[Content]:
    parts: list[Content] = []
    calls: list[Part] = []
    for place, block in enumerate(objects_of(entry.get("content"))):
        match block.get("type"):
            case "tool_use":
                call_id = text_of(block.get("id")) or f"{node_id}-{place}"
                calls.append(call_part(text_of(block.get("name")), fitting_id(call_id), block.get("input")))
                parts.append(calls[-1])
            case "tool_result":
                _settle(calls, parts, block, f"{node_id}-{place}")
            case _:
                parts += _block(block)
    text = text_of(entry.get("text"))
    if text.strip() and not any(not isinstance(part, FileRef) and part["type"] == "text" for part in parts):
        parts.append(text_part(text))  # older archives have the text alone
    return [*_files(entry), *parts]


def _block(block: JSONObject) -> list[Content]:
    kind = block.get("type")
    if kind == "text":
        return [text_part(block["text"])] if text_of(block.get("text")).strip() else []
    if kind == "thinking":
        text = text_of(block.get("thinking"))
        return [reasoning_part(text)] if text else []
    if kind in _SILENT:
        return []
    text = text_of(block.get("text"))
    return [text_part(text)] if text else [other_part(block)]


def _settle(calls: list[Part], parts: list[Content], block: JSONObject, call_id: str) -> None:
    """Give a call its result: the one that is named, else the first without."""
    name = text_of(block.get("tool_use_id"))
    waiting = [call for call in calls if call["state"] == "input-available"]
    call = next((call for call in waiting if call["toolCallId"] == name), None)
    if call is None and not name:
        call = next(iter(waiting), None)
    if call is None:
        call = call_part(text_of(block.get("name")), fitting_id(name or call_id), {})
        parts.append(call)
    settle(call, _output(block.get("content")), is_error=block.get("is_error") is True)


def _output(content: JSONValue) -> JSONValue:
    """The texts of a result, where it has nothing else."""
    if not isinstance(content, list):
        return content
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return "\n".join(map(str, texts)) if len(texts) == len(content) else content


def _files(entry: JSONObject) -> list[Content]:
    """Attachments, of which the archive has the text, and files, of which it has the name."""
    attached = [
        FileRef(name=text_of(each.get("file_name")) or "attachment.txt", text=text_of(each.get("extracted_content")))
        for each in objects_of(entry.get("attachments"))
    ]
    named = {ref.name for ref in attached}
    for each in objects_of(entry.get("files_v2")) or objects_of(entry.get("files")):
        name = text_of(object_of(each).get("file_name"))
        if name and name not in named:
            attached.append(FileRef(name=name, key=text_of(each.get("file_uuid")) or name))
    return list(attached)
