"""Keeps the encoding and the line ends of files that are written again."""

import asyncio
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.editing import line_end_of, with_line_ends
from tools_app.core.files.encodings import PLAIN, Encoding, detected, named
from tools_app.core.files.failures import conflict, failed
from tools_app.core.files.operations import CanReadBytes, CanReadText, CanStat
from tools_app.core.files.workspace import Entry, EntryKind, Workspace
from tools_app.core.guard.reach import held_back

MAX_BYTES: Final = 16 * 1024 * 1024
"""Of a larger file that is replaced nothing is kept."""

MAX_TEXT_BYTES: Final = 1_000_000
"""Of a file that a person edits."""

UNKNOWN: Final = "UTF-8 (the former encoding could not be recognised)"


async def held_text(operations: CanReadText, path: str) -> tuple[str, Encoding] | None:
    """The text of a file with its encoding, so that encoding it again gives the same bytes; `None`: no file.

    Errors: `FileFailed` (`EILSEQ`) for what is no text, or in an encoding that cannot be recognised.
    """
    content = await operations.read_file(path)
    is_plain = content is None or not ("\ufffd" in content or "\0" in content or content.startswith("\ufeff"))
    if content is None or not isinstance(operations, CanReadBytes) or is_plain:
        return None if content is None else (content, PLAIN)
    data = await operations.read_bytes(path)
    return None if data is None else await asyncio.to_thread(_text, path, data)


def _text(path: str, data: bytes) -> tuple[str, Encoding]:
    encoding = detected(data)
    if encoding is None:
        try:
            return data.decode(), PLAIN  # with null characters, say
        except UnicodeDecodeError as error:
            words = "no text in an encoding that its bytes tell: read it with one and write it, or change it with bash"
            raise failed("EILSEQ", path, words) from error
    text = encoding.decode(data, path=path)
    encoding.check(data, text, path=path)
    return text, encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptText:
    """The text of a file for an editor, of one version. `can_be_saved`: encoding it again gives the same bytes."""

    text: str
    encoding: Encoding
    version: str
    can_be_saved: bool


async def stored_text(workspace: Workspace, path: str) -> KeptText:
    """A file's text without its mark.

    Errors: `ENOENT`, `EISDIR`, `EFBIG` beyond `MAX_TEXT_BYTES`; `EILSEQ` for what is no text.
    """
    entry = await workspace.stat(path)
    if entry is None:
        raise failed("ENOENT", path)
    if entry.size > MAX_TEXT_BYTES:
        raise failed("EFBIG", path)
    data = await workspace.read_bytes(path) or b""
    found = await asyncio.to_thread(detected, data)
    if found is None:
        raise failed("EILSEQ", path, "no text in an encoding that its bytes tell")
    text = found.decode(data, path=path)
    can_be_saved = not found.strays and found.encode(text, path=path) == data
    shown = text if can_be_saved else text.encode(errors="surrogateescape").decode(errors="replace")
    return KeptText(text=shown, encoding=found, version=entry.version, can_be_saved=can_be_saved)


async def replace_text(
    workspace: Workspace, path: str, text: str, *, expected_version: str | None, encoding: Encoding | None = None
) -> Entry:
    """Write an edited text in the encoding that the file has, or in another one, as it is: line ends too.

    Errors: `FileConflict` for another version; `EILSEQ` for a character that the encoding does not have, or for a file
    that cannot be saved.
    """
    held = await stored_text(workspace, path)
    if expected_version is not None and held.version != expected_version:
        raise conflict(path, held.version)
    if encoding is None and not held.can_be_saved:
        raise failed("EILSEQ", path, f"its bytes would not stay the same in {held.encoding.name}")
    data = await asyncio.to_thread((encoding or held.encoding).encode, text, path=path)
    return await workspace.write_file(path, data, expected_version=held.version)


async def encoded(operations: object, path: str, content: str, encoding: str | None) -> tuple[str | bytes, JSONObject]:
    """A new text for a file as it is written, in the encoding and with the line ends of the text that is there.

    `encoding`: the wish for another one. Returns also what a model reads of both, which is nothing for UTF-8 with
    line feeds. Errors: `FileFailed` (`EILSEQ`) for a character that the encoding does not have.
    """
    old = await _old(operations, path)
    kept = None if old is None else await asyncio.to_thread(_kept, old)
    kept_facts: JSONObject = {}
    if kept is not None and kept[1] == "\r\n" and "\n" in content and "\r\n" not in content:
        content, kept_facts = with_line_ends(content, "\r\n"), {"lineEnds": "CRLF, as before"}
    chosen = named(encoding) if encoding else PLAIN if kept is None else kept[0]
    if old and kept is None and not encoding and b"\0" not in old:
        kept_facts["encoding"] = UNKNOWN
    elif not chosen.is_plain:
        kept_facts["encoding"] = chosen.description if encoding else f"{chosen.description}, as before"
    return content if chosen.is_plain else await asyncio.to_thread(chosen.encode, content, path=path), kept_facts


async def _old(operations: object, path: str) -> bytes | None:
    if not isinstance(operations, CanStat) or not isinstance(operations, CanReadBytes):
        return None
    entry = await operations.stat(path)
    if entry is None or entry.kind is not EntryKind.FILE or entry.size > MAX_BYTES:
        return None
    with held_back():  # nothing of it is returned
        return await operations.read_bytes(path)


def _kept(data: bytes) -> tuple[Encoding, str] | None:
    """Encoding and line ends of a text. Strays are gone with the text that had them."""
    found = detected(data)
    if found is None:
        return None
    return (PLAIN if found.strays else found), line_end_of(found.decode(data, path="/"))
