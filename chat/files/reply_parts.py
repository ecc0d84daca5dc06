"""Parts that tools attach to the assistant's reply: checked when they are attached, stored when their call is over.

The bytes become attachments. A crash before the call is settled leaves unclaimed files, which are swept like others.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from django.db.models import Q
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.core.loop.reply_chunks import MAX_REPLY_PARTS
from chat.files import attachments
from chat.models import Attachment
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, dump
from tools_app.core.call_check import to_json
from tools_app.core.tool_output import Media
from tools_app.errors import ToolError

FAILED: Final = "data-attachment-failed"
MAX_DATA_CHARS: Final = 64 * 1024
_DATA_TYPE = re.compile(r"data-[a-z0-9][a-z0-9-]{0,59}")
_RESERVED: Final = ("data-think-", FAILED)
_URL_SCHEMES: Final = ("http://", "https://")

_Part: TypeAlias = Media | JSONObject


class ReplyRoom:
    """The room for parts in one turn's reply. Safe from several threads."""

    def __init__(self, taken: int) -> None:
        self._taken = taken
        self._lock = threading.Lock()

    def take(self) -> None:
        """Take the room for one part. Errors: `ToolError` when there is none."""
        with self._lock:
            if self._taken >= MAX_REPLY_PARTS:
                raise ToolError(f"At most {MAX_REPLY_PARTS} parts can be attached to one reply.")
            self._taken += 1

    def give_back(self, count: int) -> None:
        """Give back the room of parts that are not delivered."""
        with self._lock:
            self._taken -= count


class CallReplies:
    """The parts that one call attaches."""

    def __init__(self, room: ReplyRoom, key: InstanceKey, call_id: str) -> None:
        self._room = room
        self._key = key
        self._call_id = call_id
        self._given: list[_Part] = []
        self._resolved: list[JSONObject] | None = None

    def attach(self, part: Any) -> None:
        """Take a part, from any thread. Errors: `ToolError` for one that cannot be delivered."""
        if self._resolved is not None:
            raise ToolError("The call is over: nothing can be attached to its reply any more.")
        checked = _checked(part)
        self._room.take()
        self._given.append(checked)

    async def resolve(self) -> list[JSONObject]:
        """Store the bytes; the parts as they are delivered.

        In the place of a file that cannot be kept there is a part that reports it.
        """
        if self._resolved is None:
            given = list(self._given)
            self._resolved = [] if not given else await db(self._store, given)
        return self._resolved

    def restore(self, parts: list[JSONObject]) -> None:
        """Take the parts of an earlier run in place of this one's."""
        self._resolved = list(parts)

    def drop(self) -> None:
        """Deliver nothing."""
        self._room.give_back(len(self._given))
        self._given.clear()
        self._resolved = []

    def _store(self, given: list[_Part]) -> list[JSONObject]:
        return [self._part(part, f"{self._call_id}:{number}") for number, part in enumerate(given)]

    def _part(self, part: _Part, part_id: str) -> JSONObject:
        if isinstance(part, Media):
            return self._file(part.name, part_id, partial(attachments.store_bytes, data=part.data, name=part.name))
        kind = part["type"]
        if kind == "file":
            name, url = str(part.get("filename") or "file"), str(part["url"])
            if url.startswith("data:"):
                return self._file(name, part_id, partial(attachments.store_data_url, url=url, name=name))
            return self._file(name, part_id, partial(_owned, url=url))
        if kind == "source-url":
            return {**part, "sourceId": str(part.get("sourceId") or part_id)}
        return {**part, "id": str(part.get("id") or part_id)}

    def _file(self, name: str, part_id: str, store: "partial[Attachment]") -> JSONObject:
        owner_id = self._key.owner_id
        try:
            if owner_id is None:
                raise ToolError("A conversation without an owner keeps no files.")
            row = store(owner_id)
        except ThinkError as error:
            return {"type": FAILED, "id": part_id, "data": {"filename": name, "error": error.message}}
        return {
            "type": "file",
            "url": attachments.url_of(row.id),
            "mediaType": row.media_type,
            "filename": row.name,
        }


def keep_reply(key: InstanceKey, parts: Iterable[Mapping[str, Any]]) -> None:
    """Bind the files of parts to their conversation, in the transaction that settles their call.

    A file that is gone by now, or that belongs to another conversation, is left as it is.
    """
    ids = [found for part in parts if (found := attachments.attachment_id(part.get("url"))) is not None]
    if ids and key.owner_id is not None:
        free = Q(instance=None, claimed_at=None)
        rows = Attachment.objects.filter(free, pk__in=ids, owner_id=key.owner_id)
        rows.update(instance_id=key.instance_id, claimed_at=timezone.now())


def _owned(owner_id: int, *, url: str) -> Attachment:
    row = Attachment.objects.filter(pk=attachments.attachment_id(url), owner_id=owner_id).first()
    if row is None:
        raise ToolError("There is no such file.")
    return row


def _checked(part: Any) -> _Part:
    if isinstance(part, Media):
        try:
            attachments.check_bytes(part.data, name=part.name)
        except ThinkError as error:
            raise ToolError(error.message) from error
        return part
    if not isinstance(part, Mapping):
        raise ToolError(f"A part of a reply is Media or a part of a message, not {type(part).__name__}.")
    try:
        plain = to_json(part)
    except (TypeError, ValueError) as error:
        raise ToolError(f"A part of a reply is JSON: {error}") from error
    assert isinstance(plain, dict)
    return _checked_part(plain)


def _checked_part(part: JSONObject) -> JSONObject:
    kind, url = part.get("type"), part.get("url")
    match kind:
        case "file":
            is_ours = attachments.attachment_id(url) is not None
            if not isinstance(url, str) or not (is_ours or url.startswith("data:")):
                raise ToolError(
                    "A file of a reply has a data: URL or the URL of an attachment; link to others instead."
                )
            return {name: part[name] for name in ("type", "url", "filename") if name in part}
        case "source-url":
            if not isinstance(url, str) or not url.startswith(_URL_SCHEMES):
                raise ToolError("A source of a reply has an http or https URL.")
            return {name: str(part[name]) for name in ("type", "url", "title", "sourceId") if part.get(name)}
    is_data = isinstance(kind, str) and _DATA_TYPE.fullmatch(kind) and not kind.startswith(_RESERVED)
    if not is_data or "data" not in part:
        raise ToolError(
            f"A part of a reply is a file, a source-url or data of a type such as data-chart, not {kind!r}."
        )
    if len(dump(part["data"])) > MAX_DATA_CHARS:
        raise ToolError(f"The data of a part has at most {MAX_DATA_CHARS} characters of JSON.")
    return {name: part[name] for name in ("type", "id", "data") if name in part}
