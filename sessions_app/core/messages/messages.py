"""The stored and the client form of a message, and validation of client input.

A *UI message* is the dict `{"id", "role", "parts", "metadata"?}` of the AI SDK. `parse_message` is for input from
outside: it refuses, with a reason, what the product could not store, show or send to a model. NUL characters and lone
surrogates inside texts are kept as they are; in an id they are refused, because ids are looked up in the database.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sessions_app.core.messages.parts import part_problem
from sessions_app.core.messages.shapes import AUTHOR, Content, Message, Part
from sessions_app.errors import MessageInvalid
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from thinkproject.kernel.phrases import Phrase

MAX_ID_CHARS = 128
MAX_PARTS = 1000
MAX_DEPTH = 64
MAX_BYTES = 16 * 1024 * 1024


class MessageRole(StrEnum):
    """The author's role. The values are those on the wire."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message of a session, read. `parent_id` and `id` are message ids, never row ids.

    A queued message (`placed` false) is accepted but stands in no path yet; its depth says nothing. `session_id` is
    that of the session it belongs to: in a fork, of a shared message, another one's.
    """

    id: str
    role: str
    parts: tuple[Part, ...]
    metadata: JSONObject | None
    parent_id: str | None
    depth: int
    turn_id: str
    placed: bool
    queued_position: int | None
    created_at: datetime
    change_seq: int
    session_id: str | None = None
    pruned_calls: tuple[str, ...] = ()
    author: str = ""  # opaque; empty: the owner of the session

    def to_ui(self) -> Message:
        """Give the message as clients know it."""
        message: Message = {"id": self.id, "role": self.role, "parts": list(self.parts)}
        if self.metadata is not None:
            message["metadata"] = self.metadata
        return by_author(message, self.author)


def by_author(message: Message, author: str) -> Message:
    """The message with its author in its metadata, where that is not the owner of the session."""
    return {**message, "metadata": {**(message.get("metadata") or {}), AUTHOR: author}} if author else message


def without_author(metadata: JSONObject) -> JSONObject:
    """Metadata as it is stored: an author is known from the row alone, never from what was sent."""
    return {key: value for key, value in metadata.items() if key != AUTHOR}


def to_ui(message_id: str, role: str, content: Content, author: str = "") -> Message:
    """Build a UI message from a row."""
    message: Message = {"id": message_id, "role": role, "parts": content["parts"]}
    metadata = content.get("metadata")
    if metadata is not None:
        message["metadata"] = metadata
    return by_author(message, author)


def to_content(message: Message) -> Content:
    """The content column of a UI message."""
    content: Content = {"parts": message["parts"]}
    if message.get("metadata") is not None:
        content["metadata"] = message["metadata"]
    return content


def is_message_id(value: JSONValue) -> bool:
    """Whether a value can be a message's id: text, not empty, at most 128 characters, storable everywhere."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID_CHARS:
        return False
    return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)


def message_ids(values: Iterable[JSONValue]) -> list[str]:
    """Filter valid message ids, without duplicates, in order."""
    return list(dict.fromkeys(value for value in values if is_message_id(value)))


def parse_message(value: JSONValue, *, max_bytes: int = MAX_BYTES) -> Message:
    """Check a UI message that came from outside; the result holds its id, role, parts and metadata and nothing else.

    Errors: `MessageInvalid`, whose text says what was expected and found.
    """
    if not isinstance(value, dict):
        raise MessageInvalid(Phrase("A message must be a JSON object, not {kind}.", kind=_kind(value)))
    message: Message = {
        "id": _checked_id(value.get("id")),
        "role": _checked_role(value.get("role")),
        "parts": _checked_parts(value.get("parts")),
    }
    metadata = value.get("metadata")
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise MessageInvalid(
                Phrase("A message's metadata must be a JSON object, not {kind}.", kind=_kind(metadata))
            )
        message["metadata"] = metadata
    _check_bounds(message, max_bytes)
    return message


def _checked_id(value: JSONValue) -> str:
    if not is_message_id(value):
        raise MessageInvalid(
            Phrase("A message's id must be text of 1 to {limit} characters, without NUL.", limit=MAX_ID_CHARS)
        )
    return str(value)


def _checked_role(value: JSONValue) -> str:
    if not isinstance(value, str) or value not in set(MessageRole):
        raise MessageInvalid("A message's role must be 'user', 'assistant' or 'system'.")
    return value


def _checked_parts(value: JSONValue) -> list[Part]:
    if not isinstance(value, list):
        raise MessageInvalid(Phrase("A message's parts must be a list, not {kind}.", kind=_kind(value)))
    if len(value) > MAX_PARTS:
        raise MessageInvalid(
            Phrase("A message may have {limit} parts, not {count}.", limit=MAX_PARTS, count=len(value))
        )
    for index, part in enumerate(value):
        problem = part_problem(part)
        if problem:
            raise MessageInvalid(
                Phrase("Part {index} of the message {problem}.", index=index, problem=problem), part=index
            )
    return value


def _check_bounds(message: Message, max_bytes: int) -> None:
    if not is_within_depth(message, MAX_DEPTH):
        raise MessageInvalid(Phrase("The message is nested more than {limit} levels deep.", limit=MAX_DEPTH))
    try:
        size = len(dump(message).encode())
    except (TypeError, ValueError) as error:
        raise MessageInvalid(Phrase("The message is not JSON: {error}.", error=error)) from error
    if size > max_bytes:
        raise MessageInvalid(
            Phrase("The message has {size} bytes; at most {limit} are accepted.", size=size, limit=max_bytes),
            max_bytes=max_bytes,
        )


def is_within_depth(value: JSONValue, max_depth: int) -> bool:
    """Whether no value lies deeper than so many containers. Works on any depth without recursion."""
    level: list[JSONValue] = [value]
    for _ in range(max_depth + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return True
    return False


def _kind(value: JSONValue) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", type(None): "nothing"}
    return names.get(type(value), "a number")
