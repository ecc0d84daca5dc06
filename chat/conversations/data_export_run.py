"""The work on an export of everything: one zip in a temporary file, then in storage.

Only what is the person's own is read: conversations that they own with all histories, files that they sent and those
that others sent there, their workspaces in the database, and lists of the rest (`data_records`). One piece is
in memory. A worker that dies leaves nothing: the next one begins again.
"""

import asyncio
import tempfile
import time
import zipfile
from collections.abc import Iterator
from typing import IO, Any, Final

from django.core.files.base import File
from django.db.models import Q
from django.utils import timezone

from chat.conversations.data_records import RECORDS, AccountRecord, person_of, plain, rows_of
from chat.errors import AttachmentNotFound
from chat.files import attachments
from chat.models import AgentInstance, Attachment, DataExport
from chat.operations.data_exports import FOLDER, KEPT_DAYS
from fibers.context import FiberContext
from sessions_app.models import Session
from sessions_app.transfer.export import export_lines
from thinkproject.kernel.aio import db
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.object_storage import object_storage
from tools_app.errors import FileFailed
from tools_app.models import StoredWorkspace
from tools_app.workspace.archive import export_zip
from tools_app.workspace.services import open_workspace

PIECE: Final = 1024 * 1024
NOTE_SECONDS: Final = 1.0
"""The time between two writes of how far the work is."""
README: Final = f"""Everything of yours on this site, as it was when this file was made.

person.json             your account
conversations.json      your conversations, sub-agents included, and temporary ones that are not removed yet
projects.json           your projects; conversations name theirs, and their files are among the workspaces
conversations/ID/       the histories of one conversation, a file for each: lines of JSON, which can be imported again
files/ID/               files of your conversations, and files that you sent to those of others
workspaces/ID.zip       files of agents and of projects
*.json                  memory, rules, schedules, servers, extensions, tokens (without secrets), messages between agents
                        and the rest, as lists
left-out.txt            what could not be read; there only where that was so

Not in here: passwords, keys and tokens; conversations of others; folders of the server that agents work in; and what
durable streams hold. The file is removed from the site {KEPT_DAYS} days after it was made.
"""


class _Job:
    """One export that is being written: its zip, and how far it is."""

    def __init__(self, context: FiberContext, row: DataExport, file: IO[bytes]) -> None:
        self.context = context
        self.row = row
        self.owner_id = row.owner_id
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)
        self.left_out: list[str] = []
        self._done = 0
        self._noted_at = 0.0

    def write(self, name: str, pieces: Iterator[bytes]) -> None:
        """Add a file. Sync."""
        with self.zip.open(name, "w", force_zip64=True) as file:
            for piece in pieces:
                file.write(piece)

    def step(self, count: int = 1) -> None:
        """Count what is written, and note it now and then. Sync. Errors: `LeaseLost`."""
        self._done += count
        self.context.advance(count)
        if time.monotonic() - self._noted_at >= NOTE_SECONDS:
            self._noted_at = time.monotonic()
            with self.context.fenced():
                DataExport.objects.filter(pk=self.row.pk).update(done_count=self._done)


async def export_everything(context: FiberContext) -> None:
    """Write the export that the payload names. One that was removed meanwhile is not missed."""
    row = await db(_find, context)
    if row is None:
        return
    with tempfile.TemporaryFile() as file:
        job = _Job(context, row, file)
        conversations, files, workspaces = await db(_count, job)
        await db(_write_lists, job)
        for instance_id in conversations:
            await db(_write_conversation, job, instance_id)
        for file_id in files:
            await db(_write_file, job, file_id)
        for workspace_id in workspaces:
            await _write_workspace(job, workspace_id)
        await asyncio.to_thread(_close, job)
        size = file.tell()
        file.seek(0)
        name = await asyncio.to_thread(_store, file, size)
    await db(_finish, job, name, size)


def _find(context: FiberContext) -> DataExport | None:
    return DataExport.objects.filter(pk=context.payload["export_id"], finished_at=None).first()


def _count(job: _Job) -> tuple[list[str], list[str], list[str]]:
    """The ids of what is to be written, and a note of how many these are."""
    mine = AgentInstance.objects.filter(owner_id=job.owner_id)
    conversations = list(mine.order_by("-active_at", "-id").values_list("pk", flat=True))
    files = Attachment.objects.filter(Q(owner_id=job.owner_id) | Q(instance__owner_id=job.owner_id))
    workspaces = StoredWorkspace.objects.filter(owner_id=job.owner_id, root="", file_count__gt=0)
    found = (
        conversations,
        list(files.order_by("pk").values_list("pk", flat=True)),
        list(workspaces.order_by("pk").values_list("pk", flat=True)),
    )
    with job.context.fenced():
        DataExport.objects.filter(pk=job.row.pk).update(done_count=0, total_count=sum(map(len, found)))
    return found


def _write_lists(job: _Job) -> None:
    job.zip.writestr("README.txt", README)
    job.zip.writestr("person.json", dump(plain(person_of(job.owner_id))))
    for record in RECORDS:
        job.write(f"{record.name}.json", _list(record, job.owner_id))


def _list(record: AccountRecord, owner_id: Any) -> Iterator[bytes]:
    before = "["
    for values in rows_of(record, owner_id):
        yield (before + dump(values)).encode(errors="replace")
        before = ",\n"
    yield b"[]" if before == "[" else b"]"


def _write_conversation(job: _Job, instance_id: str) -> None:
    sessions = Session.objects.filter(scope=instance_id).order_by("created_at", "pk").values_list("pk", flat=True)
    for session_id in list(sessions):
        lines = (line.encode(errors="replace") for line in export_lines(session_id))
        job.write(f"conversations/{instance_id}/{session_id}.jsonl", lines)
    job.step()


def _write_file(job: _Job, file_id: str) -> None:
    row = Attachment.objects.filter(pk=file_id).first()
    if row is None:  # it has just gone
        return
    try:
        with attachments.open_file(row) as file:
            job.write(f"files/{row.pk}/{_safe(row.name)}", iter(lambda: file.read(PIECE), b""))
    except AttachmentNotFound:
        job.left_out.append(f"{row.pk} {row.name}: the file is gone\n")
    job.step()


async def _write_workspace(job: _Job, workspace_id: str) -> None:
    try:
        with job.zip.open(f"workspaces/{workspace_id}.zip", "w", force_zip64=True) as file:
            async for piece in export_zip(open_workspace(workspace_id, can_write=False)):
                await asyncio.to_thread(file.write, piece)
    except FileFailed as error:
        job.left_out.append(f"workspace {workspace_id}: {error.message}\n")
    await db(job.step)


def _close(job: _Job) -> None:
    if job.left_out:
        job.zip.writestr("left-out.txt", "".join(job.left_out))
    job.zip.close()


def _store(file: IO[bytes], size: int) -> str:
    content = File(file)
    content.size = size
    name: str = object_storage().save(f"{FOLDER}/{new_id('obj')}", content)
    return name


def _finish(job: _Job, name: str, size: int) -> None:
    """Make the export known. Where it was removed meanwhile, its object goes too."""
    with job.context.completing(None):
        is_wanted = DataExport.objects.filter(pk=job.row.pk).update(
            storage_name=name, byte_size=size, finished_at=timezone.now()
        )
    if not is_wanted:
        object_storage().delete(name)


def _safe(name: str) -> str:
    """A name of a file that stays below its folder."""
    kept = "".join("_" if char in '/\\:*?"<>|' or not char.isprintable() else char for char in name)
    return kept.strip(". ")[:200] or "file"
