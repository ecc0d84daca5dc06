"""Names of objects, for entries in a storage that has only names and bytes. Pure.

An object is never overwritten: each write has a name of its own, `NAME~KIND~ID~SIZE~TYPE`, and of several with one NAME
the latest id counts. So a file is replaced at once, whatever the storage does while it saves, and a listing has all
there is to know.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import unquote

from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import Entry, EntryKind

MAX_BYTES: Final = 255
_KINDS: Final = {"d": EntryKind.DIRECTORY, "f": EntryKind.FILE, "l": EntryKind.SYMLINK}
_LETTERS: Final = {kind: letter for letter, kind in _KINDS.items()}
_OBJECT: Final = re.compile(r"([^~]+)~([dfl])~(obj_[0-9a-z]{24})~([0-9]+)~([A-Za-z0-9.+!-]*)")
_TYPE: Final = re.compile(r"[A-Za-z0-9.+-]+/[A-Za-z0-9.+-]+")
_MAX_TYPE_CHARS: Final = 60
_RESERVED: Final = re.compile(r'[%~\\:*?"<>|\x00-\x1f\x7f]|^\.|[. ]$')
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """The content of an object's name."""

    path: str
    kind: EntryKind
    id: str
    size: int
    media_type: str
    object_name: str

    def entry(self, target: str = "") -> Entry:
        """The object as an entry. `target`: of a link, which is its content."""
        made = instant_of(self.id)
        return Entry(
            path=self.path,
            kind=self.kind,
            size=self.size,
            media_type=self.media_type,
            target=target,
            version="" if self.kind is EntryKind.DIRECTORY else self.id,
            created_at=made,
            modified_at=made,
        )


def component(name: str) -> str:
    """A component of a path as it is in the names of objects."""
    return _RESERVED.sub(lambda found: f"%{ord(found[0]):02X}", name)


def object_name(name: str, kind: EntryKind, object_id: str, size: int, media_type: str) -> str:
    """The last component of an object's name. Errors: `ENAMETOOLONG` where it has more than 255 bytes."""
    is_short = len(media_type) <= _MAX_TYPE_CHARS and _TYPE.fullmatch(media_type)
    kept = media_type if is_short else "application/octet-stream" if media_type else ""
    found = f"{component(name)}~{_LETTERS[kind]}~{object_id}~{size}~{kept.replace('/', '!')}"
    if len(found.encode()) > MAX_BYTES:
        raise failed("ENAMETOOLONG", name)
    return found


def parse(directory: str, folder: str, name: str) -> StoredObject | None:
    """Read the name of an object that is listed in a folder; nothing for one that is not ours."""
    match = _OBJECT.fullmatch(name)
    if match is None:
        return None
    return StoredObject(
        path=f"{'' if directory == '/' else directory}/{unquote(match[1])}",
        kind=_KINDS[match[2]],
        id=match[3],
        size=int(match[4]),
        media_type=match[5].replace("!", "/", 1),
        object_name=f"{folder}/{name}",
    )


def instant_of(object_id: str) -> datetime:
    """When an id was made."""
    value = 0
    for digit in object_id.partition("_")[2][:10]:
        value = value * 32 + _DIGITS.index(digit)
    return datetime.fromtimestamp(value / 1000, tz=UTC)
