"""Files that people attach: taken in, claimed by a message, read by the model, removed.

The object goes to storage first and the row after it; a row goes first and its object after the commit. What a crash
leaves in between, and what no message claims, `sweep_orphans` removes. Which storage: `kernel.object_storage`.
"""

import base64
import binascii
import codecs
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import unquote_to_bytes

from django.core.files.base import ContentFile, File
from django.db import DatabaseError, transaction
from django.db.models import Count, Q, Sum
from django.urls import NoReverseMatch, reverse
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.core.model.language_model import FileContent
from chat.errors import AttachmentInvalid, AttachmentNotFound, QuotaExceeded
from chat.files.conf import file_settings
from chat.instances.rows import lookup_of
from chat.models import AgentInstance, Attachment, new_attachment_id
from sessions_app.core.messages.shapes import MessageT, Part
from thinkproject.kernel.jsonvalue import JSONValue, dump
from thinkproject.kernel.object_storage import delete_after_commit, object_storage, referenced_by, sweep_objects
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from tools_app.core.files.kinds import DOCUMENTS, PICTURES, Unreadable, kind_name, kind_of_file, refusal

FOLDER = "think/attachments"
VIEW_FOLDER = "think/views"
FILES_PER_MESSAGE = 20
ORPHAN_HOURS = 24  # after which a file that no message claimed is removed
API_NAMESPACE = "think-api"
_EMPTY = (b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # an editor's empty text has its mark
_URL = re.compile(r"(?:/[^/?#:]+)*/files/(att_[0-9a-z]{24})")  # at whatever prefix the API is mounted
_DATA_URL = re.compile(r"data:([^,;]*)((?:;[^,;]*)*),", re.ASCII)
_ID_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_ID_CHARS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageUsage:
    """Storage used by one user."""

    files: int
    byte_count: int


def store_upload(owner_id: int, upload: "File[bytes]", *, is_by_hand: bool = False) -> Attachment:
    """Take in an uploaded file. `is_by_hand`: a person chose it in a browser. Errors: as `store_bytes`."""
    if (upload.size or 0) > file_settings.max_bytes:
        raise _too_large()
    row = store_bytes(owner_id, upload.read(), name=upload.name or "")
    if is_by_hand:
        row.is_by_hand = True
        row.save(update_fields=["is_by_hand"])
    return row


def store_bytes(owner_id: int, data: bytes, *, name: str) -> Attachment:
    """Take in bytes under a name: checks, object, then row. Not inside a transaction of the caller's.

    Errors: `AttachmentInvalid` (type, size, empty), `QuotaExceeded`.
    """
    label = _clean_name(name)
    return _store(owner_id, data, label, check_bytes(data, name=label), is_paced=True)


def check_bytes(data: bytes, *, name: str) -> str:
    """The media type of bytes that may be taken in. Errors: `AttachmentInvalid` (type, size, empty)."""
    if data in _EMPTY:
        raise AttachmentInvalid("The file is empty.")
    if len(data) > file_settings.max_bytes:
        raise _too_large()
    label = _clean_name(name)
    kind = kind_of_file(data, label)
    if isinstance(kind, Unreadable):
        raise AttachmentInvalid(refusal(kind, label), allowed=sorted(file_settings.types))
    if kind not in file_settings.types:
        raise AttachmentInvalid(
            Phrase("{name} cannot be attached here: its kind ({kind}) is not taken.", name=label, kind=kind_name(kind)),
            media_type=kind,
            allowed=sorted(file_settings.types),
        )
    return kind


def store_imported(owner_id: int, data: bytes, *, name: str) -> Attachment:
    """Take in a file of an archive, as `store_bytes` without its pace. A message has to claim it."""
    label = _clean_name(name)
    return _store(owner_id, data, label, check_bytes(data, name=label), is_paced=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeBy:
    """The origin of a file that the product makes itself: of one origin the same bytes are one file.

    The file belongs to the conversation from the start. `key`: distinguishes files of one call.
    """

    instance_id: str
    turn_id: str
    call_id: str
    key: str

    def file_id(self, data: bytes) -> str:
        """The id of the file with these bytes."""
        digest = hashlib.sha256(dump([self.instance_id, self.turn_id, self.call_id, self.key]).encode())
        digest.update(hashlib.sha256(data).digest())
        number, letters = int.from_bytes(digest.digest(), "big"), ""
        while len(letters) < _ID_CHARS:
            number, rest = divmod(number, len(_ID_ALPHABET))
            letters += _ID_ALPHABET[rest]
        return f"att_{letters}"


def store_original(
    owner_id: int, data: bytes, *, name: str, media_type: str = "application/json", made_by: MadeBy | None = None
) -> Attachment:
    """Store what a message has no room for: a part above the row limit, a long output. Not inside a transaction.

    It is no upload: no limit of size, type or pace holds, the user's room does. Durability: of one origin it is stored
    once, however often it is tried. Errors: `QuotaExceeded`.
    """
    return _store(owner_id, data, _clean_name(name), media_type, is_paced=False, made_by=made_by)


def store_made(owner_id: int, data: bytes, *, name: str, made_by: MadeBy) -> Attachment:
    """Store a file that a tool made. As `store_bytes`, without its pace; stored once as by `store_original`."""
    label = _clean_name(name)
    return _store(owner_id, data, label, check_bytes(data, name=label), is_paced=False, made_by=made_by)


def _store(
    owner_id: int,
    data: bytes,
    label: str,
    media_type: str,
    *,
    is_paced: bool,
    made_by: MadeBy | None = None,
) -> Attachment:
    attachment_id = new_attachment_id() if made_by is None else made_by.file_id(data)
    if made_by is not None and (known := _made_before(owner_id, attachment_id)) is not None:
        return known
    _check_limits(owner_id, len(data), is_paced=is_paced)  # early, so that a refused file is not written at all
    store = object_storage()
    storage_name = store.save(f"{FOLDER}/{attachment_id}", ContentFile(data))
    try:
        with transaction.atomic():
            lock_owner(owner_id)
            _check_limits(owner_id, len(data), is_paced=is_paced)
            return Attachment.objects.create(
                id=attachment_id,
                owner_id=owner_id,
                name=label,
                media_type=media_type,
                byte_size=len(data),
                sha256=hashlib.sha256(data).hexdigest(),
                storage_name=storage_name,
                instance_id=None if made_by is None else made_by.instance_id,
                claimed_at=None if made_by is None else timezone.now(),
            )
    except (DatabaseError, QuotaExceeded):
        store.delete(storage_name)
        known = None if made_by is None else _made_before(owner_id, attachment_id)
        if known is not None:  # by a worker that has lost its lease meanwhile and does not know it yet
            return known
        raise


def _made_before(owner_id: int, attachment_id: str) -> Attachment | None:
    return Attachment.objects.filter(pk=attachment_id, owner_id=owner_id).first()


def store_data_url(owner_id: int, url: str, *, name: str) -> Attachment:
    """Take in the bytes of a `data:` URL. Errors: as `store_bytes`; `AttachmentInvalid` for a malformed one."""
    return store_bytes(owner_id, _bytes_of(url), name=name)


def _bytes_of(url: str) -> bytes:
    match = _DATA_URL.match(url)
    if match is None:
        raise AttachmentInvalid("The data URL is malformed.")
    body = url[match.end() :]
    if len(body) > file_settings.max_bytes * 3 + 4:
        raise _too_large()
    try:
        raw = unquote_to_bytes(body)
        return base64.b64decode(raw, validate=True) if ";base64" in match.group(2).lower() else raw
    except (binascii.Error, ValueError):
        raise AttachmentInvalid("The data URL is malformed.") from None


def adopt_files(owner_id: int, message: MessageT, *, key: InstanceKey | None = None) -> tuple[MessageT, list[str]]:
    """Make a message's file parts references: data URLs go to storage, other people's and foreign URLs are refused.

    What the conversation of `key` has already, under this name and with these bytes, is not stored once more.
    Call it before the transaction that admits the message, then `claim` the returned ids inside it.
    Shape: the message with `…/files/…` URLs of the API and true media types; ids of its attachments in order.
    Errors: `AttachmentInvalid`, `QuotaExceeded`.
    """
    parts = _parts_with_files(message)
    files = [part for part in parts if _is_file(part)]
    if len(files) > FILES_PER_MESSAGE:
        raise AttachmentInvalid(Phrase("A message has at most {limit} files.", limit=FILES_PER_MESSAGE))
    known = {row.id: row for row in _owned(owner_id, [attachment_id(part.get("url")) for part in files])}
    kept = _KeptFiles(owner_id, key, files)
    ids: list[str] = []
    adopted: list[JSONValue] = []
    for part in parts:
        if not _is_file(part):
            adopted.append(part)
            continue
        row = known.get(attachment_id(part.get("url")) or "") or kept.find(part) or kept.store(part)
        ids.append(row.id)
        adopted.append(_reference(part, row))
    return ({**message, "parts": adopted} if ids else message), ids


def recognise_files(key: InstanceKey, message: MessageT) -> MessageT:
    """Make references of those data URLs whose file this conversation has already. Nothing is stored.

    Errors: `AttachmentInvalid` for a malformed one.
    """
    parts = _parts_with_files(message)
    files = [part for part in parts if _is_file(part)]
    if key.owner_id is None or not files:
        return message
    kept = _KeptFiles(key.owner_id, key, files)
    known = [(part, kept.find(part) if _is_file(part) else None) for part in parts]
    return {**message, "parts": [part if row is None else _reference(part, row) for part, row in known]}


def _parts_with_files(message: MessageT) -> list[Any]:
    """All parts of a message that has files, else none."""
    parts: JSONValue = message.get("parts")
    return parts if isinstance(parts, list) and any(_is_file(part) for part in parts) else []


def _reference(part: Part, row: Attachment) -> Part:
    return {**part, "url": url_of(row.id, like=part.get("url")), "mediaType": row.media_type}


class _KeptFiles:
    """The files of a message that come as data URLs, and which of them a conversation has already. One query."""

    def __init__(self, owner_id: int, key: InstanceKey | None, files: Sequence[Part]) -> None:
        self._owner_id = owner_id
        self._sent = {url: _bytes_of(url) for part in files if (url := _data_url(part))}
        self._digests = {url: hashlib.sha256(data).hexdigest() for url, data in self._sent.items()}
        rows = [] if key is None else _kept_in(key, self._digests.values())
        # Of several the one that came into the conversation first, at each request the same one.
        self._rows = {(row.sha256, row.name): row for row in reversed(rows)}

    def find(self, part: Part) -> Attachment | None:
        """The file that has these bytes and this name."""
        digest = self._digests.get(_data_url(part))
        return None if digest is None else self._rows.get((digest, _name_of(part)))

    def store(self, part: Part) -> Attachment:
        """Take the file in. Errors: as `store_bytes`; `AttachmentInvalid` for an URL that is none of data."""
        url = _data_url(part)
        if not url:
            raise AttachmentInvalid("A file part has to refer to one of your uploaded files or be a data URL.")
        row = store_bytes(self._owner_id, self._sent[url], name=_name_of(part))
        self._rows[self._digests[url], row.name] = row
        return row


def _data_url(part: Part) -> str:
    url = part.get("url")
    return url if isinstance(url, str) and url.startswith("data:") else ""


def _name_of(part: Part) -> str:
    name = part.get("filename")
    return _clean_name(name if isinstance(name, str) else "")


_SHARED = Q(instance=None, claimed_at__isnull=False)


def find_kept(key: InstanceKey, data: bytes, *, name: str) -> Attachment | None:
    """The file with these bytes and this name that a conversation has already."""
    rows = _kept_in(key, [hashlib.sha256(data).hexdigest()])
    return next((row for row in rows if row.name == _clean_name(name)), None)


def _kept_in(key: InstanceKey, digests: Iterable[str]) -> list[Attachment]:
    """Files with these checksums in one conversation, in the order in which they came into it."""
    wanted = set(digests)
    if not wanted:
        return []
    shared = _SHARED & Q(owner_id=key.owner_id)
    rows = Attachment.objects.filter(Q(**lookup_of(key, "instance__")) | shared, sha256__in=wanted)
    return list(rows.order_by("claimed_at", "id"))


def claim(owner_id: int, attachment_ids: Sequence[str], instance: AgentInstance) -> None:
    """Bind files to a conversation, inside the transaction that admits the message. Safe to call twice.

    Errors: `AttachmentInvalid` when one is unknown, another's, or bound to another conversation.
    """
    if len(set(attachment_ids)) > FILES_PER_MESSAGE:
        raise AttachmentInvalid(Phrase("A message has at most {limit} files.", limit=FILES_PER_MESSAGE))
    bind(owner_id, attachment_ids, instance)


def bind(owner_id: int, attachment_ids: Sequence[str], instance: AgentInstance) -> None:
    """Do as `claim` for files without an upload: the originals of large messages. Shared files stay shared."""
    wanted = set(attachment_ids)
    if not wanted:
        return
    rows = Attachment.objects.filter(Q(owner_id=owner_id) | Q(instance=instance), pk__in=wanted)
    count = rows.filter(instance=None, claimed_at=None).update(instance=instance, claimed_at=timezone.now())
    if count != len(wanted):
        count = rows.filter(Q(instance=instance) | _SHARED).count()
    if count != len(wanted):
        raise AttachmentInvalid("A file of this message does not exist or belongs to another conversation.")


def share_files_of(instance: AgentInstance) -> None:
    """Let the files of a conversation outlive it: a fork of it shows them too. All of them are its owner's then."""
    Attachment.objects.filter(instance=instance).update(instance=None, owner=instance.owner_id)


def load_for_model(url: str, owner_id: int | None) -> FileContent:
    """Bytes of an attached file for the model. Reads storage: not inside a transaction.

    Errors: `AttachmentNotFound` for a foreign URL, another owner, a file that is gone. Never fetches from the network.
    """
    found = attachment_id(url)
    row = None if found is None else Attachment.objects.filter(_seen_by(owner_id), pk=found).first()
    if row is None:
        raise AttachmentNotFound
    return FileContent(media_type=row.media_type, data=read_bytes(row), filename=row.name)


def rows_of(urls: Sequence[str], owner_id: int | None) -> dict[str, Attachment]:
    """The files of these URLs that a user has or was sent by members, by their id. One query at most."""
    ids = {found for url in urls if (found := attachment_id(url)) is not None}
    if owner_id is None or not ids:
        return {}
    return {row.id: row for row in Attachment.objects.filter(_seen_by(owner_id), pk__in=ids)}


def _seen_by(owner_id: int | None) -> Q:
    """Files of a user, and those that members sent into the user's conversations."""
    return Q(owner_id=owner_id) | Q(instance__owner_id=owner_id, instance__owner__isnull=False)


def read_bytes(row: Attachment) -> bytes:
    """Bytes of the file. Errors: `AttachmentNotFound` when the object is gone."""
    with open_file(row) as file:
        data: bytes = file.read(row.byte_size)
        return data


def open_file(row: Attachment) -> "File[bytes]":
    """Open the file for reading. Errors: `AttachmentNotFound` when the object is gone."""
    try:
        return object_storage().open(row.storage_name, "rb")
    except FileNotFoundError:
        raise AttachmentNotFound from None


def attachment_id(url: object) -> str | None:
    """Id in a URL of ours; nothing for any other URL."""
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    return match.group(1) if match else None


def url_of(attachment: str, *, like: object = None) -> str:
    """URL by which messages refer to a file. `like`: a URL of ours whose mount prefix is kept."""
    return str(like) if attachment_id(like) == attachment else _mounted_url(attachment)


def _mounted_url(attachment: str) -> str:
    try:
        return reverse(f"{API_NAMESPACE}:file_get", kwargs={"file_id": attachment})
    except NoReverseMatch:  # the project mounts the API under a namespace of its own
        return f"/api/v1/files/{attachment}"


def delete_attachment(row: Attachment) -> None:
    """Remove a file: the row now, its object after the commit. Messages keep a reference that answers 404."""
    with transaction.atomic():
        Attachment.objects.filter(pk=row.pk).delete()
        delete_after_commit(_objects_of([row]))


def forget_files_of(instance_ids: Iterable[str]) -> None:
    """Remove all files of these conversations; inside the transaction that removes them."""
    rows = Attachment.objects.filter(instance_id__in=list(instance_ids))
    names = _objects_of(rows.only("id", "media_type", "storage_name"))
    rows.delete()
    delete_after_commit(names)


def usage(owner_id: int) -> StorageUsage:
    """Number and bytes of the user's files."""
    row = Attachment.objects.filter(owner_id=owner_id).aggregate(files=Count("id"), total=Sum("byte_size"))
    return StorageUsage(files=row["files"], byte_count=row["total"] or 0)


def sweep_orphans(*, dry_run: bool = False, limit: int = 1_000) -> int:
    """Remove files that no message claimed in time, and objects without a row. Returns how many (or would be).

    Safe to run at any time and twice: what is younger than `ORPHAN_HOURS` is left alone.
    """
    before = timezone.now() - timedelta(hours=ORPHAN_HOURS)
    stale = Attachment.objects.filter(claimed_at=None, created_at__lt=before)
    ids = list(stale.values_list("id", flat=True)[:limit])
    if not dry_run:
        for row_id in ids:
            with transaction.atomic():
                row = stale.select_for_update().filter(pk=row_id).first()
                if row is not None and stale.filter(pk=row_id).delete()[0]:
                    delete_after_commit(_objects_of([row]))
    swept = sweep_objects(FOLDER, referenced_by(Attachment), before=before.timestamp(), dry_run=dry_run, limit=limit)
    swept += sweep_objects(VIEW_FOLDER, _viewed, before=before.timestamp(), dry_run=dry_run, limit=limit)
    return len(ids) + swept


def view_name(file_id: str) -> str:
    """Name in storage of the view of a file (`chat.files.views`)."""
    return f"{VIEW_FOLDER}/{file_id}"


def _objects_of(rows: Iterable[Attachment]) -> list[str]:
    """Names in storage of files and of their views, where there may be some."""
    kinds = DOCUMENTS | PICTURES
    return [
        name for row in rows for name in (row.storage_name, *([view_name(row.id)] if row.media_type in kinds else []))
    ]


def _viewed(names: Sequence[str]) -> set[str]:
    ids = [name.rsplit("/", 1)[-1] for name in names]
    return set(map(view_name, Attachment.objects.filter(pk__in=ids).values_list("pk", flat=True)))


def _owned(owner_id: int, ids: Iterable[str | None]) -> list[Attachment]:
    wanted = [value for value in ids if value is not None]
    return list(Attachment.objects.filter(pk__in=wanted, owner_id=owner_id)) if wanted else []


def _is_file(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") == "file"


def _check_limits(owner_id: int, byte_count: int, *, is_paced: bool) -> None:
    if is_paced:
        _check_pace(owner_id)
    _check_quota(owner_id, byte_count)


def _check_pace(owner_id: int) -> None:
    if file_settings.per_minute:
        since = timezone.now() - timedelta(minutes=1)
        if Attachment.objects.filter(owner_id=owner_id, created_at__gte=since).count() >= file_settings.per_minute:
            raise QuotaExceeded("You are uploading too fast. Wait a minute, then try again.", retry_after_seconds=60)


def _check_quota(owner_id: int, byte_count: int) -> None:
    kept = usage(owner_id)
    if file_settings.per_user and kept.files >= file_settings.per_user:
        raise QuotaExceeded(Phrase("You can keep {limit} files. Delete some first.", limit=file_settings.per_user))
    if file_settings.quota_bytes and kept.byte_count + byte_count > file_settings.quota_bytes:
        raise QuotaExceeded(
            "There is no room for this file. Delete some files first.", quota_bytes=file_settings.quota_bytes
        )


def _clean_name(name: str) -> str:
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    printable = "".join(c for c in base if c.isprintable()).strip().strip(".")
    return printable[-255:] or "file"


def _too_large() -> AttachmentInvalid:
    return AttachmentInvalid(
        Phrase("A file has at most {limit} MiB.", limit=file_settings.max_bytes // (1024 * 1024)),
        max_bytes=file_settings.max_bytes,
    )
