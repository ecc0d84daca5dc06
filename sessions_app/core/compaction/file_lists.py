"""Files read and modified in a conversation: two lists below a summary, passed on to the next summary.

A list stands in a pair of tags, one path a line, sorted. Paths come from models: none can end the tag or forge a line,
and both lists are bounded. Only calls that went well count. Pure.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sessions_app.core.messages.parts import is_tool, state_of, tool_name
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

READING_TOOLS: Final = frozenset({"read", "readfile"})
MODIFYING_TOOLS: Final = frozenset({"write", "edit", "delete", "writefile", "editfile", "deletefile"})
PATH_ARGUMENTS: Final = ("path", "file_path")
"""The tools that count, by name in whatever case and with or without underscores (`read_file`, `readFile`), and the
arguments that name a file, of which the first counts."""

MAX_PATHS: Final = 200
MAX_LIST_CHARS: Final = 10_000
"""Of each list; what was named last stays."""

MAX_PATH_CHARS: Final = 1_000
"""A longer one is no path that anybody could use, and is left out."""

READ_TAG: Final = "read-files"
MODIFIED_TAG: Final = "modified-files"

# A path has no angle bracket, so an unclosed tag never reaches over a list of ours.
_LIST: Final = re.compile(rf"<({READ_TAG}|{MODIFIED_TAG})>([^<>]*)</\1>")
_STRAY: Final = re.compile(rf"</?(?:{READ_TAG}|{MODIFIED_TAG})>")
_LEFT_OUT: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, half characters, ends of lines


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLists:
    """Files read and files modified, the most recent last."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def then(self, later: "FileLists") -> "FileLists":
        """Merge with later lists, bounded. A modified file is not listed as read."""
        modified = _newest((*self.modified, *later.modified))
        read = (path for path in (*self.read, *later.read) if path not in modified)
        return FileLists(read=_bounded(_newest(read)), modified=_bounded(modified))


def files_of(messages: Sequence[Message]) -> FileLists:
    """Collect the paths of the calls in messages (each with its result in its own part) that went well.

    File tools say what they refuse in a result with `error`; such a call did nothing.
    """
    read: list[str] = []
    modified: list[str] = []
    for part in _successes(messages):
        name, path = tool_name(part).casefold().replace("_", ""), _path_of(part.get("input"))
        if path and name in READING_TOOLS:
            read.append(path)
        elif path and name in MODIFYING_TOOLS:
            modified.append(path)
    return FileLists(read=tuple(read), modified=tuple(modified))


def split_lists(summary: str) -> tuple[str, FileLists]:
    """Take the lists out of a summary: its text without them, and them. Tags without a partner go as well."""
    found: dict[str, list[str]] = {READ_TAG: [], MODIFIED_TAG: []}
    for match in _LIST.finditer(summary):
        found[match[1]] += filter(None, map(clean_path, match[2].split("\n")))
    text = _STRAY.sub("", _LIST.sub("", summary)).strip()
    return text, FileLists(read=tuple(found[READ_TAG]), modified=tuple(found[MODIFIED_TAG]))


def with_lists(text: str, files: FileLists) -> str:
    """Put the lists below a text; an empty one is left out."""
    listed = ((READ_TAG, files.read), (MODIFIED_TAG, files.modified))
    blocks = ["\n".join((f"<{tag}>", *sorted(paths), f"</{tag}>")) for tag, paths in listed if paths]
    return "\n\n".join([text, *blocks])


def clean_path(path: str) -> str:
    """Normalise a path for the list; `None` if it is too long."""
    if len(path) > MAX_PATH_CHARS:
        return ""
    kept = (char for char in path if char not in "<>" and unicodedata.category(char) not in _LEFT_OUT)
    return "".join(kept).strip()


def _successes(messages: Sequence[Message]) -> Iterator[JSONObject]:
    for message in messages:
        parts: Sequence[JSONValue] = message.get("parts") or []
        for part in parts:
            if isinstance(part, dict) and is_tool(part) and state_of(part) is ToolState.OUTPUT_AVAILABLE:
                output = part.get("output")
                if not (isinstance(output, dict) and "error" in output):
                    yield part


def _path_of(given: JSONValue) -> str:
    if not isinstance(given, dict):
        return ""
    named = next((given[name] for name in PATH_ARGUMENTS if name in given), None)
    return clean_path(named) if isinstance(named, str) else ""


def _newest(paths: Iterable[str]) -> dict[str, None]:
    """Each path once, where it was named last."""
    kept: dict[str, None] = {}
    for path in paths:
        kept.pop(path, None)
        kept[path] = None
    return kept


def _bounded(paths: dict[str, None]) -> tuple[str, ...]:
    """The last of them that fit, in their order."""
    kept: list[str] = []
    room = MAX_LIST_CHARS
    for path in reversed(list(paths)[-MAX_PATHS:]):
        room -= len(path) + 1
        if room < 0:
            break
        kept.append(path)
    return tuple(reversed(kept))
