"""The file that a person brings: one JSON file, or a zip of JSON files with the attachments beside them.

Nothing is unpacked to a disk. Names, kinds and sizes of all entries are looked at when it is opened, and JSON is read
as a stream.
"""

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, Final

from sessions_app.errors import ExportInvalid
from sessions_app.transfer.archives.splitting import Flaw, elements
from thinkproject.kernel.zips import ZipRefused, check_entry, is_too_large, open_zip, too_large

MAX_ENTRIES: Final = 100_000
MAX_UNPACKED_BYTES: Final = 8 * 1024 * 1024 * 1024
MAX_CUTS: Final = 16
_ZIP: Final = b"PK"
_LIST_NAME: Final = re.compile(r"(conversations|chats?|chat-export)\b[^/]*\.json", re.IGNORECASE)
_DIGITS: Final = re.compile(r"(\d+)")
_CUT: Final = re.compile(r"[-.]")
_FAILURES: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, RuntimeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFile:
    """A JSON file. `is_expected`: its name says that it holds conversations, so what is no conversation is a flaw."""

    name: str
    is_expected: bool
    source: Callable[[], AbstractContextManager[IO[bytes]]]

    def elements(self) -> Iterator[bytes | Flaw]:
        """Its elements in order; damage ends it with a flaw."""
        try:
            with self.source() as file:
                yield from elements(file)
        except _FAILURES:
            yield Flaw(reason="The archive is damaged here: the rest of this file cannot be read.")


class Archive:
    """An opened archive. `file`: can seek, and stays open.

    **Errors:** `ExportInvalid` for what is not to be trusted.
    """

    def __init__(self, file: IO[bytes], name: str = "") -> None:
        self._file = file
        self._name = name or "conversations.json"
        self._zip: zipfile.ZipFile | None = None
        file.seek(0)
        if file.read(len(_ZIP)) == _ZIP:
            try:
                self._zip = open_zip(file, max_entries=MAX_ENTRIES)
                self._check(self._zip.infolist())
            except ZipRefused as error:
                raise ExportInvalid(error.phrase) from error

    def lists(self) -> Iterator[ListFile]:
        """The JSON files in the order of their names, `…-2` before `…-10`."""
        if self._zip is None:
            self._file.seek(0)
            yield ListFile(name=self._name, is_expected=True, source=lambda: nullcontext(self._file))
            return
        for name in sorted((name for name in self._names if name.lower().endswith(".json")), key=_in_order):
            is_expected = _LIST_NAME.fullmatch(_base(name)) is not None
            yield ListFile(name=name, is_expected=is_expected, source=partial(self._zip.open, self._names[name]))

    def find(self, key: str) -> zipfile.ZipInfo | None:
        """The attachment whose name is this, or begins with this id."""
        return self._by_key.get(_base(key)) if key else None

    def read(self, info: zipfile.ZipInfo, *, max_bytes: int) -> bytes | None:
        """An attachment's bytes; nothing where it is damaged or larger."""
        if self._zip is None or info.file_size > max_bytes:
            return None
        with suppress(*_FAILURES), self._zip.open(info) as file:
            return file.read(max_bytes)
        return None

    @cached_property
    def _names(self) -> dict[str, zipfile.ZipInfo]:
        infos = [] if self._zip is None else self._zip.infolist()
        return {info.filename: info for info in infos if not info.is_dir() and "__MACOSX" not in info.filename}

    @cached_property
    def _by_key(self) -> dict[str, zipfile.ZipInfo]:
        found: dict[str, zipfile.ZipInfo] = {}
        for name, info in self._names.items():
            base = _base(name)
            for cut in [*_CUT.finditer(base)][:MAX_CUTS]:
                found.setdefault(base[: cut.start()], info)
        for name, info in self._names.items():
            found[_base(name)] = info
        return found

    @staticmethod
    def _check(infos: list[zipfile.ZipInfo]) -> None:
        for info in infos:
            check_entry(info)
        if is_too_large(infos, sum(info.file_size for info in infos), max_bytes=MAX_UNPACKED_BYTES):
            raise too_large(MAX_UNPACKED_BYTES)


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _in_order(name: str) -> list[tuple[int, int | str]]:
    """A key that orders numbers in names by their value."""
    return [(0, int(piece)) if piece.isdigit() else (1, piece) for piece in _DIGITS.split(name) if piece]
