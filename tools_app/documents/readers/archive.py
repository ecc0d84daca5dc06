"""Zip archives: their names and sizes, and the limits of those that are documents."""

import zipfile
from io import BytesIO
from typing import Final

from tools_app.core.files.reading import shown_size
from tools_app.documents.readers.text import NoText, TextWriter, cleaned

MAX_UNPACKED_BYTES: Final = 256 * 1024 * 1024
MAX_MEMBERS: Final = 20_000
MAX_LISTED: Final = 500
TOO_LARGE: Final = "This file unpacks to more than can be read. Save a part of it as a file of its own."
UNPACK: Final = (
    "(This is a list of the names. To work with the files, have the user unpack the archive into the files of the "
    "conversation.)"
)


def read_archive(data: bytes) -> str:
    """List the files of an archive. Errors: `NoText`."""
    members = [info for info in _open(data).infolist() if not info.is_dir()]
    if not members:
        raise NoText("This archive is empty.")
    writer = TextWriter()
    lines = [f"- {cleaned(info.filename)} ({shown_size(info.file_size)})" for info in members[:MAX_LISTED]]
    if len(members) > MAX_LISTED:
        lines.append(f"- and {len(members) - MAX_LISTED:,} more")
    writer.add(f"{len(members):,} files:")
    writer.add("\n".join(lines))
    writer.add(UNPACK)
    return writer.text()


def check_archive(data: bytes) -> None:
    """Refuse a document that unpacks to too much. Errors: `NoText`."""
    members = _open(data).infolist()
    if len(members) > MAX_MEMBERS or sum(info.file_size for info in members) > MAX_UNPACKED_BYTES:
        raise NoText(TOO_LARGE)


def _open(data: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(BytesIO(data))
    except zipfile.BadZipFile as error:
        raise NoText("This file is damaged and cannot be opened. Make or download it again.") from error
