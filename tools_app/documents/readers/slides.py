"""Presentations: slides by number, with their titles, lists, tables and notes. Pictures are named.

The format is a zip file with XML (`parts`).
"""

import posixpath
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Final
from xml.etree.ElementTree import Element

from tools_app.documents.readers.archive import check_archive
from tools_app.documents.readers.parts import parse
from tools_app.documents.readers.text import NoText, TextWriter, cleaned, table

_A: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P: Final = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_PRESENTATION: Final = "ppt/presentation.xml"


def read_slides(data: bytes) -> str:
    """The slides in their order, hidden ones marked. Errors: `NoText`; `KeyError` and the like for a damaged file."""
    check_archive(data)
    writer = TextWriter()
    has_text = False
    with zipfile.ZipFile(BytesIO(data)) as archive:
        links = _links(archive, _PRESENTATION)
        ids = [each.get(f"{_R}id", "") for each in parse(archive, _PRESENTATION).iter(f"{_P}sldId")]
        for number, link in enumerate(ids, 1):
            heading, body = _slide(archive, links[link][1])
            has_text = has_text or bool(heading or body)
            writer.add(f"## Slide {number}{heading}")
            writer.add(body)
            if writer.is_full:
                break
    if not has_text:
        raise NoText("The slides of this presentation have no text. Save it as PDF, or attach the slides as pictures.")
    return writer.text()


def _slide(archive: zipfile.ZipFile, path: str) -> tuple[str, str]:
    """The title as the end of a heading, and the rest."""
    root = parse(archive, path)
    title, pieces = "", list[str]()
    for shape in _shapes(root):
        if shape.tag == f"{_P}pic":
            pieces.append(_picture(shape))
        elif shape.tag == f"{_P}graphicFrame":
            pieces.append(table([[_text(cell) for cell in row.iter(f"{_A}tc")] for row in shape.iter(f"{_A}tr")]))
        elif not title and _placeholder(shape) in {"title", "ctrTitle"}:
            title = " ".join(_text(shape).split())
        else:
            pieces.append(_paragraphs(shape))
    notes = [link for kind, link in _links(archive, path).values() if kind.endswith("/notesSlide")]
    if notes and (said := _notes(parse(archive, notes[0]))):
        pieces.append(f"Notes: {said}")
    hidden = " (hidden)" if root.get("show") == "0" else ""
    return f"{hidden}: {title}" if title else hidden, "\n\n".join(filter(None, pieces))


def _shapes(root: Element) -> Iterator[Element]:
    for shape in root.iter():
        if shape.tag in {f"{_P}sp", f"{_P}pic", f"{_P}graphicFrame"}:
            yield shape


def _picture(shape: Element) -> str:
    facts = next(shape.iter(f"{_P}cNvPr"), None)
    said = "" if facts is None else facts.get("descr") or facts.get("name") or ""
    return f"[Picture: {cleaned(said)}]" if said else "[Picture]"


def _placeholder(shape: Element) -> str:
    found = next(shape.iter(f"{_P}ph"), None)
    return "" if found is None else found.get("type", "body")


def _notes(root: Element) -> str:
    return "\n".join(_text(shape) for shape in _shapes(root) if _placeholder(shape) == "body").strip()


def _paragraphs(shape: Element) -> str:
    is_list = _placeholder(shape) in {"body", "obj"}
    lines = []
    for paragraph in shape.iter(f"{_A}p"):
        properties = paragraph.find(f"{_A}pPr")
        level = 0 if properties is None else int(properties.get("lvl", "0"))
        if text := _run(paragraph):
            lines.append(f"{'  ' * level}- {text}" if is_list else text)
    return "\n".join(lines)


def _text(element: Element) -> str:
    return "\n".join(filter(None, map(_run, element.iter(f"{_A}p"))))


def _run(paragraph: Element) -> str:
    pieces = (
        "\n" if each.tag == f"{_A}br" else each.text or ""
        for each in paragraph.iter()
        if each.tag in {f"{_A}t", f"{_A}br"}
    )
    return cleaned("".join(pieces))


def _links(archive: zipfile.ZipFile, path: str) -> dict[str, tuple[str, str]]:
    """Kind and path of the parts that a part refers to, by the id of the reference."""
    folder, name = posixpath.split(path)
    try:
        root = parse(archive, f"{folder}/_rels/{name}.rels")
    except KeyError:
        return {}
    return {
        each.get("Id", ""): (each.get("Type", ""), posixpath.normpath(posixpath.join(folder, each.get("Target", ""))))
        for each in root
        if each.get("TargetMode") != "External"
    }
