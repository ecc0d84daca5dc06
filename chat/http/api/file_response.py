"""A file as an HTTP answer: one range at most, an ETag, and headers that keep a browser from running it."""

import re
from collections.abc import AsyncIterator, Iterator

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


class _Pieces(StreamingHttpResponse):
    """The bytes of a file, or of a part of it, a piece at a time. Reading happens off the event loop."""

    def __init__(self, row: Attachment, *, start: int = 0, length: int | None = None, status: int = 200) -> None:
        self._file = attachments.open_file(row)
        wanted = row.byte_size if length is None else length
        super().__init__(_read(self._file, start, wanted), status=status)
        self["Content-Length"] = str(wanted)

    def close(self) -> None:
        """Close the file too, also when none of it was sent."""
        super().close()
        self._file.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = iter(self)
        while piece := await sync_to_async(_next, thread_sensitive=False)(pieces):
            yield piece


def _next(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")


def _read(file: "File[bytes]", start: int, length: int) -> Iterator[bytes]:
    file.seek(start)
    while length > 0 and (piece := file.read(min(length, PIECE_BYTES))):
        length -= len(piece)
        yield piece


def file_response(request: HttpRequest, row: Attachment) -> HttpResponseBase:
    """Answer with the file or the piece asked for. Errors: `AttachmentNotFound` when the object is gone."""
    etag = quote_etag(row.sha256)
    if _matches(request.headers.get("If-None-Match", ""), etag):
        return _dressed(HttpResponseNotModified(), row, etag)
    wanted = request.headers.get("Range")
    condition = request.headers.get("If-Range")
    if wanted is None or (condition is not None and condition != etag):
        return _dressed(_Pieces(row), row, etag)
    match parse_range(wanted, row.byte_size):
        case None:
            return _dressed(_Pieces(row), row, etag)
        case (start, end) if start <= end:
            response = _Pieces(row, start=start, length=end - start + 1, status=206)
            response["Content-Range"] = f"bytes {start}-{end}/{row.byte_size}"
            return _dressed(response, row, etag)
    refused = problem_of(RangeNotSatisfiable())
    refused["Content-Range"] = f"bytes */{row.byte_size}"
    return refused


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


def _dressed(response: HttpResponseBase, row: Attachment, etag: str) -> HttpResponseBase:
    inline = is_inline(row.media_type)
    text = row.media_type.startswith("text/") or row.media_type == "application/json"
    response["Content-Type"] = f"{row.media_type}; charset=utf-8" if text else row.media_type
    response["Content-Disposition"] = content_disposition_header(not inline, row.name) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, no-cache"
    response["Accept-Ranges"] = "bytes"
    response["ETag"] = etag
    return response
