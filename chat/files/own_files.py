"""Attached files that are the text of the person who asks, and not of strangers, to the injection guard."""

from collections.abc import Collection
from typing import Any, Final

from chat.files.attachments import attachment_id
from chat.models import Attachment
from tools_app.core.files.kinds import EML, HTML, ZIP

_OF_OTHERS: Final = (ZIP, EML, HTML)


def own_urls(urls: Collection[str], user_id: Any) -> frozenset[str]:
    """The URLs among these whose file this person uploaded by hand. One query at most.

    An archive, a mail and a page of the web are not: what is in them others wrote, however they came here.
    """
    ids = {url: found for url in urls if (found := attachment_id(url)) is not None}
    if user_id is None or not ids:
        return frozenset()
    rows = Attachment.objects.filter(pk__in=set(ids.values()), owner_id=user_id, is_by_hand=True)
    known = set(rows.exclude(media_type__in=_OF_OTHERS).values_list("pk", flat=True))
    return frozenset(url for url, found in ids.items() if found in known)
