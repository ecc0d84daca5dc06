"""The body of a response: read and decompressed within limits, and made text."""

import codecs
import re
import zlib
from collections.abc import AsyncIterator
from typing import Final

from tools_app.fetching.errors import FetchFailed

ENCODINGS: Final = "gzip, deflate"
"""Content encodings that are asked for and understood: Python can decompress these piece by piece, with a limit."""

_CHARSETS: Final = re.compile(
    r"utf-?8|utf-?16(-?[lb]e)?|us-ascii|ascii|latin-?1|iso-8859-\d+|windows-125\d|cp125\d|koi8-[ru]|gbk|gb2312"
    r"|gb18030|big5|shift_jis|euc-(jp|kr)|macintosh",
    re.IGNORECASE,
)
_META_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_XML_TYPES: Final = frozenset({"application/xml", "application/javascript", "application/yaml", "application/toml"})


async def read_body(chunks: AsyncIterator[bytes], encoding: str, max_bytes: int) -> bytes:
    """Read a body to its end. Errors: `FetchFailed`: `too_large` as sent or decompressed, `request_failed`."""
    decompress = _decompressor(encoding)
    body = bytearray()
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        if received > max_bytes:
            raise _too_large(max_bytes)
        body += chunk if decompress is None else _decompressed(decompress, chunk, max_bytes - len(body) + 1)
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    if decompress is not None and received and not decompress.eof:
        raise FetchFailed("request_failed", "The compressed body ends too early.")
    return bytes(body)


def is_text(media_type: str) -> bool:
    """Whether a body of this type is text."""
    return (
        media_type.startswith("text/")
        or is_json(media_type)
        or is_html(media_type)
        or media_type in _XML_TYPES
        or media_type.endswith(("+xml", "+yaml"))
    )


def is_json(media_type: str) -> bool:
    """Whether a body of this type is JSON."""
    return media_type == "application/json" or media_type.endswith("+json")


def is_html(media_type: str) -> bool:
    """Whether a body of this type is a page."""
    return media_type in {"text/html", "application/xhtml+xml"}


def decode(body: bytes, charset: str, *, is_page: bool = False) -> str:
    """The text of a body; what cannot be decoded is replaced. Pages may name their charset themselves."""
    if not charset and is_page and (found := _META_CHARSET.search(body[:2_048])):
        charset = found[1].decode("ascii", "replace")
    name = charset if _CHARSETS.fullmatch(charset) else "utf-8"
    try:
        codecs.lookup(name)
    except LookupError:
        name = "utf-8"
    return body.decode(name, "replace").removeprefix("\ufeff").replace("\x00", "")


class _Decompressor:
    """gzip, or deflate with or without its header."""

    def __init__(self, encoding: str) -> None:
        self._is_deflate = encoding == "deflate"
        self._inner = zlib.decompressobj(zlib.MAX_WBITS if self._is_deflate else 16 + zlib.MAX_WBITS)
        self._is_first = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    def decompress(self, data: bytes, limit: int) -> bytes:
        try:
            return self._inner.decompress(data, limit)
        except zlib.error:
            if not (self._is_deflate and self._is_first):
                raise
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inner.decompress(data, limit)
        finally:
            self._is_first = False


def _decompressor(encoding: str) -> _Decompressor | None:
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        return None
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise FetchFailed("request_failed", f"The body is encoded in a way that was not asked for: {encoding[:40]}")
    return _Decompressor(encoding)


def _decompressed(decompressor: _Decompressor, chunk: bytes, limit: int) -> bytes:
    """Decompress a piece, up to one byte more than there is room for."""
    try:
        return decompressor.decompress(chunk, limit)
    except zlib.error as error:
        raise FetchFailed("request_failed", "The compressed body is damaged.") from error


def _too_large(max_bytes: int) -> FetchFailed:
    return FetchFailed("too_large", f"The body has more than {max_bytes} bytes.")
