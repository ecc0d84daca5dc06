"""Parts that tools add to the assistant's reply: after the text, each once, however often the turn was cut."""

from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from chat.core.loop.turn_state import TurnState
from chat.core.wire.chunks import Chunk
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool_calls import ToolResult

MAX_REPLY_PARTS: Final = 32

ReplyKey: TypeAlias = tuple[str, str]
"""What makes two parts the same one: the type, and the id or address."""


def key_of(part: Mapping[str, object]) -> ReplyKey:
    """The key of a part or of its chunk."""
    return str(part.get("type", "")), str(part.get("id") or part.get("sourceId") or part.get("url") or "")


def reply_of(result: ToolResult) -> JSONObject:
    """The field of a call's record that holds its parts; nothing where there are none."""
    return {"reply": list(result.reply)} if result.reply else {}


def recorded_reply(records: Mapping[str, JSONValue]) -> list[JSONObject]:
    """The parts of all settled calls, in the order in which these were settled; the first 32 distinct ones."""
    parts: dict[ReplyKey, JSONObject] = {}
    for record in records.values():
        for part in record.get("reply", ()) if isinstance(record, dict) else ():
            parts.setdefault(key_of(part), part)
    return list(parts.values())[:MAX_REPLY_PARTS]


def reply_keys(records: Mapping[str, JSONValue]) -> set[ReplyKey]:
    """The keys of the parts of all settled calls."""
    return {key_of(part) for part in recorded_reply(records)}


def reply_chunks(fold: TurnState, records: Mapping[str, JSONValue]) -> list[Chunk]:
    """The chunks of the parts that the message does not have yet. Folds them."""
    there = {key_of(part) for part in fold.message["parts"]}
    chunks = [cast("Chunk", part) for part in recorded_reply(records) if key_of(part) not in there]
    for chunk in chunks:
        fold.apply(chunk)
    return chunks
