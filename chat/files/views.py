"""Files as models and people read them: documents as text, photos upright and small enough.

A file is read once; its view is an object of the same storage, beside the file, and goes with it. So a turn that is
taken up again sends what it sent before. What a limit of time ended is not stored, and is tried again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.core.files.base import ContentFile

from chat.core.model.language_model import FileContent
from chat.errors import AttachmentNotFound
from chat.files.attachments import attachment_id, read_bytes, rows_of, view_name
from chat.models import Attachment
from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from tools_app.core.files.embedded import without_data
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.kinds import DOCUMENTS, PDF, PICTURES, has_view
from tools_app.documents.converting import View, convert

READ_AS_TEXT: Final = DOCUMENTS - {PDF}
"""Kinds whose bytes no model takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    content: FileContent
    unread: str = ""  # id of a file that has to be read yet


async def files_for_models(urls: Sequence[str], owner_id: int | None, *, max_bytes: int) -> dict[str, FileContent]:
    """Files for one request, in this order while there is room. One query.

    Those without room come without their bytes; those that are gone, or another's, are left out. A document has its
    text, a picture is one that providers take.
    """
    loaded = await db(_load, urls, owner_id, max_bytes)
    for url, file in loaded.items():
        if file.unread:
            view = await asyncio.to_thread(_read, file.unread, file.content.data, file.content.media_type)
            loaded[url] = _Loaded(content=_seen(file.content, view))
    return {url: file.content for url, file in loaded.items()}


def note_of(row: Attachment) -> str:
    """The sentence about a file that cannot be read, or by some models only; empty for the others. As `view_of`."""
    return view_of(row).note if row.media_type in DOCUMENTS or row.media_type in PICTURES else ""


def view_of(row: Attachment, data: bytes | None = None) -> View:
    """The view of a file; of one that is read as it is its text, or an empty view of its type. Blocks for seconds.

    Errors: `AttachmentNotFound` when the object is gone.
    """
    stored = _stored(row)
    if stored is not None:
        return stored
    data = read_bytes(row) if data is None else data
    if has_view(data, row.media_type):
        return _read(row.id, data, row.media_type)
    is_picture = row.media_type in PICTURES
    return View(media_type=row.media_type) if is_picture else View(text=without_data(shown_text(data)[0]))


def _load(urls: Sequence[str], owner_id: int | None, max_bytes: int) -> dict[str, _Loaded]:
    loaded: dict[str, _Loaded] = {}
    rows = rows_of(urls, owner_id)
    for url in urls:
        row = rows.get(attachment_id(url) or "")
        if row is None:
            continue
        try:
            file = _load_one(row, max_bytes)
        except AttachmentNotFound:
            continue
        max_bytes -= len(file.content.data)
        loaded[url] = file
    return loaded


def _load_one(row: Attachment, max_bytes: int) -> _Loaded:
    content = FileContent(media_type=row.media_type, data=b"", filename=row.name)
    view = _stored(row)
    if view is not None and (view.data or row.media_type in READ_AS_TEXT):
        seen = _seen(content, view)
        return _Loaded(content=seen if len(seen.data) <= max_bytes else replace(seen, data=b""))
    has_room = row.byte_size <= max_bytes
    content = replace(content, data=read_bytes(row) if has_room else b"")
    if view is not None:
        return _Loaded(content=_seen(content, view))
    is_unread = has_room and has_view(content.data, row.media_type)
    return _Loaded(content=content, unread=row.id if is_unread else "")


def _seen(content: FileContent, view: View) -> FileContent:
    """A file with its view: a picture in its place, words beside it or instead of its bytes."""
    if view.media_type:
        return replace(content, media_type=view.media_type, data=view.data or content.data)
    data = b"" if content.media_type != PDF else content.data
    return replace(content, text=view.words, data=data)


def _read(file_id: str, data: bytes, media_type: str) -> View:
    """Read a file and keep its view. Of two that do so at once, the first one is kept."""
    view = convert(data, media_type)
    if not view.is_lasting:
        return view
    store, name = object_storage(), view_name(file_id)
    saved = store.save(name, ContentFile(view.packed()))
    if saved != name:
        store.delete(saved)
    return view


def _stored(row: Attachment) -> View | None:
    if row.media_type not in DOCUMENTS and row.media_type not in PICTURES:
        return None
    try:
        with object_storage().open(view_name(row.id), "rb") as file:
            return View.unpacked(file.read())
    except FileNotFoundError:
        return None
