"""The words of pushes. Nothing of a conversation is in them: only that something waits, and where."""

from dataclasses import asdict, dataclass
from typing import Final
from urllib.parse import quote

from django.urls import NoReverseMatch, reverse
from django.utils import translation

from chat.models import NoticeKind
from thinkproject.kernel.jsonvalue import dump
from thinkproject.kernel.languages import translate
from thinkproject.kernel.phrases import Phrase

TITLE: Final = "Think"
_WORDS: Final = {
    NoticeKind.DECISION: Phrase("Your decision is needed."),
    NoticeKind.ANSWER: Phrase("An answer is ready."),
    NoticeKind.SCHEDULE: Phrase("A schedule failed."),
    NoticeKind.TEST: Phrase("Notifications reach this device."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PushMessage:
    """The text for the page's worker. `path`: where it leads; `tag`: a later push with the same one takes its place."""

    title: str
    body: str
    path: str
    tag: str

    def encoded(self) -> bytes:
        """The text that is encrypted."""
        return dump(asdict(self)).encode()


def message_of(kind: NoticeKind, *, language: str, instance_id: str = "", message_id: str = "") -> PushMessage:
    """The words of a push in the language of the device."""
    with translation.override(language or None):
        body = translate(_WORDS[kind])
    return PushMessage(title=TITLE, body=body, path=_path(instance_id, message_id), tag=f"{kind.value}:{instance_id}")


def _path(instance_id: str, message_id: str) -> str:
    """The address of a conversation in the page; of the list without one, and nothing without the page."""
    try:
        if not instance_id:
            return reverse("chat:home")
        return reverse("chat:conversation", args=[instance_id]) + (
            f"?at={quote(message_id, safe='')}" if message_id else ""
        )
    except NoReverseMatch:
        return ""
