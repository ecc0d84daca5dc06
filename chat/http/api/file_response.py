"""A file as an HTTP answer: one range at most, an ETag, and headers that keep a browser from running it."""

import re
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias, cast

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags, quote_etag

from chat.errors import RangeNotSatisfiable
from chat.files import attachments
from chat.files.serving import PiecesResponse, ServedFile, with_safe_headers
from chat.files.views import view_of
from chat.http.api.problems import problem_of
from chat.models import Attachment

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)

Sender: TypeAlias = Callable[[int, int, int], StreamingHttpResponse]
"""Makes the answer with the bytes from an offset, so many of them, with a status."""


def file_response(request: HttpRequest, row: Attachment) -> HttpResponseBase:
    """Answer with an attached file or the piece asked for. Errors: `AttachmentNotFound` when the object is gone."""
    served = ServedFile(name=row.name, media_type=row.media_type, size=row.byte_size, tag=row.sha256)

    def send(start: int, length: int, status: int) -> StreamingHttpResponse:
        return PiecesResponse(attachments.open_file(row), start, length, status)

    return _answer(request, served, send)


def view_response(row: Attachment) -> HttpResponseBase:
    """Answer with what models get of a file, to be shown in a page. Errors: as `file_response`. Blocks for seconds."""
    view = view_of(row)
    if view.media_type and not view.data:
        return with_safe_headers(
            PiecesResponse(attachments.open_file(row), 0, row.byte_size),
            ServedFile(name=row.name, media_type=view.media_type, size=row.byte_size, tag=row.sha256),
        )
    data = view.data or view.words.encode()
    served = ServedFile(name=row.name, media_type=view.media_type or "text/plain", size=len(data), tag=row.sha256)
    return with_safe_headers(HttpResponse(data), served, is_view=True)


async def begun(response: StreamingHttpResponse) -> StreamingHttpResponse:
    """The same answer with its first piece made: what fails before that is an error of its own and no cut answer.

    The pieces are async ones. Errors: those of the first.
    """
    pieces = cast("AsyncIterator[bytes]", response.streaming_content)
    first = await anext(pieces, b"")

    async def whole() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    response.streaming_content = whole()
    return response


async def workspace_response(
    request: HttpRequest,
    served: ServedFile,
    read: Callable[[int], AsyncIterator[bytes]],
    *,
    is_download: bool = False,
) -> HttpResponseBase:
    """Answer with a file of a workspace or the piece asked for. `read`: its bytes from an offset. Errors: its own."""

    def send(start: int, length: int, status: int) -> StreamingHttpResponse:
        return StreamingHttpResponse(_first(read(start), length), status=status)

    response = _answer(request, served, send, is_download=is_download)
    return await begun(response) if isinstance(response, StreamingHttpResponse) else response


async def _first(pieces: AsyncIterator[bytes], length: int) -> AsyncIterator[bytes]:
    """Not more than was announced, whatever has become of the file since."""
    async for piece in pieces:
        yield piece[:length]
        length -= len(piece)
        if length <= 0:
            return


def _answer(request: HttpRequest, served: ServedFile, send: Sender, *, is_download: bool = False) -> HttpResponseBase:
    etag = quote_etag(served.tag)

    def finished(response: HttpResponseBase) -> HttpResponseBase:
        response["Accept-Ranges"] = "bytes"
        response["ETag"] = etag
        return with_safe_headers(response, served, is_download=is_download)

    if _matches(request.headers.get("If-None-Match", ""), etag):
        return finished(HttpResponseNotModified())
    wanted = request.headers.get("Range")
    condition = request.headers.get("If-Range")
    found = parse_range(wanted, served.size) if wanted is not None and condition in {None, etag} else None
    if found is None:
        whole = send(0, served.size, 200)
        whole["Content-Length"] = str(served.size)
        return finished(whole)
    start, end = found
    if start > end:
        refused = problem_of(RangeNotSatisfiable())
        refused["Content-Range"] = f"bytes */{served.size}"
        return refused
    response = send(start, end - start + 1, 206)
    response["Content-Length"] = str(end - start + 1)
    response["Content-Range"] = f"bytes {start}-{end}/{served.size}"
    return finished(response)


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
