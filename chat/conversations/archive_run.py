"""The background work on an archive: a look through it for the preview, then its conversations, one at a time.

Each conversation becomes visible in one transaction, together with the row that says that this user has it
(`ImportedConversation`). So a worker that dies loses nothing: the next one reads the archive again and passes over what
is there. Memory holds one conversation; files are read one by one.
"""

import asyncio
import base64
import binascii
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final
from urllib.parse import unquote_to_bytes

from django.db import IntegrityError
from django.db.models import F
from django.utils import timezone

from chat.conversations.changes import new_instance_name
from chat.errors import AttachmentInvalid, QuotaExceeded
from chat.files import attachments
from chat.files.conf import file_settings
from chat.instances.quota import check_instance_quota, count_messages, recount_if_due
from chat.models import AgentInstance, ArchiveImport, ImportedConversation, new_instance_id
from fibers.context import FiberContext
from sessions_app.core.context.block_policy import BlockPolicy
from sessions_app.core.messages.shapes import Part
from sessions_app.errors import ExportInvalid
from sessions_app.transfer.archives.container import Archive
from sessions_app.transfer.archives.lines import conversation_lines
from sessions_app.transfer.archives.reading import Found, read_archive
from sessions_app.transfer.archives.shapes import Conversation, FileRef, LeftOut, UnreadableItem
from sessions_app.transfer.archives.values import text_part
from sessions_app.transfer.import_session import ImportRules, import_session
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.object_storage import delete_after_commit, object_storage
from tools_app.core.guard.rules import SeenText, Spot
from tools_app.core.origins import Origin
from tools_app.guard.standings import GuardScope, see

MAX_NAMED: Final = 100
"""Conversations that cannot be read are named in reports up to so many; all are counted."""
BATCH: Final = 50
NOTHING_FOUND: Final = "There are no conversations in this file that can be read."


async def look_through(context: FiberContext) -> None:
    """Count what is in an archive. Writes the preview; what cannot be read at all is the import's error."""
    row = await db(_find, context)
    if row is None or row.preview is not None:
        return
    tally = _Tally()
    error = ""
    try:
        async with _opened(row) as archive:
            async for batch in _batches(archive):
                await db(_count, row, archive, batch, tally)
                await db(_note_seen, context, row.pk, len(batch))
    except ExportInvalid as invalid:
        error = invalid.message
    await db(_finish_scan, context, row, tally, error)


async def import_archive(context: FiberContext) -> None:
    """Import every conversation that its owner does not have yet, and write the report."""
    row = await db(_find, context)
    if row is None or not row.storage_name:
        return
    tally = _Tally()
    stopped = ""
    await db(recount_if_due, row.owner_id)
    try:
        async with _opened(row) as archive:
            async for batch in _batches(archive, 1):
                for found in batch:
                    await db(_bring, _Job(context=context, row=row, archive=archive), found, tally)
                    await db(_note_seen, context, row.pk, 1)
    except QuotaExceeded as error:
        stopped = error.message
    except ExportInvalid as invalid:
        tally.add_unreadable(UnreadableItem(name=row.name, reason=invalid.message))
    await db(_finish_run, context, row, tally, stopped)


