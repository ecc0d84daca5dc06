"""The files of tools' results as models are sent them, and lines about what they are not sent."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from chat.core.model.language_model import FileContent
from sessions_app.core.messages.parts import is_tool
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.tool_calls import details_in

LoadFile: TypeAlias = Callable[[str], FileContent | None]
PDF: Final = "application/pdf"
READER: Final = "read_output"
"""The tool by which a model reads on in an output that was cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The eyes of a model, and the way to the bytes. Without `sends_media` nothing is sent, and a line names it."""

    accepts_images: bool
    accepts_documents: bool
    load_file: LoadFile
    sends_media: bool = True

    def sees(self, media_type: str) -> bool:
        """Whether the model takes files of this type."""
        return self.accepts_documents if media_type == PDF else self.accepts_images and media_type.startswith("image/")


def is_seen(media_type: str) -> bool:
    """Whether there are models that take files of this type from a tool."""
    return media_type == PDF or media_type.startswith("image/")


def files_of(part: Mapping[str, object], sight: Sight) -> tuple[tuple[FileContent, ...], list[str]]:
    """The files of a result that the model is sent, and lines about the others. Nothing of one that was let go."""
    given: JSONValue = details_in(part).get("attachments")
    entries: Sequence[JSONValue] = given if isinstance(given, list) and not part.get("pruned") else []
    files: list[FileContent] = []
    lines: list[str] = []
    for entry in entries:
        if isinstance(entry, dict):
            file = _file(entry, sight)
            if isinstance(file, str):
                lines.append(file)
            else:
                files.append(file)
    return tuple(files), lines


def _file(entry: JSONObject, sight: Sight) -> FileContent | str:
    name, media_type = str(entry.get("filename") or "a file"), str(entry.get("mediaType") or "unknown type")
    if "error" in entry:
        return f'[The tool returned "{name}", which was not kept: {entry["error"]}]'
    title = f'"{name}" ({media_type})'
    if not sight.sends_media or not is_seen(media_type):
        return f"[The tool returned {title}. It is shown to the user.]"
    if not sight.sees(media_type):
        return f"[The tool returned {title}. You cannot see its content; the user can.]"
    loaded = sight.load_file(str(entry.get("url") or ""))
    if loaded is None:
        return f"[The tool returned {title}. It is no longer available.]"
    if not sight.sees(loaded.media_type):  # the part was written by a client, and is wrong about the file
        return f"[The tool returned {title}. You cannot see its content; the user can.]"
    if not loaded.data and loaded.text is not None:  # a picture that cannot be opened, or a document
        return f"[The tool returned {title}: {loaded.text}]"
    if not loaded.data:
        return f"[The tool returned {title}. It is not sent again: this request has too many files.]"
    return loaded


def cut_note(part: Mapping[str, object]) -> str:
    """The line about an output that was cut: its size, and how to read on. Empty for one that is whole."""
    whole = details_in(part).get("whole")
    if not isinstance(whole, dict):
        return ""
    size = f"The output was cut: the whole has {whole.get('lines')} lines, {whole.get('bytes')} bytes"
    if "id" not in whole:
        return f"[{size}, and was not kept.]"
    start = f" from line {whole['next']}" if whole.get("next") else ""
    return f'[{size}. Read on{start} with {READER}, id "{whole["id"]}".]'


def has_cut_output(messages: Iterable[Message]) -> bool:
    """Whether any of these messages has an output that was cut and can be read on."""
    wholes = (
        details_in(part).get("whole")
        for message in messages
        if message.get("role") == "assistant"
        for part in message.get("parts") or []
        if is_tool(part)
    )
    return any(isinstance(whole, dict) and "id" in whole for whole in wholes)


def with_lines(output: JSONValue, lines: Sequence[str]) -> JSONValue:
    """A result with lines about it."""
    if not lines:
        return output
    if isinstance(output, str):
        return "\n".join([output, *lines] if output else lines)
    return {"output": output, "notes": list(lines)} if output is not None else "\n".join(lines)
