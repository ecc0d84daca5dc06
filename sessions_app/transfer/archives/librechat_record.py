"""A conversation as LibreChat exports one: the object that its import and our own `librechat.py` read.

It has no place for the bytes of a file: those of text are written as text, of others the names stand in the message.
"""

from datetime import datetime

from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.messages.parts import is_tool, tool_name
from sessions_app.core.messages.shapes import Part
from sessions_app.transfer.archives.librechat import NO_PARENT
from sessions_app.transfer.archives.shapes import ArchivedMessage, Conversation, FileRef, LeftOut
from sessions_app.transfer.archives.stored import model_of, result_of
from sessions_app.transfer.archives.values import text_part
from thinkproject.kernel.jsonvalue import JSONObject, dump


def librechat_record(conversation: Conversation) -> JSONObject:
    """The object of one conversation. Counts the files that it leaves out."""
    messages = [_message(each, conversation) for each in conversation.messages]
    record: JSONObject = {
        "conversationId": conversation.id,
        "title": conversation.title,
        "createdAt": _instant(conversation.created_at),
        "updatedAt": _instant(conversation.updated_at),
        "currentMessageId": conversation.leaf_id,
        "branches": True,
        "recursive": False,
        "options": {},
        "messages": messages,
    }
    return record | ({"left_out": dict(conversation.left_out)} if conversation.left_out else {})


def _message(message: ArchivedMessage, conversation: Conversation) -> JSONObject:
    is_person = message.role == MessageRole.USER
    files = [part for part in message.parts if isinstance(part, FileRef)]
    kept = [ref for ref in files if ref.text]
    if len(kept) < len(files):
        conversation.left_out[LeftOut.FILE] += len(files) - len(kept)
    parts = [
        text_part(f"[{part.name}]") if isinstance(part, FileRef) else part for part in message.parts if part not in kept
    ]
    texts = [part.get("text", "") for part in parts if part["type"] == "text"]
    instant = _instant(message.created_at)
    made: JSONObject = {
        "messageId": message.id,
        "parentMessageId": message.parent_id or NO_PARENT,
        "conversationId": conversation.id,
        "sender": "User" if is_person else model_of(message) or "Assistant",
        "isCreatedByUser": is_person,
        "text": "\n\n".join(texts),
        "createdAt": instant,
        "updatedAt": instant,
        "error": False,
        "unfinished": False,
    }
    if not is_person:
        made |= {"model": model_of(message) or None, "content": [_piece(part) for part in parts]}
    if kept:
        made["files"] = [
            {"file_id": ref.key, "filename": ref.name, "type": "text/plain", "text": ref.text} for ref in kept
        ]
    return made


def _piece(part: Part) -> JSONObject:
    if part["type"] == "text":
        return {"type": "text", "text": part.get("text", "")}
    if not is_tool(part):
        return {"type": "think", "think": part.get("text", "")}
    call: JSONObject = {"id": part["toolCallId"], "name": tool_name(part), "type": "tool_call"}
    call["args"] = dump(part.get("input", {}))
    result = result_of(part)
    if result is not None:
        call |= {"output": result if isinstance(result, str) else dump(result), "progress": 1}
    return {"type": "tool_call", "tool_call": call}


def _instant(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
