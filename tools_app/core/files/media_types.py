"""Detects the media type of a file from its bytes. Pure.

Text in another encoding than UTF-8 is text, too (`encodings`). The name's extension only chooses between kinds of
text; what a client says about the type is never believed. HTML and SVG are text here, so that a browser never runs an
attachment.
"""

from tools_app.core.files.encodings import detected, has_controls

UNKNOWN_TYPE = "application/octet-stream"
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_TEXT_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".json": "application/json",
}
_INLINE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def sniff(data: bytes, name: str) -> str:
    """Media type of the bytes; `UNKNOWN_TYPE` when they are none that we know."""
    for magic, media_type in _MAGIC:
        if data.startswith(magic):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if _is_text(data):
        extension = name[name.rfind(".") :].lower() if "." in name else ""
        return _TEXT_TYPES.get(extension, "text/plain")
    return UNKNOWN_TYPE


def sniff_head(head: bytes, name: str) -> str:
    """Do as `sniff` with the first bytes of a longer file, whose last character may be cut."""
    for cut in range(4):
        found = sniff(head[: len(head) - cut], name)
        if found != UNKNOWN_TYPE:
            return found
    return found


def is_inline(media_type: str) -> bool:
    """Whether a browser may show it in a page; everything else is downloaded."""
    return media_type in _INLINE


def _is_text(data: bytes) -> bool:
    found = detected(data)
    return found is not None and not found.strays and (found.codec != "utf-8" or not has_controls(data))
