"""Archives of other products, written by hand in the shapes that these products export."""

import base64
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63"
    "64f8ffbf1e00058302ff7b0bd6c30000000049454e44ae426082"
)
NO_PARENT = "00000000-0000-0000-0000-000000000000"


def zipped(files: Mapping[str, bytes | str | Any]) -> bytes:
    """A zip file; values that are no bytes are written as JSON."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return target.getvalue()


def gpt_node(
    node_id: str,
    parent: str | None,
    children: Iterable[str] = (),
    *,
    role: str = "",
    content: Any = "",
    name: str | None = None,
    recipient: str = "all",
    metadata: Any = None,
    create_time: Any = None,
) -> tuple[str, Any]:
    """A node of ChatGPT; without a role it has no message. `content`: a text or the whole content."""
    message = None
    if role:
        shape = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
        message = {
            "id": node_id,
            "author": {"role": role, "name": name, "metadata": {}},
            "create_time": create_time,
            "content": shape,
            "recipient": recipient,
        }
        if metadata is not None:
            message["metadata"] = metadata
    return node_id, {"id": node_id, "message": message, "parent": parent, "children": list(children)}


def gpt_conversation(conversation_id: str, nodes: Iterable[tuple[str, Any]], current: str, **facts: Any) -> Any:
    """A conversation of ChatGPT."""
    head = {"title": "Trip", "create_time": 1767000000.5, "update_time": 1767000900.25}
    return {**head, **facts, "conversation_id": conversation_id, "mapping": dict(nodes), "current_node": current}


def gpt_trip() -> Any:
    """A picture that is asked about, two answers, a hidden node in the middle and a null root."""
    hidden = {"is_visually_hidden_from_conversation": True}
    asked = {
        "content_type": "multimodal_text",
        "parts": [
            {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-Xy1", "width": 1},
            "Where is this?",
        ],
    }
    nodes = [
        gpt_node("root", None, ["n1"]),
        gpt_node("n1", "root", ["n2"], role="system", metadata=hidden),
        gpt_node(
            "n2",
            "n1",
            ["h", "n5"],
            role="user",
            content=asked,
            metadata={"attachments": [{"id": "file-Xy1", "name": "beach.png", "mimeType": "image/png"}]},
        ),
        gpt_node("h", "n2", ["n3"], role="system", content="Be brief.", metadata=hidden),
        gpt_node("n3", "h", role="assistant", content="Graz.", metadata={"model_slug": "m1"}, create_time=1767000001.5),
        gpt_node("n5", "n2", role="assistant", content="Perhaps Linz.", create_time=1767000100),
    ]
    return gpt_conversation("conv-trip", nodes, "n5")


def gpt_tools() -> Any:
    """An answer of many nodes: thoughts, a recap, a call, its result with a picture, a text; and one that branches."""
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "Plan", "content": "Add them."}]}
    code = {"content_type": "code", "language": "unknown", "text": "print(1 + 1)"}
    output = {"content_type": "execution_output", "text": "2"}
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_00ab"}
    nodes = [
        gpt_node("root", None, ["q"]),
        gpt_node("q", "root", ["t"], role="user", content="1 + 1?"),
        gpt_node("t", "q", ["r"], role="assistant", content=thoughts),
        gpt_node("r", "t", ["c"], role="assistant", content={"content_type": "reasoning_recap", "content": "For 2 s"}),
        gpt_node("c", "r", ["o1", "o2"], role="assistant", content=code, recipient="python"),
        gpt_node("o1", "c", ["a1"], role="tool", name="python", content=output),
        gpt_node("a1", "o1", role="assistant", content="It is 2."),
        gpt_node(
            "o2",
            "c",
            ["a2"],
            role="tool",
            name="python",
            content={"content_type": "multimodal_text", "parts": ["drawn", picture]},
        ),
        gpt_node("a2", "o2", ["u2"], role="assistant", content="See the picture."),
        gpt_node("u2", "a2", ["f"], role="user", content="Thanks"),
        gpt_node("f", "u2", role="assistant", content={"content_type": "future_kind", "payload": {"deep": [1, 2]}}),
    ]
    return gpt_conversation("conv-tools", nodes, "f", title="Sum", is_archived=True)


def chatgpt_zip() -> bytes:
    """The archive of one account: one list, attachments beside it, files that hold no conversations."""
    empty: Any = {"title": "Nothing", "conversation_id": "conv-empty", "mapping": {}, "current_node": None}
    return zipped(
        {
            "conversations.json": [gpt_trip(), empty, gpt_tools(), "no conversation"],
            "file-Xy1-beach.png": PNG,
            "user-1/file_00ab-sanitized.png": PNG,
            "user.json": {"id": "user-1", "email": "a@example.com"},
            "message_feedback.json": [{"id": "x", "rating": "thumbs_up"}],
        }
    )


def chatgpt_parts_zip() -> bytes:
    """The same kind of list in many files, one of them cut off, the picture missing."""
    cut = json.dumps([gpt_tools(), gpt_trip()])[:-200]
    ten = [{**gpt_trip(), "conversation_id": f"conv-{place}"} for place in range(10)]
    return zipped(
        {
            "conversations-2.json": cut.encode(),
            "conversations-10.json": ten[5:],
            "conversations-1.json": ten[:5],
        }
    )


def claude_list() -> Any:
    """Conversations of Claude: one linear with thoughts, a call and attachments, one with branches."""
    blocks = [
        {"type": "thinking", "thinking": "A search is needed."},
        {"type": "tool_use", "id": "toolu_1", "name": "web_search", "input": {"query": "linz"}},
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "A city."}]},
        {"type": "text", "text": "Linz is a city.", "citations": []},
        {"type": "token_budget"},
        {"type": "mystery", "payload": 1},
    ]
    linear = {
        "uuid": "cl-1",
        "name": "Linz",
        "created_at": "2026-01-02T10:00:00.123456Z",
        "updated_at": "2026-01-02T11:00:00+00:00",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "What is Linz?",
                "content": [{"type": "text", "text": "What is Linz?"}],
                "created_at": "2026-01-02T10:00:01Z",
                "attachments": [{"file_name": "notes.txt", "file_size": 5, "extracted_content": "My notes"}],
                "files": [{"file_name": "map.png"}],
            },
            {"uuid": "m2", "sender": "assistant", "text": "Linz is a city.", "content": blocks, "created_at": None},
            {"uuid": "m3", "sender": "human", "text": "Old shape", "content": []},
        ],
    }
    tree = {
        "uuid": "cl-2",
        "name": "",
        "created_at": "2026-01-03T10:00:00Z",
        "updated_at": "2026-01-03T10:00:00Z",
        "current_leaf_message_uuid": "b",
        "chat_messages": [
            {"uuid": "q", "sender": "human", "text": "Hi", "parent_message_uuid": NO_PARENT},
            {"uuid": "a", "sender": "assistant", "text": "One", "parent_message_uuid": "q"},
            {"uuid": "b", "sender": "assistant", "text": "Two", "parent_message_uuid": "q"},
            {"uuid": "c", "sender": "human", "text": "Below one", "parent_message_uuid": "a"},
        ],
    }
    none = {"uuid": "cl-3", "name": "Empty", "chat_messages": []}
    return [linear, tree, none]


def claude_zip() -> bytes:
    """The archive of an account of Claude."""
    return zipped({"conversations.json": claude_list(), "users.json": [{"uuid": "u"}], "projects.json": []})


def open_webui_messages() -> Any:
    """The messages of one chat by their ids: output items, and reasoning and calls as older versions wrote them."""
    output = [
        {"type": "reasoning", "summary": [], "content": [{"type": "output_text", "text": "Look it up."}]},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city": "Linz"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "Rain"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It rains."}]},
    ]
    details = (
        '<details type="reasoning" done="true" duration="3">\n<summary>Thought for 3 seconds</summary>\n'
        "&gt; First\n&gt; then\n</details>\nHello <b>you</b>\n"
        '<details type="tool_calls" done="true" id="c9" name="clock" arguments="&quot;{\\&quot;tz\\&quot;: 1}&quot;" '
        'result="&quot;12:00&quot;">\n<summary>Tool Executed</summary>\n</details>\nDone.'
    )
    return {
        "u1": {
            "id": "u1",
            "parentId": None,
            "childrenIds": ["b1", "b2"],
            "role": "user",
            "content": "Weather?",
            "timestamp": 1767000000,
            "models": ["m1", "m2"],
            "files": [
                {"type": "image", "url": "data:image/png;base64," + _base64(PNG)},
                {"type": "file", "id": "f1", "name": "a.txt", "file": {"data": {"content": "Text of a"}}},
            ],
        },
        "b2": {"id": "b2", "parentId": "u1", "childrenIds": [], "role": "assistant", "content": details, "model": "m2"},
        "b1": {
            "id": "b1",
            "parentId": "u1",
            "childrenIds": ["u3"],
            "role": "assistant",
            "content": "It rains.",
            "output": output,
            "model": "m1",
            "done": True,
        },
        "u3": {"id": "u3", "parentId": "b1", "childrenIds": ["b4"], "role": "user", "content": "And tomorrow?"},
        "b4": {
            "id": "b4",
            "parentId": "u3",
            "childrenIds": [],
            "role": "assistant",
            "content": "",
            "error": {"content": "Model not found"},
        },
    }


def open_webui_list() -> Any:
    """Chats of Open WebUI: one with output items and two models side by side, one as older versions wrote it."""
    chat = {
        "title": "Weather",
        "models": ["m1", "m2"],
        "system": "You are terse.",
        "history": {"messages": open_webui_messages(), "currentId": "b4"},
        "messages": [],
    }
    record = {
        "id": "ow-1",
        "user_id": "u",
        "title": "Weather",
        "chat": chat,
        "created_at": 1767000000,
        "updated_at": 1767000500,
        "archived": False,
        "pinned": True,
    }
    linear = {
        "id": "ow-2",
        "title": "Old",
        "timestamp": 1767000000123,
        "models": ["m"],
        "messages": [{"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"}],
    }
    none = {"id": "ow-3", "title": "Empty", "chat": {"history": {"messages": {}, "currentId": None}}}
    return [record, {"id": "ow-2", "chat": linear}, none]


def librechat_flat() -> Any:
    """A conversation of LibreChat with branches, content parts and a call."""
    content = [
        {"type": "think", "think": "Use the tool."},
        {"type": "tool_call", "tool_call": {"id": "t1", "name": "sum", "args": '{"a": 1}', "output": "1", "type": "x"}},
        {"type": "text", "text": {"value": "It is one."}},
    ]
    return {
        "conversationId": "lc-1",
        "endpoint": "agents",
        "title": "Sums",
        "exportAt": "Tue Jan 06 2026 10:00:00 GMT+0100",
        "branches": True,
        "recursive": False,
        "options": {"promptPrefix": "Count well.", "model": "m"},
        "messages": [
            {
                "messageId": "u1",
                "parentMessageId": NO_PARENT,
                "isCreatedByUser": True,
                "sender": "User",
                "text": "1?",
                "createdAt": "2026-01-06T09:00:00.000Z",
                "files": [{"file_id": "f-1", "filename": "sum.png", "type": "image/png"}],
            },
            {"messageId": "a1", "parentMessageId": "u1", "isCreatedByUser": False, "text": "", "content": content},
            {"messageId": "a2", "parentMessageId": "u1", "isCreatedByUser": False, "text": "One.", "model": "m"},
            {"messageId": "u3", "parentMessageId": "a1", "isCreatedByUser": True, "text": "Sure?"},
            {"messageId": "u9", "parentMessageId": "gone", "isCreatedByUser": True, "text": "An orphan"},
        ],
    }


def librechat_tree() -> Any:
    """The same product's recursive form."""
    leaf = {"messageId": "r3", "isCreatedByUser": True, "sender": "User", "text": "Three", "children": []}
    other = {"messageId": "r4", "isCreatedByUser": True, "sender": "User", "text": "Other", "children": []}
    middle = {"messageId": "r2", "isCreatedByUser": False, "text": "Two", "children": [leaf, other]}
    first = {"messageId": "r1", "isCreatedByUser": True, "text": "One", "children": [middle]}
    return {"conversationId": "lc-2", "title": "Deep", "recursive": True, "messagesTree": [first]}


def encoded(value: Any) -> bytes:
    """JSON as a product writes it."""
    return json.dumps(value).encode()


def long_gpt_list(count: int, *, text_bytes: int = 2_000) -> Iterable[bytes]:
    """So many conversations of 40 messages each as the pieces of one list, for archives of any size."""
    text = 'All about the weather, \\"quoted\\" and {[bracketed]}. ' * (text_bytes // 50)
    yield b"["
    for place in range(count):
        nodes = [gpt_node("root", None, ["n0"])]
        for at in range(40):
            below = [f"n{at + 1}"] if at < 39 else []
            above = f"n{at - 1}" if at else "root"
            role = "assistant" if at % 2 else "user"
            nodes.append(gpt_node(f"n{at}", above, below, role=role, content=f"{place} {at} {text}"))
        yield (b"," if place else b"") + encoded(gpt_conversation(f"long-{place}", nodes, "n39", title=f"Long {place}"))
    yield b"]"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
