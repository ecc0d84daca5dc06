"""Keeps the encoding and the line ends of files that are written again."""

import asyncio
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.editing import line_end_of, with_line_ends
from tools_app.core.files.encodings import PLAIN, Encoding, detected, named
from tools_app.core.files.failures import failed
from tools_app.core.files.operations import CanReadBytes, CanReadText, CanStat
from tools_app.core.files.workspace import EntryKind
from tools_app.core.guard.reach import held_back

MAX_BYTES: Final = 16 * 1024 * 1024
"""Of a larger file that is replaced nothing is kept."""

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
