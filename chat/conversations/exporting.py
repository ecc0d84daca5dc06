"""Conversations written out: one in each of four formats, or all of a user's.

The first two are our own: lines of JSON with everything, which can be imported again, and the shown path to read. The
others are those that Open WebUI and LibreChat import. All of a user's are one zip of such files; for Open WebUI, whose
import takes no zip, one JSON list. One conversation at a time is in memory.
"""

import base64
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import IO, Final, cast

from django.db.models import Q

from chat.conversations.data_records import AGENT_MESSAGES, rows_of
from chat.errors import AttachmentNotFound
from chat.files import attachments
from chat.models import AgentInstance, Attachment
from chat.people.feedback import feedback_of
from sessions_app.core.messages.shapes import Part
from sessions_app.transfer.archives.librechat_record import librechat_record
from sessions_app.transfer.archives.open_webui_record import open_webui_record
from sessions_app.transfer.archives.shapes import FileRef, Product
from sessions_app.transfer.archives.stored import stored_conversation
from sessions_app.transfer.export import export_lines, export_markdown
from thinkproject.kernel.jsonvalue import JSONObject, dump
from thinkproject.kernel.zips import ZipSink
from tools_app.core.files.encodings import detected, shown_text

MAX_FILES_BYTES: Final = 24 * 1024 * 1024
"""Attached files of one conversation in a format of another product, which has them as text within its JSON."""
LEFT_OUT: Final = "left-out.txt"
BETWEEN_AGENTS: Final = "agent-messages.jsonl"
"""In a zip of all conversations: what agents of a room sent each other. Nothing makes rows of it again: an
import would have agents answer twice."""
FEEDBACK: Final = "feedback.jsonl"
"""In a zip of all conversations: what the person thinks of answers."""


class ExportFormat(StrEnum):
    """The formats of an export. The values are those of the API."""

    JSONL = "jsonl"
    MARKDOWN = "markdown"
    OPEN_WEBUI = "open-webui"
    LIBRECHAT = "librechat"

    @property
    def extension(self) -> str:
        """The end of a file's name."""
        return {ExportFormat.JSONL: "jsonl", ExportFormat.MARKDOWN: "md"}.get(self, "json")

    @property
    def media_type(self) -> str:
        """Of one conversation."""
        own = {ExportFormat.JSONL: "application/x-ndjson", ExportFormat.MARKDOWN: "text/markdown; charset=utf-8"}
        return own.get(self, "application/json")


WORDS: Final = {
    "file": "files that the format has no place for, or that are too large",
    "hidden": "hidden texts",
    "unknown": "parts that the format has no place for, such as sources",
}
"""Words for kinds of `LeftOut` in exports, in English."""
WRITERS: Final = {
    ExportFormat.OPEN_WEBUI: (Product.OPEN_WEBUI, open_webui_record),
    ExportFormat.LIBRECHAT: (Product.LIBRECHAT, librechat_record),
}


def export_conversation(
    instance: AgentInstance,
    session_id: str,
    form: ExportFormat,
    *,
    left_out: Counter[str] | None = None,
    is_owner: bool = True,
) -> Iterator[str]:
    """One history as pieces of text. `left_out`: gets the counts of what the format has no place for.

    For others than the owner: without memory and costs, and of the files those that were sent here.

    The files of other products' formats say them too. Errors: `SessionNotFound`, at once.
    """
    if form is ExportFormat.JSONL:
        return export_lines(session_id, is_owner=is_owner)
    if form is ExportFormat.MARKDOWN:
        return export_markdown(session_id)
    return iter([_list([dump(_record(instance, session_id, form, left_out, is_owner=is_owner))], form)])


def export_all(
    owner_id: int,
    form: ExportFormat,
    *,
    only: Sequence[str] = (),
    note: Callable[[str, Counter[str]], None] = lambda _title, _counts: None,
) -> Iterator[bytes]:
    """All conversations of a user with their current histories, the last active first, put away or not, as one file.

    `only`: these of them, by their ids.
    `note`: is given the title and what was left out of each. A conversation that goes meanwhile is not in it.
    """
    mine = AgentInstance.objects.filter(owner_id=owner_id, parent=None, session__isnull=False)
    if only:
        mine = mine.filter(pk__in=list(only))
    ids = list(mine.order_by("-active_at", "-id").values_list("pk", flat=True))
    if form is ExportFormat.OPEN_WEBUI:
        return _json_list(ids, form, note)
    narrower = {"room__in": list(only)} if only else {}
    return _zip(
        ids,
        form,
        note,
        lists={
            FEEDBACK: (dump(line) + "\n" for line in feedback_of(owner_id)),
            BETWEEN_AGENTS: (dump(line) + "\n" for line in rows_of(AGENT_MESSAGES, owner_id, **narrower)),
        },
    )


