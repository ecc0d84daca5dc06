"""Files that are the text of the person who asks, and not of strangers, to the injection guard.

They are those that the same person chose in a browser. An archive, a mail and a page of the web are not, and what is of
no known kind: what is in them others wrote, however they came here.
"""

from collections.abc import AsyncIterator, Collection
from typing import Any, Final

from chat.files.attachments import attachment_id
from chat.models import Attachment
from tools_app.core.files.kinds import EML, HTML, ZIP, Unreadable, kind_of_file
from tools_app.core.origins import Origin

_OF_OTHERS: Final = (ZIP, EML, HTML)
HEAD_BYTES: Final = 4 * 1024 * 1024
"""What is looked at of a file for its kind. The kind of a document that is larger may not be seen."""


def own_urls(urls: Collection[str], user_id: Any) -> frozenset[str]:
    """The URLs among these whose file this person uploaded by hand. One query at most."""
    ids = {url: found for url in urls if (found := attachment_id(url)) is not None}
    if user_id is None or not ids:
        return frozenset()
    rows = Attachment.objects.filter(pk__in=set(ids.values()), owner_id=user_id, is_by_hand=True)
    known = set(rows.exclude(media_type__in=_OF_OTHERS).values_list("pk", flat=True))
    return frozenset(url for url, found in ids.items() if found in known)


def origin_of_copy(row: Attachment, user_id: Any, *, is_by_hand: bool) -> Origin | None:
    """The origin of an attached file that this person copies to where an agent works; nothing for their own."""
    is_own = is_by_hand and row.is_by_hand and row.owner_id == user_id and row.media_type not in _OF_OTHERS
    return None if is_own else Origin.FILE


async def origin_of_upload(
    pieces: AsyncIterator[bytes], name: str, *, is_by_hand: bool
) -> tuple[Origin | None, AsyncIterator[bytes]]:
    """The origin of a file that is being uploaded, and its pieces, all of them; no origin for a person's own.

    Reads ahead up to `HEAD_BYTES`.
    """
    if not is_by_hand:
        return Origin.FILE, pieces
    head = b""
    async for piece in pieces:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    kind = kind_of_file(head, name)
    is_own = not isinstance(kind, Unreadable) and kind not in _OF_OTHERS
    return (None if is_own else Origin.FILE), _again(head, pieces)


async def _again(head: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if head:
        yield head
    async for piece in rest:
        yield piece
