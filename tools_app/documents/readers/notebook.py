"""Jupyter notebooks: cells in order, each with the text of its outputs. Pictures are named."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from sessions_app.core.messages.truncation import cut_text
from tools_app.core.files.reading import shown_size
from tools_app.documents.readers.text import NoText, TextWriter, cleaned

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
MAX_OUTPUT_CHARS: Final = 20_000


def read_notebook(data: bytes) -> str:
    """The notebook as Markdown. Errors: `NoText`; `ValueError` and the like for a damaged one."""
    book = json.loads(data)
    language = str(_dict(_dict(book.get("metadata")).get("language_info")).get("name") or "python")
    writer = TextWriter()
    for number, cell in enumerate(book["cells"], 1):
        for piece in _cell(_dict(cell), number, language):
            writer.add(piece)
        if writer.is_full:
            break
    if not writer.text():
        raise NoText("This notebook has no cells.")
    return writer.text()


def _cell(cell: dict[str, Any], number: int, language: str) -> Iterator[str]:
    source = cleaned(_joined(cell.get("source")))
    if cell.get("cell_type") != "code":
        yield source
        return
    yield f"Cell {number}:\n```{language}\n{source}\n```"
    for output in cell.get("outputs") or []:
        if shown := _output(_dict(output)):
            yield f"Output of cell {number}:\n{shown}"


def _output(output: dict[str, Any]) -> str:
    kind = output.get("output_type")
    if kind == "stream":
        return _quoted(_joined(output.get("text")))
    if kind == "error":
        return _quoted(f"{output.get('ename')}: {output.get('evalue')}")
    data = _dict(output.get("data"))
    pictures = [f"[Picture: {name}, {_size(value)}]" for name, value in data.items() if name.startswith("image/")]
    text = _joined(data.get("text/markdown") or data.get("text/plain"))
    if not pictures and not text.strip():
        return f"[{', '.join(data)}]" if data else ""
    return "\n".join(pictures or [_quoted(text)])


def _size(value: object) -> str:
    return shown_size(len(_joined(value)) * 3 // 4)


def _quoted(text: str) -> str:
    text = cleaned(_COLOURS.sub("", text))
    return f"```\n{cut_text(text, MAX_OUTPUT_CHARS)}\n```" if text else ""


def _joined(value: object) -> str:
    return "".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
