"""Zip files from anywhere: opened, and their names, kinds and sizes looked at before anything of them is read.

The list of entries is bounded before `zipfile` reads it into memory. A name is a path below some folder and nothing
else, and what an archive unpacks to is bounded by its own size.
"""

import re
import stat
import zipfile
from collections.abc import Iterable
from typing import IO, Final

from thinkproject.kernel.phrases import Phrase

MAX_RATIO: Final = 100
"""How many times its own size an archive may unpack to, once that is more than `RATIO_FREE_BYTES`."""
RATIO_FREE_BYTES: Final = 10 * 1024 * 1024
_DIRECTORY_BYTES_PER_ENTRY: Final = 512
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LOCATOR: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


class ZipRefused(ValueError):
    """A zip file that is damaged or not to be trusted. `phrase`: a sentence for people."""

    def __init__(self, phrase: Phrase) -> None:
        self.phrase = phrase
        super().__init__(str(phrase))


class ZipSink:
    """The output of a zip file that is being written: it cannot seek, and is emptied by its reader."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, data: bytes) -> int:
        """Keep bytes for the reader."""
        self._pieces.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def taken(self) -> bytes:
        """The bytes that were written since the last time."""
        found = b"".join(self._pieces)
        self._pieces.clear()
        return found


def damaged() -> ZipRefused:
    """The refusal of what is no archive that can be read."""
    return ZipRefused(Phrase("This is no archive, or a damaged one."))


def open_zip(file: IO[bytes], *, max_entries: int) -> zipfile.ZipFile:
    """Open a file that can seek; it stays open. Errors: `ZipRefused`, also for too many entries."""
    try:
        _check_directory(file, max_entries)
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as error:
        if isinstance(error, ZipRefused):
            raise
        raise damaged() from error
    if len(archive.infolist()) > max_entries:
        raise too_many(max_entries)
    return archive


def _check_directory(file: IO[bytes], max_entries: int) -> None:
    """Look at the size of the list of entries before `zipfile` reads all of it into memory."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_BYTES - 65_535 - _LOCATOR_BYTES))
    tail = file.read()
    file.seek(0)
    at = len(tail) - _END_BYTES
    if not (tail[at:].startswith(_END) and tail.endswith(b"\0\0")):
        at = tail.rfind(_END)
    if at < 0:
        raise zipfile.BadZipFile
    listed = int.from_bytes(tail[at + 12 : at + 16], "little")
    has_more = tail[max(0, at - _LOCATOR_BYTES) : at].startswith(_LOCATOR)  # its own sizes would count instead
    if has_more or listed > max_entries * _DIRECTORY_BYTES_PER_ENTRY:
        raise too_many(max_entries)


def check_entry(info: zipfile.ZipInfo) -> str:
    """The name of an entry, a path below some folder. Errors: `ZipRefused` for links, devices and other names."""
    name = info.orig_filename  # `filename` ends at a NUL
    mode = stat.S_IFMT(info.external_attr >> 16)
    if mode not in {0, stat.S_IFREG, stat.S_IFDIR} or info.flag_bits & 1 or info.compress_type not in _METHODS:
        raise ZipRefused(Phrase("The archive has a link, device or encrypted file: {name}", name=repr(name)[:300]))
    return check_name(name)


def check_name(name: str) -> str:
    """The name of an entry of any archive, a path below some folder. Errors: `ZipRefused`."""
    if not name or name.startswith("/") or "\\" in name or _DRIVE.match(name) or ".." in name.split("/"):
        raise bad_name(name)
    return name


def bad_name(name: str) -> ZipRefused:
    """The refusal of a name that means anything but a path below the target."""
    return ZipRefused(Phrase("The archive has a name that is not allowed: {name}", name=repr(name)[:300]))


def is_too_large(infos: Iterable[zipfile.ZipInfo], size: int, *, max_bytes: int) -> bool:
    """Whether so many unpacked bytes are more than these entries may have."""
    packed = sum(info.compress_size for info in infos)
    return size > max_bytes or size > max(RATIO_FREE_BYTES, packed * MAX_RATIO)


def too_large(max_bytes: int) -> ZipRefused:
    """The refusal of a bomb."""
    limit = max_bytes // (1024 * 1024)
    return ZipRefused(Phrase("The archive unpacks to more than {limit} MiB or is a bomb.", limit=limit))


def too_many(max_entries: int) -> ZipRefused:
    """The refusal of a list that is too long."""
    return ZipRefused(Phrase("An archive may have {limit} entries.", limit=max_entries))
