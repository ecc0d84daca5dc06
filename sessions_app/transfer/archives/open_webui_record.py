"""A conversation as Open WebUI exports one chat: the record that its import and our own `open_webui.py` read.

Answers are written twice, as its versions read them: in `output`, item by item, and in `content`, where reasoning and
calls are `<details>`. Files are data URLs. What is left out is counted in `meta`, which it keeps as it is.
"""

import html

from sessions_app.core.messages.messages import MessageRole
from sessions_app.core.messages.parts import is_tool, tool_name
from sessions_app.core.messages.shapes import Part
from sessions_app.transfer.archives.shapes import ArchivedMessage, Conversation, FileRef
from sessions_app.transfer.archives.stored import model_of, result_of, seconds_of
from thinkproject.kernel.jsonvalue import JSONObject, dump


def open_webui_record(conversation: Conversation) -> JSONObject:
    """The record of one chat."""
    children: dict[str, list[str]] = {}
    for message in conversation.messages:
        children.setdefault(message.parent_id or "", []).append(message.id)
    messages = {each.id: _message(each, children.get(each.id, [])) for each in conversation.messages}
    begun = seconds_of(conversation.created_at)
    return {
        "id": conversation.id,
        "title": conversation.title,
        "chat": {
            "id": conversation.id,
            "title": conversation.title,
            "models": list(dict.fromkeys(filter(None, map(model_of, conversation.messages)))),
            "history": {"messages": messages, "currentId": conversation.leaf_id},
            "messages": [messages[name] for name in _path(conversation)],
            "timestamp": begun * 1000,
        },
        "created_at": begun,
        "updated_at": seconds_of(conversation.updated_at),
        "archived": conversation.is_archived,
        "pinned": conversation.is_pinned,
        "meta": {"left_out": dict(conversation.left_out)} if conversation.left_out else {},
        "folder_id": None,
    }


def _path(conversation: Conversation) -> list[str]:
    """The messages of the shown path, from its beginning."""
    parents = {each.id: each.parent_id for each in conversation.messages}
    path: list[str] = []
    at: str | None = conversation.leaf_id
    while at in parents:
        path.append(at)
        at = parents[at]
    return path[::-1]


def _message(message: ArchivedMessage, children: list[str]) -> JSONObject:
    parts = [part for part in message.parts if not isinstance(part, FileRef)]
    made: JSONObject = {
        "id": message.id,
        "parentId": message.parent_id,
        "childrenIds": children,
        "role": message.role,
        "content": "\n\n".join(_words(part) for part in parts),
        "timestamp": seconds_of(message.created_at),
    }
    files = [_file(part) for part in message.parts if isinstance(part, FileRef)]
    if files:
        made["files"] = files
    if message.role == MessageRole.ASSISTANT:
        made |= {"model": model_of(message), "done": True, "output": [item for part in parts for item in _items(part)]}
    return made


def _file(ref: FileRef) -> JSONObject:
    if ref.url.startswith("data:image/"):
        return {"type": "image", "name": ref.name, "url": ref.url}
    data = {"content": ref.text} if ref.text else {}
    return {"type": "file", "name": ref.name, "url": ref.url, "file": {"filename": ref.name, "data": data}}


def _items(part: Part) -> list[JSONObject]:
    if not is_tool(part):
        content = [{"type": "output_text", "text": part.get("text", "")}]
        facts = {"type": "message", "role": "assistant"} if part["type"] == "text" else {"type": "reasoning"}
        return [{**facts, "status": "completed", "content": content}]
    call_id = part["toolCallId"]
    call = {"type": "function_call", "id": call_id, "call_id": call_id, "name": tool_name(part)}
    items: list[JSONObject] = [{**call, "arguments": dump(part.get("input", {})), "status": "completed"}]
    result = result_of(part)
    if result is not None:
        text = result if isinstance(result, str) else dump(result)
        output = [{"type": "input_text", "text": text}]
        items.append({"type": "function_call_output", "call_id": call_id, "output": output, "status": "completed"})
    return items


def _words(part: Part) -> str:
    if is_tool(part):
        result = result_of(part)
        facts = {
            "done": "false" if result is None else "true",
            "id": part["toolCallId"],
            "name": tool_name(part),
            "arguments": dump(part.get("input", {})),
            "result": "" if result is None else dump(result),
        }
        attributes = " ".join(f'{key}="{html.escape(value)}"' for key, value in facts.items())
        return f'<details type="tool_calls" {attributes}>\n<summary>Tool Executed</summary>\n</details>'
    text = part.get("text", "")
    if part["type"] == "text":
        return text
    quoted = "\n".join(f"> {line}" for line in html.escape(text, quote=False).splitlines())
    return f'<details type="reasoning" done="true">\n<summary>Thought</summary>\n{quoted}\n</details>'
