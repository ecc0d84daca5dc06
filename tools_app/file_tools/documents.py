"""Documents and photos of a workspace as `read` shows them: as the text and the picture that attachments become."""

from collections.abc import Callable
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.kinds import DOCUMENTS, HTML, PDF, PICTURES, Unreadable, has_view, kind_name, kind_of_file
from tools_app.core.files.kinds import refusal as refusal_of
from tools_app.core.files.paths import name_of
from tools_app.core.tool_output import Media, ToolOutput
from tools_app.documents.converting import View, convert

AS_TEXT: Final = "If you cannot see it, read it as text: with offset 1."
CONVERTED: Final = "This is the text of the file, whose bytes are others: edit and grep do not find it there."

_CONVERTED: Final = DOCUMENTS - {HTML, PDF}
"""Kinds that are always shown as text. Web pages of a workspace are source; models that see PDF get it."""


def document_of(path: str, data: bytes, page: Callable[[str], JSONObject], *, wants_text: bool) -> Any:
    """The result of `read` for a document or a photo; nothing for other files. Blocks for seconds.

    `page`: makes the result of a text. `wants_text`: lines were asked for, of a PDF too.
    """
    name = name_of(path)
    kind = kind_of_file(data, name)
    if isinstance(kind, Unreadable) or not has_view(data, kind):
        return None
    if kind in _CONVERTED or (kind == PDF and wants_text):
        return _text(path, kind, convert(data, kind), page)
    return _picture(path, name, data, convert(data, kind)) if kind in PICTURES else None


def why_unreadable(data: bytes, name: str) -> str:
    """The sentence about a file in which there is nothing to read; empty where there is."""
    kind = kind_of_file(data, name)
    return str(refusal_of(kind, name)) if isinstance(kind, Unreadable) else ""


def _text(path: str, kind: str, view: View, page: Callable[[str], JSONObject]) -> JSONObject:
    facts: JSONObject = {"path": path, "kind": kind_name(kind)}
    if not view.text:
        return facts | {"unsupported": True, "note": view.note}
    shown = page(view.text)
    return shown if "error" in shown else facts | shown | {"note": CONVERTED}


def _picture(path: str, name: str, data: bytes, view: View) -> JSONObject | ToolOutput:
    facts: JSONObject = {"kind": "image", "path": path, "name": name, "sizeBytes": len(data)}
    if not view.media_type:
        return facts | {"unsupported": True, "note": view.note}
    extension = "." + view.media_type.rpartition("/")[2].replace("jpeg", "jpg")
    shown = name if name.lower().endswith((extension, ".jpeg")) else name + extension
    value = facts | {"mediaType": view.media_type}
    return ToolOutput(value=value, media=[Media(data=view.data or data, name=shown)])
