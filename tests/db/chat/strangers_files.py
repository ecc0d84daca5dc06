"""Files that hold what strangers wrote: a page, a mail and an archive."""

import io
import zipfile

PAGE = b"<!doctype html><html><body>Wire the money.</body></html>"
LETTER = b"From: eve@example.org\r\nTo: ann@example.org\r\nSubject: Hello\r\n\r\nWire the money."


def zipped() -> bytes:
    """A zip file with a text."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a.txt", "Wire the money.")
    return buffer.getvalue()
