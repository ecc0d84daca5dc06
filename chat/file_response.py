"""A file as an HTTP answer: one range at most, an ETag, and headers that keep a browser from running it."""

import re

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils.http import content_disposition_header, parse_etags, quote_etag

from chat import attachments
from chat.api_problems import problem_of
from chat.errors import RangeNotSatisfiable
from chat.media_types import is_inline
from chat.models import Attachment

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def file_response(request: HttpRequest, row: Attachment) -> HttpResponse:
    """Answer with the file or the piece asked for. Errors: `AttachmentNotFound` when the object is gone."""
    etag = quote_etag(row.sha256)
    if _matches(request.headers.get("If-None-Match", ""), etag):
        return _dressed(HttpResponseNotModified(), row, etag)
    wanted = request.headers.get("Range")
    condition = request.headers.get("If-Range")
    if wanted is None or (condition is not None and condition != etag):
        return _dressed(HttpResponse(attachments.read_bytes(row)), row, etag)
    match parse_range(wanted, row.byte_size):
        case None:
            return _dressed(HttpResponse(attachments.read_bytes(row)), row, etag)
        case (start, end) if start <= end:
            response = HttpResponse(attachments.read_bytes(row, start=start, length=end - start + 1), status=206)
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


def _dressed(response: HttpResponse, row: Attachment, etag: str) -> HttpResponse:
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
