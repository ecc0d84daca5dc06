"""Content of the Agent Client Protocol, from and to messages. Pure.

Source: agentclientprotocol.com, "Content" and "Tool Calls" (protocol version 1).
"""

from collections.abc import Sequence
from typing import Final

from acp.helpers import ContentBlock, ToolCallContentVariant, text_block, tool_content, tool_diff_content
from acp.schema import (
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PlanEntry,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
    ToolCallLocation,
    ToolKind,
)

from chat.errors import InputInvalid
from sessions_app.core.messages.shapes import NewMessage, Part
from thinkproject.kernel.jsonvalue import JSONValue, dump
from tools_app.core.todos import todos_in

MAX_TITLE_CHARS: Final = 100

_KINDS: Final[dict[str, ToolKind]] = {
    "read": "read",
    "list": "search",
    "find": "search",
    "grep": "search",
    "write": "edit",
    "edit": "edit",
    "delete": "delete",
    "bash": "execute",
    "run_command": "execute",
    "execute": "execute",
    "fetch_page": "fetch",
    "web_search": "search",
}
_STATUSES: Final = {"in_progress": "in_progress", "completed": "completed"}


def message_of(blocks: Sequence[ContentBlock]) -> NewMessage:
    """The message of a prompt. Errors: `InputInvalid` for content that was not offered to the client (sounds)."""
    return {"role": "user", "parts": [_part(block) for block in blocks]}


def text_of(blocks: Sequence[ContentBlock]) -> str:
    """The text of a prompt that is nothing but text; empty for any other."""
    texts = [block.text for block in blocks if isinstance(block, TextContentBlock)]
    return "".join(texts).strip() if len(texts) == len(blocks) else ""


def _part(block: ContentBlock) -> Part:
    match block:
        case TextContentBlock():
            return {"type": "text", "text": block.text}
        case ResourceContentBlock():
            return {"type": "text", "text": f"[{block.title or block.name}]({block.uri})"}
        case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
            return {"type": "text", "text": f'<file uri="{resource.uri}">\n{resource.text}\n</file>'}
        case EmbeddedResourceContentBlock(resource=resource):
            return _file(resource.mime_type or "application/octet-stream", resource.blob)
        case ImageContentBlock():
            return _file(block.mime_type, block.data)
        case _:
            raise InputInvalid("Sounds cannot be sent.")


def _file(media_type: str, data: str) -> Part:
    return {"type": "file", "mediaType": media_type, "url": f"data:{media_type};base64,{data}"}


def kind_of(tool: str) -> ToolKind:
    """The kind of a tool, from which a client chooses a sign."""
    return _KINDS.get(tool, "other")


def title_of_call(tool: str, given: JSONValue) -> str:
    """The title of a call: the tool, and the path or the arguments."""
    path = path_of(given)
    words = path or ("" if given in (None, {}) else " ".join(dump(given).split()))
    title = f"{tool} {words}".rstrip()
    return title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1]}…"


def path_of(given: JSONValue) -> str:
    """The path of the workspace that a call is about; empty for none."""
    path = given.get("path") if isinstance(given, dict) else None
    return path if isinstance(path, str) and path.startswith("/") else ""


def on_disk(root: str, path: str) -> str:
    """A path of the workspace as one of the machine."""
    return f"{root.rstrip('/')}/{path.removeprefix('/workspace/').lstrip('/')}"


def locations_of(root: str, given: JSONValue) -> list[ToolCallLocation] | None:
    """The file that a call is about, for editors that follow the agent."""
    path = path_of(given)
    return [ToolCallLocation(path=on_disk(root, path))] if path else None


def change_of(root: str, tool: str, given: JSONValue) -> list[ToolCallContentVariant]:
    """The change that a call asks for, as a diff; nothing for calls that change no file."""
    path = path_of(given)
    if not path or not isinstance(given, dict):
        return []
    if tool == "write" and isinstance(given.get("content"), str):
        return [tool_diff_content(on_disk(root, path), given["content"])]
    if tool == "edit" and isinstance(given.get("new_string"), str):
        return [tool_diff_content(on_disk(root, path), given["new_string"], str(given.get("old_string") or ""))]
    return []


def output_content(output: JSONValue) -> list[ToolCallContentVariant]:
    """Give what a tool returned, as text."""
    return [tool_content(text_block(output if isinstance(output, str) else dump(output)))]


def has_failed(output: JSONValue) -> bool:
    """Whether an output says that the call did nothing, as those of file tools do."""
    return isinstance(output, dict) and isinstance(output.get("error"), str)


def plan_of(output: JSONValue) -> list[PlanEntry]:
    """The entries of a to-do list. What was cancelled is not part of a plan."""
    return [
        PlanEntry.model_validate(
            {
                "content": str(each.get("content") or ""),
                "status": _STATUSES.get(str(each.get("status")), "pending"),
                "priority": each["priority"] if each.get("priority") in ("high", "low") else "medium",
            }
        )
        for each in todos_in(output)
        if each.get("status") != "cancelled"
    ]