def all_name(form: ExportFormat) -> str:
    """The name of the file with all conversations."""
    return f"conversations-{form.value}.{'json' if form is ExportFormat.OPEN_WEBUI else 'zip'}"


def _rows(ids: list[str]) -> Iterator[AgentInstance]:
    for pk in ids:
        instance = AgentInstance.objects.filter(pk=pk, session__isnull=False).first()
        if instance is not None:
            yield instance


def _json_list(ids: list[str], form: ExportFormat, note: Callable[[str, Counter[str]], None]) -> Iterator[bytes]:
    before = b"["
    for instance in _rows(ids):
        counts: Counter[str] = Counter()
        yield before + dump(_record(instance, str(instance.session_id), form, counts)).encode(errors="replace")
        note(_title(instance), counts)
        before = b","
    yield b"]" if before == b"," else b"[]"


def _zip(
    ids: list[str], form: ExportFormat, note: Callable[[str, Counter[str]], None], *, lists: dict[str, Iterator[str]]
) -> Iterator[bytes]:
    sink = ZipSink()
    lines: list[str] = []
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", zipfile.ZIP_DEFLATED) as archive:
        for instance in _rows(ids):
            counts: Counter[str] = Counter()
            with archive.open(f"{instance.pk}.{form.extension}", "w", force_zip64=True) as file:
                for piece in export_conversation(instance, str(instance.session_id), form, left_out=counts):
                    file.write(piece.encode(errors="replace"))
                    yield sink.taken()
            note(_title(instance), counts)
            lines += [f"{_title(instance)}: {sentence(counts)}\n"] if counts else []
        for name, rows in lists.items():
            first = next(rows, None)
            if first is None:
                continue
            with archive.open(name, "w", force_zip64=True) as file:
                for row in chain([first], rows):
                    file.write(row.encode(errors="replace"))
            yield sink.taken()
        if lines:
            archive.writestr(LEFT_OUT, "".join(lines))
    yield sink.taken()


def sentence(left_out: Counter[str]) -> str:
    """Say in English what was left out: `2 hidden texts`."""
    return ", ".join(f"{count} {WORDS.get(kind, kind)}" for kind, count in left_out.items())


def _title(instance: AgentInstance) -> str:
    return instance.title or instance.pk


def _list(records: list[str], form: ExportFormat) -> str:
    """Open WebUI imports a list, LibreChat one object."""
    return f"[{','.join(records)}]" if form is ExportFormat.OPEN_WEBUI else "".join(records)


def _record(
    instance: AgentInstance,
    session_id: str,
    form: ExportFormat,
    left_out: Counter[str] | None,
    *,
    is_owner: bool = True,
) -> JSONObject:
    product, write = WRITERS[form]
    is_current = session_id == instance.session_id
    conversation = stored_conversation(
        session_id,
        product,
        source_id=instance.pk if is_current else session_id,
        title=instance.title if is_current else "",
        file_of=_Files(instance, is_owner=is_owner).ref,
    )
    conversation.is_archived = instance.archived_at is not None
    conversation.is_pinned = instance.pinned_at is not None
    record = write(conversation)
    if left_out is not None:
        left_out.update(conversation.left_out)
    return record


class _Files:
    """The attached files of one conversation, up to the limit of bytes."""

    def __init__(self, instance: AgentInstance, *, is_owner: bool) -> None:
        of_conversation = Q(instance_id=instance.pk)  # members' too
        self._may_read = of_conversation | Q(owner_id=instance.owner_id) if is_owner else of_conversation
        self._room = MAX_FILES_BYTES

    def ref(self, part: Part) -> FileRef | None:
        """The file of a part, with its bytes."""
        found = attachments.attachment_id(part.get("url"))
        row = Attachment.objects.filter(self._may_read, pk=found).first() if found else None
        if row is None or row.byte_size > self._room:
            return None
        try:
            data = attachments.read_bytes(row)
        except AttachmentNotFound:
            return None
        self._room -= len(data)
        is_text = not row.media_type.startswith("image/") and detected(data) is not None
        return FileRef(
            name=part.get("filename") or row.name,
            key=row.pk,
            url=f"data:{row.media_type};base64,{base64.b64encode(data).decode()}",
            text=shown_text(data)[0] if is_text else "",
        )
