"""The one neutral shape that the archives of all products are read into.

A reader makes `Node`s of a product's messages; `assembling.py` makes of them the messages that a session holds. Files
are named, not read: the importer asks the archive for them.
"""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum
from typing import TypeAlias

from sessions_app.core.messages.shapes import Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


class Product(StrEnum):
    """The products whose archives are read. The values are stored."""

    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    OPEN_WEBUI = "open-webui"
    LIBRECHAT = "librechat"


class LeftOut(StrEnum):
    """Kinds of what an archive has and a conversation does not show. The values are those of reports."""

    HIDDEN = "hidden"  # kept with the next message, neither shown nor sent to models
    EMPTY = "empty"  # nodes without any content
    UNKNOWN = "unknown"  # content of a kind that is not known: kept as data, not shown
    FILE = "file"  # files that messages name and the archive does not have
    LINK = "link"  # messages whose parent is not there: they begin a tree of their own
    SHORTENED = "shortened"  # messages too large for a row


class NodeKind(Enum):
    """A node's role in the conversation."""

    PERSON = 1
    MODEL = 2
    RESULT = 3  # the answer of a tool
    HIDDEN = 4  # not shown where it comes from: instructions, context
    NOTHING = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRef:
    """A file that a message names. Its bytes are in the archive under `key`, in `url`, in `text`, or nowhere.

    `key`: the beginning of the file's name in the archive. `url`: a data URL. `text`: what was read out of it.
    """

    name: str
    key: str = ""
    url: str = ""
    text: str = ""


Content: TypeAlias = Part | FileRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """The answer of a tool to a call of an earlier node. `call_id`: empty where the product does not say which."""

    tool: str
    output: JSONValue
    call_id: str = ""
    is_error: bool = False


@dataclass(slots=True, kw_only=True)
class Node:
    """One message as a product has it. `joins`: one answer of the model may be several such nodes in a row."""

    id: str
    parent_id: str | None
    kind: NodeKind
    parts: list[Content] = field(default_factory=list)
    children: tuple[str, ...] = ()  # the order of what hangs below it, as far as the product says it
    created_at: datetime | None = None
    model: str = ""
    answer: ToolAnswer | None = None
    joins: bool = False


@dataclass(slots=True, kw_only=True)
class ArchivedMessage:
    """One message of a conversation, with the files that it names still to be fetched."""

    id: str
    parent_id: str | None
    role: str
    parts: list[Content]
    created_at: datetime | None
    metadata: JSONObject


@dataclass(slots=True, kw_only=True)
class Conversation:
    """One conversation of an archive: parents before what hangs below them. `id`: the product's own, the same again."""

    product: Product
    id: str
    title: str
    messages: list[ArchivedMessage]
    leaf_id: str
    created_at: datetime | None = None
    updated_at: datetime | None = None
    is_archived: bool = False
    is_pinned: bool = False
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def files(self) -> list[FileRef]:
        """The files that its messages name, in order."""
        return [part for message in self.messages for part in message.parts if isinstance(part, FileRef)]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableItem:
    """A conversation, or the rest of a file, that could not be read. `reason`: a sentence for people, in English."""

    name: str
    reason: str
