"""Reads the fields of a call's argument, which is a stranger's, and shows entries to code."""

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.workspace import Entry
from tools_app.errors import CodeInvalid
from tools_app.sandbox.packing import unpacked


def text(value: JSONObject, key: str, default: str | None = None) -> str:
    """A text. Errors: `CodeInvalid`."""
    found = value.get(key, default)
    if not isinstance(found, str):
        raise CodeInvalid(f"{key!r} must be a text.")
    return found


def flag(value: JSONObject, key: str, *, default: bool = False) -> bool:
    """True or false. Errors: `CodeInvalid`."""
    found = value.get(key, default)
    if not isinstance(found, bool):
        raise CodeInvalid(f"{key!r} must be true or false.")
    return found


def number(value: JSONObject, key: str, default: int) -> int:
    """A whole number from 0. Errors: `CodeInvalid`."""
    found = value.get(key, default)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise CodeInvalid(f"{key!r} must be a whole number from 0.")
    return found


def content(value: JSONObject, key: str = "content") -> str | bytes:
    """A text, or bytes under a key of their own. Errors: `CodeInvalid`."""
    found = value.get(key)
    if isinstance(found, str):
        return found
    try:
        data = unpacked(found)
    except ValueError as error:
        raise CodeInvalid(f"{key!r} has bytes that are no base64.") from error
    if data is None:
        raise CodeInvalid(f"{key!r} must be a text or bytes.")
    return data


def shown_entry(entry: Entry) -> JSONObject:
    """An entry as code sees it."""
    return {
        "path": entry.path,
        "name": entry.name,
        "type": entry.kind.value,
        "size": entry.size,
        "mediaType": entry.media_type,
        "modifiedAt": entry.modified_at.isoformat(),
    }
