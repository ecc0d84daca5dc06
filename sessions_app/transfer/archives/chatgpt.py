"""Conversations of ChatGPT: a tree of nodes in `mapping`, the shown one in `current_node`."""

from collections.abc import Iterator
from typing import Final

from sessions_app.transfer.archives.shapes import Content, FileRef, Node, NodeKind, ToolAnswer
from sessions_app.transfer.archives.values import (
    call_part,
    fitting_id,
    hidden_part,
    instant_of,
    object_of,
    objects_of,
    other_part,
    reasoning_part,
    text_of,
    text_part,
    texts_of,
)
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load

EVERYBODY: Final = "all"
_POINTERS: Final = ("asset_pointer", "audio_asset_pointer", "video_container_asset_pointer")


def is_chatgpt(value: JSONObject) -> bool:
    """Whether it is a conversation of ChatGPT."""
    return isinstance(value.get("mapping"), dict)


def chatgpt_nodes(value: JSONObject) -> Iterator[Node]:
    """The nodes of a conversation, in the order of the archive."""
    for node_id, entry in value["mapping"].items():
        node = _node(str(node_id), object_of(entry))
        if node.parent_id == "":
            node.parent_id = None
        yield node


def _node(node_id: str, entry: JSONObject) -> Node:
    message = object_of(entry.get("message"))
    metadata = object_of(message.get("metadata"))
    author = object_of(message.get("author"))
    role, recipient = text_of(author.get("role")), text_of(message.get("recipient")) or EVERYBODY
    node = Node(
        id=node_id,
        parent_id=text_of(entry.get("parent")) or None,
        children=texts_of(entry.get("children")),
        kind=NodeKind.NOTHING,
        created_at=instant_of(message.get("create_time")),
        model=text_of(metadata.get("model_slug")) if role == "assistant" else "",
    )
    parts = _parts(object_of(message.get("content")), _file_names(metadata))
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if role == "tool":
        node.kind, node.joins = NodeKind.RESULT, True
        node.answer, node.parts = _answer(message, text_of(author.get("name")), parts)
    elif role == "assistant" and recipient != EVERYBODY:
        node.kind, node.joins = NodeKind.MODEL, True
        node.parts = [call_part(recipient, fitting_id(node_id), _arguments(parts))]
    elif not parts:
        node.kind = NodeKind.NOTHING
    elif is_hidden or role not in {"user", "assistant"} or _is_context(message):
        node.kind, node.parts = NodeKind.HIDDEN, [hidden_part(role, _plain(parts))]
    else:
        node.kind = NodeKind.PERSON if role == "user" else NodeKind.MODEL
        node.parts, node.joins = parts, role == "assistant"
    return node


def _is_context(message: JSONObject) -> bool:
    kind = text_of(object_of(message.get("content")).get("content_type"))
    return kind in {"user_editable_context", "model_editable_context"}


def _parts(content: JSONObject, names: dict[str, str]) -> list[Content]:
    """The parts of a message, by the type of its content; types that are not known keep their text, else their data."""
    kind = text_of(content.get("content_type"))
    match kind:
        case "thoughts":
            return [reasoning_part(text) for text in _thoughts(content) if text]
        case "reasoning_recap":
            return [reasoning_part(text)] if (text := text_of(content.get("content"))) else []
        case "code":
            text = text_of(content.get("text"))
            language = text_of(content.get("language")).replace("unknown", "")
            return [text_part(f"```{language}\n{text}\n```")] if text.strip() else []
        case "execution_output" | "system_error":
            return _texts(content, "text")
        case "tether_quote" | "tether_browsing_display" | "sonic_webpage":
            return _texts(content, "title", "url", "text", "result", "summary")
        case "user_editable_context":
            return _texts(content, "user_profile", "user_instructions")
        case "model_editable_context":
            return _texts(content, "model_set_context")
    if isinstance(content.get("parts"), list):
        return [part for each in content["parts"] for part in _piece(each, names)]
    if text_of(content.get("text")):
        return [text_part(content["text"])]
    known = {key: value for key, value in content.items() if value not in (None, "", [], {}) and key != "content_type"}
    return [other_part(content)] if known else []


def _piece(value: JSONValue, names: dict[str, str]) -> list[Content]:
    if isinstance(value, str):
        return [text_part(value)] if value.strip() else []
    piece = object_of(value)
    if not piece:
        return []
    if piece.get("content_type") == "audio_transcription":
        return _texts(piece, "text")
    pointers = [piece.get(name) for name in _POINTERS if piece.get(name)]
    found = [pointer.get("asset_pointer") if isinstance(pointer, dict) else pointer for pointer in pointers]
    files = [_file(text_of(pointer), names) for pointer in found if text_of(pointer)]
    return list(files) or _texts(piece, "text") or [other_part(value)]


def _file(pointer: str, names: dict[str, str]) -> FileRef:
    """A file by its pointer, `file-service://file-x` or `sediment://file_x`."""
    key = pointer.rpartition("://")[2].partition("#")[0]
    return FileRef(key=key, name=names.get(key, key))


def _file_names(metadata: JSONObject) -> dict[str, str]:
    attachments = objects_of(metadata.get("attachments"))
    return {text_of(each.get("id")): text_of(each.get("name")) for each in attachments if text_of(each.get("name"))}


def attached_files(value: JSONObject) -> dict[str, list[FileRef]]:
    """The files that were attached to messages besides their parts, by the ids of their nodes."""
    found: dict[str, list[FileRef]] = {}
    for node_id, entry in value["mapping"].items():
        message = object_of(object_of(entry).get("message"))
        names = _file_names(object_of(message.get("metadata")))
        shown = dump(object_of(message.get("content"))) if names else ""
        files = [FileRef(key=key, name=name) for key, name in names.items() if key and key not in shown]
        if files:
            found[str(node_id)] = files
    return found


def _thoughts(content: JSONObject) -> Iterator[str]:
    for thought in objects_of(content.get("thoughts")):
        summary, text = text_of(thought.get("summary")), text_of(thought.get("content"))
        yield "\n\n".join(each for each in ((f"**{summary}**" if summary else ""), text) if each)


def _texts(content: JSONObject, *names: str) -> list[Content]:
    texts = [text for name in names if (text := text_of(content.get(name)).strip())]
    return [text_part("\n\n".join(texts))] if texts else []


def _plain(parts: list[Content]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, FileRef):
            texts.append(part.name)
        else:
            texts.append(part.get("text") or dump(part.get("data")))
    return "\n\n".join(texts)


def _arguments(parts: list[Content]) -> JSONValue:
    """The arguments of a call: an object where they are JSON of one, else the text."""
    text = _plain(parts)
    if text.startswith("```"):
        text = text.partition("\n")[2].removesuffix("\n```")
    try:
        value = load(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _answer(message: JSONObject, name: str, parts: list[Content]) -> tuple[ToolAnswer, list[Content]]:
    """The answer of a tool, and the files that it made."""
    files: list[Content] = [part for part in parts if isinstance(part, FileRef)]
    output = _plain([part for part in parts if not isinstance(part, FileRef)])
    is_error = object_of(message.get("content")).get("content_type") == "system_error"
    return ToolAnswer(tool=name, output=output, is_error=is_error), files