@dataclass(slots=True, kw_only=True)
class _Tally:
    """Counts of one pass through an archive."""

    products: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    keys: set[tuple[str, str]] = field(default_factory=set)
    messages: int = 0
    known: int = 0
    grown: int = 0
    files: int = 0
    unreadable: list[JSONObject] = field(default_factory=list)
    unreadable_count: int = 0

    def add_unreadable(self, found: UnreadableItem) -> None:
        self.unreadable_count += 1
        if len(self.unreadable) < MAX_NAMED:
            self.unreadable.append({"name": found.name[:200], "reason": found.reason})

    def is_new(self, conversation: Conversation) -> bool:
        """Count one of an id that did not come before in this pass."""
        key = (conversation.product.value, conversation.id)
        if key in self.keys:
            return False
        self.keys.add(key)
        self.products[conversation.product.value] += 1
        self.messages += len(conversation.messages)
        return True

    def note_known(self, stored: ImportedConversation, conversation: Conversation) -> None:
        """Count one that was imported before, and whether it has more messages now."""
        self.known += 1
        self.grown += stored.message_count < len(conversation.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One import that runs."""

    context: FiberContext
    row: ArchiveImport
    archive: Archive


def _find(context: FiberContext) -> ArchiveImport | None:
    return ArchiveImport.objects.filter(pk=context.payload["import_id"]).first()


@asynccontextmanager
async def _opened(row: ArchiveImport) -> AsyncIterator[Archive]:
    """The stored archive. Errors: `ExportInvalid`, also where it is gone."""
    try:
        file = await asyncio.to_thread(object_storage().open, row.storage_name, "rb")
    except FileNotFoundError:
        raise ExportInvalid("The archive is gone. Upload it again.") from None
    try:
        yield await asyncio.to_thread(Archive, file, row.name)
    finally:
        await asyncio.to_thread(file.close)


async def _batches(archive: Archive, size: int = BATCH) -> AsyncIterator[list[Found]]:
    """The conversations, read and decoded on a thread that holds no connection."""
    found = read_archive(archive)
    while batch := await asyncio.to_thread(_next, found, size):
        yield batch


def _next(found: Iterator[Found], size: int) -> list[Found]:
    """So many, or fewer where they are large."""
    batch: list[Found] = []
    messages = 0
    for each in islice(found, size):
        batch.append(each)
        messages += len(each.messages) if isinstance(each, Conversation) else 0
        if messages > 20 * size:
            break
    return batch


def _note_seen(context: FiberContext, import_id: str, count: int) -> None:
    with context.fenced():
        ArchiveImport.objects.filter(pk=import_id).update(seen_count=F("seen_count") + count)


def _count(row: ArchiveImport, archive: Archive, batch: list[Found], tally: _Tally) -> None:
    stored = _stored(row.owner_id, batch)
    for found in batch:
        if isinstance(found, UnreadableItem):
            tally.add_unreadable(found)
            continue
        if not tally.is_new(found):
            continue
        known = stored.get((found.product.value, found.id))
        if known is not None:
            tally.note_known(known, found)
        tally.left_out.update(found.left_out)
        for ref in found.files:
            is_there = bool(ref.url or ref.text) or archive.find(ref.key) is not None
            tally.files += is_there
            tally.left_out[LeftOut.FILE] += not is_there


def _stored(owner_id: int, batch: list[Found]) -> dict[tuple[str, str], ImportedConversation]:
    """The conversations among these that the user has, by product and id. One query."""
    ids = [found.id for found in batch if isinstance(found, Conversation)]
    rows = ImportedConversation.objects.filter(owner_id=owner_id, source_id__in=ids)
    return {(row.product, row.source_id): row for row in rows}


def _finish_scan(context: FiberContext, row: ArchiveImport, tally: _Tally, error: str) -> None:
    count = tally.products.total()
    preview = {
        "products": dict(tally.products),
        "conversation_count": count,
        "known_count": tally.known,
        "grown_count": tally.grown,
        "message_count": tally.messages,
        "file_count": tally.files,
        "unreadable_count": tally.unreadable_count,
        "unreadable": tally.unreadable,
        "left_out": {kind: number for kind, number in tally.left_out.items() if number},
    }
    with context.completing(None):
        ArchiveImport.objects.filter(pk=row.pk).update(
            preview=preview, error_text=error or ("" if count else NOTHING_FOUND), seen_count=0
        )


def _bring(job: _Job, found: Found, tally: _Tally) -> None:
    """Import one conversation, unless its owner has it."""
    if isinstance(found, UnreadableItem):
        tally.add_unreadable(found)
        return
    if not tally.is_new(found):
        return
    stored = _stored(job.row.owner_id, [found]).get((found.product.value, found.id))
    if stored is not None:
        if stored.archive_id != job.row.pk:
            tally.note_known(stored, found)
        return
    try:
        _write(job, found)
    except IntegrityError:  # another import was faster
        tally.known += 1
    except ExportInvalid as error:
        tally.add_unreadable(UnreadableItem(name=found.title or found.id, reason=error.message))


def _write(job: _Job, conversation: Conversation) -> None:
    owner_id, instance_id = job.row.owner_id, new_instance_id()
    parts, attachment_ids = _take_files(job, conversation)

    def admit(count: int, byte_count: int) -> None:
        count_messages(owner_id, count, byte_count, paced=0)  # one import of a user runs at a time, in the background

    def also(session_id: str) -> None:
        instance = _make_instance(job, conversation, instance_id, session_id)
        attachments.bind(owner_id, attachment_ids, instance)
        ImportedConversation.objects.create(
            owner_id=owner_id,
            product=conversation.product.value,
            source_id=conversation.id,
            instance=instance,
            archive_id=job.row.pk,
            message_count=len(conversation.messages),
            file_count=len(set(attachment_ids)),
            left_out=dict(conversation.left_out),
        )
        place = GuardScope(session_id=session_id, scope=instance_id, owner_id=owner_id)
        see(place, [SeenText(Origin.FILE, job.row.name)], at=Spot(name="import"))
        job.context.passed("conversation")

    rules = ImportRules(
        blocks=BlockPolicy({}),
        begin=lambda: None,
        admit=admit,
        inside=job.context.fenced,
        also=also,
    )
    lines = conversation_lines(conversation, lambda ref: parts[ref])
    import_session(lines, owner_id=owner_id, scope=instance_id, rules=rules)
    job.context.reached(f"conversation:{conversation.id}")


def _make_instance(job: _Job, conversation: Conversation, instance_id: str, session_id: str) -> AgentInstance:
    """The conversation, in the place of the list that it had where it comes from."""
    now = timezone.now()
    check_instance_quota(job.row.owner_id)
    instance = AgentInstance(
        id=instance_id,
        owner_id=job.row.owner_id,
        agent=job.row.agent,
        name=new_instance_name(),
        title=conversation.title,
        session_id=session_id,
        seen_at=now,
        archived_at=now if conversation.is_archived else None,
        pinned_at=now if conversation.is_pinned else None,
    )
    instance.save(force_insert=True)
    active_at = min(conversation.updated_at or conversation.created_at or now, now)
    created_at = min(conversation.created_at or active_at, active_at)
    AgentInstance.objects.filter(pk=instance_id).update(active_at=active_at, created_at=created_at)
    return instance


def _take_files(job: _Job, conversation: Conversation) -> tuple[dict[FileRef, Part], list[str]]:
    """Store the files that are there. The others stand in the text by their names, and are counted as left out."""
    parts: dict[FileRef, Part] = {}
    ids: list[str] = []
    for ref in conversation.files:
        if ref in parts:
            continue
        try:
            data = _bytes_of(job.archive, ref)
            if data is None:
                raise AttachmentInvalid("It is not in the archive.")
            row = attachments.store_imported(job.row.owner_id, data, name=ref.name)
        except (AttachmentInvalid, QuotaExceeded):
            conversation.left_out[LeftOut.FILE] += 1
            parts[ref] = text_part(f"[{ref.name}]")
            continue
        ids.append(row.pk)
        url = attachments.url_of(row.pk)
        parts[ref] = {"type": "file", "mediaType": row.media_type, "url": url, "filename": row.name}
    return parts, ids


def _bytes_of(archive: Archive, ref: FileRef) -> bytes | None:
    """The bytes of a file, from wherever they are."""
    if ref.url.startswith("data:"):
        head, _, body = ref.url.partition(",")
        try:
            data = unquote_to_bytes(body[: file_settings.max_bytes * 3 + 4])
            return base64.b64decode(data, validate=True) if head.lower().endswith(";base64") else data
        except (binascii.Error, ValueError):
            return None
    info = archive.find(ref.key)
    if info is not None:
        return archive.read(info, max_bytes=file_settings.max_bytes)
    return ref.text.encode(errors="replace") if ref.text else None


def _finish_run(context: FiberContext, row: ArchiveImport, tally: _Tally, stopped: str) -> None:
    """Write the report: what this import has brought, whichever worker did it, and what the last pass has found."""
    brought = list(row.conversations.values_list("message_count", "file_count", "left_out"))
    left_out: Counter[str] = Counter()
    for _, _, each in brought:
        left_out.update(each)
    report = {
        "added_count": len(brought),
        "known_count": tally.known,
        "grown_count": tally.grown,
        "message_count": sum(messages for messages, _, _ in brought),
        "file_count": sum(files for _, files, _ in brought),
        "unreadable_count": tally.unreadable_count,
        "unreadable": tally.unreadable,
        "left_out": dict(left_out),
        "stopped": stopped,
    }
    has_nothing = not brought and not tally.known
    with context.completing(None):
        rows = ArchiveImport.objects.filter(pk=row.pk)
        rows.update(report=report, error_text=stopped or (NOTHING_FOUND if has_nothing else ""))
        if not stopped:
            rows.update(storage_name="")
            delete_after_commit([row.storage_name])
