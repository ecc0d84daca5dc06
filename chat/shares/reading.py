"""The content that the secret of a link opens: the path up to its message, and the files that it shows. Reads only.

A wrong secret, one that has expired or was revoked, and one whose conversation or person is gone are one error.
"""

import hmac
from dataclasses import dataclass
from typing import Final

from django.utils import timezone

from chat.errors import AttachmentNotFound, SharedNotFound
from chat.files.attachments import attachment_id, rows_of, url_of
from chat.models import Attachment, ShareLink
from chat.shares.projection import FileUrl, SharedMessage, Ticked, shared_messages
from chat.shares.services import MAX_MESSAGES, hash_of
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.errors import MessageNotFound
from sessions_app.messages import selectors
from sessions_app.messages.selectors import PathPage

_NO_HASH: Final = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedView:
    """The messages that a link shows, root first."""

    link: ShareLink
    messages: list[SharedMessage]


def open_link(secret: str) -> ShareLink:
    """The link of a secret, its conversation and session loaded. One query. Errors: `SharedNotFound`."""
    wanted = hash_of(secret)
    row = ShareLink.objects.select_related("instance__owner").filter(token_hash=wanted).first()
    is_right = hmac.compare_digest(_NO_HASH if row is None else row.token_hash, wanted)
    if row is None or not is_right or not _works(row):
        raise SharedNotFound
    return row


def shared_view(link: ShareLink, file_url: FileUrl) -> SharedView:
    """The messages of a link. Two queries. Errors: `SharedNotFound` where its last message is gone."""
    return SharedView(link=link, messages=shared_messages(_path(link), ticked_of(link), file_url))


def shared_file(link: ShareLink, file_id: str) -> Attachment:
    """An attached file that a link shows. Errors: `AttachmentNotFound` for every other one, also of that conversation.

    Reads the path, as what is shown of its messages decides.
    """
    if not link.shows_files or "\x00" in file_id:
        raise AttachmentNotFound
    named: set[str] = set()

    def note(url: str) -> str:
        named.add(attachment_id(url) or "")
        return url

    shared_messages([each for each in _path(link) if _names(each, file_id)], ticked_of(link), note)
    # A message that was brought in from elsewhere may name a file of another person's.
    found = rows_of([url_of(file_id)], link.instance.owner_id) if file_id in named else {}
    if file_id not in found:
        raise AttachmentNotFound
    return found[file_id]


def ticked_of(link: ShareLink) -> Ticked:
    """The choice of its owner of what to show."""
    return Ticked(tools=link.shows_tools, files=link.shows_files, reasoning=link.shows_reasoning)


def _works(link: ShareLink) -> bool:
    owner = link.instance.owner
    is_over = link.revoked_at is not None or link.expires_at <= timezone.now() or link.instance.deleted_at is not None
    return not is_over and owner is not None and owner.is_active


def _path(link: ShareLink) -> list[StoredMessage]:
    try:
        page: PathPage = selectors.path_page(link.session_id, leaf=link.message_id, limit=MAX_MESSAGES)
    except MessageNotFound:
        raise SharedNotFound from None
    if not page.messages:
        raise SharedNotFound
    return page.messages


def _names(message: StoredMessage, file_id: str) -> bool:
    return file_id in repr(message.parts)
