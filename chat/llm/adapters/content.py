"""Small encodings that every vendor's wire needs. Pure."""

import base64
from collections.abc import Iterable

from chat.core.model.language_model import FileContent, TextContent, ToolMessage
from thinkproject.kernel.jsonvalue import JSONValue, dump


def data_url(file: FileContent) -> str:
    """The file as a `data:` URL."""
    return f"data:{file.media_type};base64,{base64.b64encode(file.data).decode('ascii')}"


def file_note(file: FileContent) -> str:
    """The text in place of a file that the model cannot take."""
    name = f"{file.filename!r}, " if file.filename else ""
    return f"[A file is attached that you cannot see: {name}{file.media_type}, {len(file.data)} bytes]"


NO_OUTPUT = "(The tool returned nothing.)"
"""In the place of an output without a word, which some servers refuse."""


def output_text(output: JSONValue, *, is_error: bool) -> str:
    """A tool's output as sent to the model: text unchanged, other values as JSON, failures marked."""
    text = output if isinstance(output, str) else dump(output)
    return f"Error: {text}" if is_error and not text.lower().startswith("error") else text


def files_label(message: ToolMessage) -> str:
    """The line above files of a tool's result, where a wire takes them from the user alone."""
    return f"[Files that the tool {message.tool_name} returned for the call {message.call_id}:]"


def plain_text(content: Iterable[TextContent | FileContent]) -> str:
    """A user's content for models that take text alone."""
    return "\n\n".join(item.text if isinstance(item, TextContent) else file_note(item) for item in content)


def is_pdf(file: FileContent) -> bool:
    """Whether the file is a PDF document."""
    return file.media_type == "application/pdf"


def is_image(file: FileContent) -> bool:
    """Whether the file is a picture in a format that models take."""
    return file.media_type in ("image/png", "image/jpeg", "image/webp", "image/gif")
