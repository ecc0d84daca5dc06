"""Messages larger than a row: the removed content is stored as an attachment that the message names.

Objects are written before the transaction that stores the message, rows inside it; what a crash leaves in between
has no owner, so it is swept.
"""

import logging
from functools import partial
from typing import Any, Final

from django.db import DatabaseError

from chat.agent.base import InstanceKey
from chat.errors import ChatError
from chat.files import attachments
from chat.models import Attachment
from chat.turns.admission.intake import Intake, with_new_messages
from sessions_app.core.messages.oversized import Cut, fit_row, sanitise
from sessions_app.core.messages.shapes import Message, MessageT
from thinkproject.kernel.jsonvalue import JSONValue, dump

logger = logging.getLogger(__name__)
NAME: Final = "message.json"


class _Original:
    """Keeps a whole message once, when the first of its pieces is cut."""

    def __init__(self, key: InstanceKey, message: Message, user_id: Any, *, is_vital: bool) -> None:
        self.ids: list[str] = []
        self._key = key
        self._user_id = user_id
        self._message = message
        self._is_vital = is_vital
        self._url: str | None = None

    def __call__(self, _cut: Cut) -> str | None:
        """Give the URL of the whole; every piece that is cut has the same."""
        if self._url is None and not self.ids:
            self._store()
        return self._url

    def _store(self) -> None:
        try:
            row = self._row(dump(self._message).encode())
        except (ChatError, OSError, DatabaseError):
            if self._is_vital:
                raise
            logger.exception("original not kept", extra={"action": "original_not_kept"})
            self.ids = [""]  # tried once; the answer is stored all the same, and says that it was cut
        else:
            self.ids = [row.id]
            self._url = attachments.url_of(row.id)

    def _row(self, data: bytes) -> Attachment:
        """The whole message as a file: the one that is there, when a client sends it again."""
        kept = attachments.find_kept(self._key, data, name=NAME)
        return kept or attachments.store_original(self._user_id, data, name=NAME)


def fit_message(
    key: InstanceKey, message: Message, user_id: Any = None, *, is_vital: bool
) -> tuple[Message, list[str]]:
    """The message reduced to row size, with attachments for the removed content. Not inside a transaction.

    Shape: `metadata.spilled` names the URL of the original. Errors: with `is_vital` what storage raises; else none.
    """
    if key.owner_id is None:
        return message, []
    original = _Original(key, message, user_id or key.owner_id, is_vital=is_vital)
    fitting = fit_row(sanitise(message), spill=original)
    return fitting, [found for found in original.ids if found]


def fit_answer(key: InstanceKey, message: Message) -> tuple[Message, list[str]]:
    """Do so for a model's answer: it is stored in any case, and cut where its original could not be kept."""
    return fit_message(key, message, is_vital=False)


def fit_intake(key: InstanceKey, intake: Intake, user_id: Any = None) -> tuple[Intake, list[str]]:
    """The same for user messages: none of their content may be lost, so a storage failure refuses them.

    `user_id`: whose the originals are, the owner's by default. Errors: `QuotaExceeded`.
    """
    return with_new_messages(intake, partial(_fit_message, key, user_id))


def _fit_message(key: InstanceKey, user_id: Any, message: MessageT) -> tuple[MessageT, list[str]]:
    parts: JSONValue = message.get("parts")
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return message, []  # admission says what is wrong with it
    whole: Message = {"id": "", "role": "user", **message}
    fitting, ids = fit_message(key, whole, user_id, is_vital=True)
    return (message if not ids else {**fitting, "id": message.get("id", "")}), ids
