"""The origin of a text in a conversation, and the origins that the injection guard does not trust."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, TypeAlias


class Origin(StrEnum):
    """The origin of a part of a conversation."""

    PERSON = "person"  # typed by the owner
    MODEL = "model"
    TOOL = "tool"  # what a tool of this installation says in its own words
    WEB = "web"  # a page or an answer from the network
    MCP = "mcp"  # a server of the Model Context Protocol: descriptions, results, prompts, resources
    FILE = "file"  # an upload, an attachment, an import, or a file whose content came from one


UNTRUSTED: Final = frozenset({Origin.WEB, Origin.MCP, Origin.FILE})
"""Origins whose text may carry instructions of strangers."""

NoteOrigin: TypeAlias = Callable[[Origin, str], None]
"""Takes the origin of text that a call returns, and its source for people: an address, a path, a server's name."""
