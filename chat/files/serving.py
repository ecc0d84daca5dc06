"""Files of people as HTTP answers that no browser runs: their headers, and their bytes a piece at a time."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import IO, Final

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from tools_app.core.files.kinds import HTML
from tools_app.core.files.media_types import is_inline

PIECE_BYTES: Final = 256 * 1024
PDF: Final = "application/pdf"
_OF_PDF: Final = (  # no `sandbox`, under which no browser starts its viewer; a PDF's scripts are the viewer's
    "default-src 'none'; style-src 'unsafe-inline'; object-src 'self'; frame-ancestors 'none'; form-action 'none'; "
    "base-uri 'none'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedFile:
    """The facts of a file for the headers of its answer. `tag` differs whenever the bytes do; `size` in bytes."""

    name: str
    media_type: str
    size: int
    tag: str


class PiecesResponse(StreamingHttpResponse):
    """The bytes of an open file, or of a part of it, a piece at a time. Reading happens off the event loop."""

    def __init__(self, file: IO[bytes], start: int, length: int, status: int = 200) -> None:
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


def with_safe_headers(
    response: HttpResponseBase, served: ServedFile, *, is_download: bool = False, is_view: bool = False
) -> HttpResponseBase:
    """Give an answer the headers of a file of people's. Pictures may be shown in a page, PDFs in a tab.

    All else is downloaded.
    `is_view`: plain text that we made may be shown too.
    """
    is_pdf = served.media_type == PDF and not is_download
    inline = ((is_inline(served.media_type) or is_pdf) and not is_download) or is_view
    text = served.media_type.startswith("text/") or served.media_type == "application/json"
    shown = "text/plain" if served.media_type == HTML else served.media_type  # never a page of this origin
    response["Content-Type"] = f"{shown}; charset=utf-8" if text else shown
    response["Content-Disposition"] = content_disposition_header(not inline, served.name) or "attachment"
    response["Content-Security-Policy"] = _OF_PDF if is_pdf else "default-src 'none'; sandbox"
    response["X-Content-Type-Options"] = "nosniff"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    response["Cache-Control"] = "private, no-cache"
    return response


def _next(pieces: Iterator[bytes]) -> bytes:
    return next(pieces, b"")


def _read(file: IO[bytes], start: int, length: int) -> Iterator[bytes]:
    file.seek(start)
    while length > 0 and (piece := file.read(min(length, PIECE_BYTES))):
        length -= len(piece)
        yield piece
