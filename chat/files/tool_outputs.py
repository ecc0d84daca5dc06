"""Files of tool calls: the whole of an output that was too long, and what a tool made.

Both are attachments of the conversation from the moment in which they are stored, and live as long as it does: a stored
message names them. A call that runs again after a crash finds what it has stored before.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db import DatabaseError
from django.db.models import Q

from chat.core.context.result_files import is_seen
from chat.core.model.language_model import FileContent
from chat.errors import AttachmentNotFound, ChatError
from chat.files import attachments
from chat.files.attachments import MadeBy
from chat.models import Attachment
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load
from thinkproject.kernel.phrases import Phrase
from tools_app.core.output_limits import CutOutput, lines_of
from tools_app.core.tool_output import Media

logger = logging.getLogger(__name__)

MAX_FILES: Final = 20
"""Files that are kept of one call."""

NOT_KEPT: Final = "The file could not be stored."
_TEXT, _JSON = "text/plain", "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlace:
    """The place of a call. `owner_id`: whose room is used; without one nothing can be kept."""

    owner_id: int | None
    instance_id: str
    turn_id: str
    call_id: str

    def made_by(self, key: str) -> MadeBy:
        """The origin of one of its files."""
        return MadeBy(instance_id=self.instance_id, turn_id=self.turn_id, call_id=self.call_id, key=key)


def keep_whole(place: CallPlace, output: JSONValue, cut: CutOutput) -> JSONObject:
    """Store all of an output that was cut. Never raises: an output that cannot be kept is cut all the same.

    Shape: the `whole` of a call's details, without `id` and `url` where there was no room for it. Not inside a
    transaction.
    """
    is_text = isinstance(output, str)
    data = output.encode("utf-8", "replace") if isinstance(output, str) else dump(output).encode()
    facts: JSONObject = {"bytes": len(data), "lines": len(lines_of(output))}
    if cut.next_line:
        facts["next"] = cut.next_line
    if place.owner_id is None:
        return facts
    name, media_type = ("output.txt", _TEXT) if is_text else ("output.json", _JSON)
    try:
        made_by = place.made_by("output")
        row = attachments.store_original(place.owner_id, data, name=name, media_type=media_type, made_by=made_by)
    except (ChatError, OSError, DatabaseError):
        logger.exception("output not kept", extra={"action": "output_not_kept", "call_id": place.call_id})
        return facts
    return {"id": row.id, "url": attachments.url_of(row.id), **facts}


def keep_files(place: CallPlace, media: Sequence[Media]) -> list[JSONObject]:
    """Store the files that a tool returned. Never raises: of one that is refused the reason is kept.

    Shape: `{url, mediaType, filename}` each, or `{filename, error}`. Not inside a transaction.
    """
    return [_keep_file(place, number, item) for number, item in enumerate(media)]


def seen_files(entries: Sequence[JSONObject], media: Sequence[Media]) -> dict[str, FileContent]:
    """Files that models may be sent in the same turn, by their URL: they are at hand and need not be read.

    `entries`: what `keep_files` gave for them.
    """
    return {
        entry["url"]: FileContent(media_type=entry["mediaType"], data=item.data, filename=entry["filename"])
        for entry, item in zip(entries, media, strict=True)
        if is_seen(str(entry.get("mediaType")))
    }


def _keep_file(place: CallPlace, number: int, item: Media) -> JSONObject:
    if place.owner_id is None or number >= MAX_FILES:
        return {"filename": item.name, "error": NOT_KEPT}
    try:
        row = attachments.store_made(place.owner_id, item.data, name=item.name, made_by=place.made_by(f"file:{number}"))
    except ThinkError as error:
        return {"filename": item.name, "error": error.message}
    except (OSError, DatabaseError):
        logger.exception("file not kept", extra={"action": "tool_file_not_kept", "call_id": place.call_id})
        return {"filename": item.name, "error": NOT_KEPT}
    return {"url": attachments.url_of(row.id), "mediaType": row.media_type, "filename": row.name}


def read_whole(output_id: str, *, owner_id: int | None, instance_id: str) -> JSONValue:
    """The whole of an output that was cut, in this conversation or in one that it is a fork of.

    Errors: `AttachmentNotFound` for any other id.
    """
    here = Q(instance_id=instance_id) | Q(instance=None, claimed_at__isnull=False)
    rows = Attachment.objects.filter(here, pk=output_id, owner_id=owner_id, media_type__in=(_TEXT, _JSON))
    row = rows.first()
    if row is None or owner_id is None:
        raise AttachmentNotFound(Phrase("There is no output {id!r} in this conversation.", id=output_id))
    data = attachments.read_bytes(row)
    try:
        return data.decode("utf-8", "replace") if row.media_type == _TEXT else load(data)
    except ValueError:  # a file of the user's that calls itself JSON
        return data.decode("utf-8", "replace")
