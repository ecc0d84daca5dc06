"""A file as an HTTP answer: one range at most, an ETag, and headers that keep a browser from running it."""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from asgiref.sync import sync_to_async
from django.core.files.base import File
from django.http import HttpRequest, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header, parse_etags, quote_etag

from chat.errors import RangeNotSatisfiable
from chat.files import attachments
from chat.http.api.problems import problem_of
from chat.models import Attachment
from tools_app.core.files.media_types import is_inline

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFile:
    """The facts of a file for the headers of its answer. `tag` differs whenever the bytes do; `size` in bytes."""

    name: str
    media_type: str
    size: int
    tag: str


class _Pieces(StreamingHttpResponse):
    """The bytes of an open file, or of a part of it, a piece at a time. Reading happens off the event loop."""

    def __init__(self, file: "File[bytes]", start: int, length: int, status: int) -> None:
        self._file = file
        super().__init__(_read(self._file, start, length), status=status)

    def close(self) -> None:
        """Close the file too, also when none of it was sent."""
        super().close()
        self._file.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self)
        while piece := await sync_to_async(_next, thread_sensitive=False)(pieces):
            yield piece


Sender: TypeAlias = Callable[[int, int, int], StreamingHttpResponse]
"""Makes the answer with the bytes from an offset, so many of them, with a status."""


def _next(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")


def _read(file: "File[bytes]", start: int, length: int) -> Iterator[bytes]:
    file.seek(start)
    while length > 0 and (piece := file.read(min(length, PIECE_BYTES))):
        length -= len(piece)
        yield piece


def file_response(request: HttpRequest, row: Attachment) -> HttpResponseBase:
    """Answer with an attached file or the piece asked for. Errors: `AttachmentNotFound` when the object is gone."""
    served = ServedFile(name=row.name, media_type=row.media_type, size=row.byte_size, tag=row.sha256)

    def send(start: int, length: int, status: int) -> StreamingHttpResponse:
        return _Pieces(attachments.open_file(row), start, length, status)

    return _answer(request, served, send)


def workspace_response(
    request: HttpRequest,
    served: ServedFile,
    read: Callable[[int], AsyncIterator[bytes]],
    *,
    is_download: bool = False,
) -> HttpResponseBase:
    """Answer with a file of a workspace or the piece asked for. `read`: its bytes from an offset."""

    def send(start: int, length: int, status: int) -> StreamingHttpResponse:
        return StreamingHttpResponse(_first(read(start), length), status=status)

    return _answer(request, served, send, is_download=is_download)


async def _first(pieces: AsyncIterator[bytes], length: int) -> AsyncIterator[bytes]:
    """Not more than was announced, whatever has become of the file since."""
    async for piece in pieces:
        yield piece[:length]
        length -= len(piece)
        if length <= 0:
            return


def _answer(request: HttpRequest, served: ServedFile, send: Sender, *, is_download: bool = False) -> HttpResponseBase:
    etag = quote_etag(served.tag)

    def dressed(response: HttpResponseBase) -> HttpResponseBase:
        return _dressed(response, served, etag, is_download=is_download)

    if _matches(request.headers.get("If-None-Match", ""), etag):
        return dressed(HttpResponseNotModified())
    wanted = request.headers.get("Range")
    condition = request.headers.get("If-Range")
    found = parse_range(wanted, served.size) if wanted is not None and condition in {None, etag} else None
    if found is None:
        whole = send(0, served.size, 200)
        whole["Content-Length"] = str(served.size)
        return dressed(whole)
    start, end = found
    if start > end:
        refused = problem_of(RangeNotSatisfiable())
        refused["Content-Range"] = f"bytes */{served.size}"
        return refused
    response = send(start, end - start + 1, 206)
    response["Content-Length"] = str(end - start + 1)
    response["Content-Range"] = f"bytes {start}-{end}/{served.size}"
    return dressed(response)


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """First and last byte of a single range; nothing when the header is to be ignored; first > last: unsatisfiable."""
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        length = min(int(last), size)
        return (size - length, size - 1) if length else (1, 0)
    start = int(first)
    end = min(int(last), size - 1) if last else size - 1
    if last and int(last) < start:
        return None
    return (start, end) if start < size else (1, 0)


def _matches(header: str, etag: str) -> bool:
    return header.strip() == "*" or any(value.removeprefix("W/") == etag for value in parse_etags(header))


def _dressed(response: HttpResponseBase, served: ServedFile, etag: str, *, is_download: bool) -> HttpResponseBase:
    inline = is_inline(served.media_type) and not is_download
    text = served.media_type.startswith("text/") or served.media_type == "application/json"
    response["Content-Type"] = f"{served.media_type}; charset=utf-8" if text else served.media_type
    response["Content-Disposition"] = content_disposition_header(not inline, served.name) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, no-cache"
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag
    return response
