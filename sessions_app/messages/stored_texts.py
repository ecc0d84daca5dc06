"""Messages as their rows hold them: JSON text that is not parsed.

A transcript is written from these texts, so it costs its bytes. What is stored was encoded by `kernel.jsonvalue.dump`,
which leaves no spaces and keeps the order of keys; a UI message is the same text with the id and the role before it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from django.db import connection

from sessions_app.core.compaction.compaction import SYNTHETIC_PREFIX, covered_range
from sessions_app.core.messages.messages import MessageRole, to_ui
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.selectors import window_bounds
from sessions_app.queries import WINDOW
from thinkproject.kernel.jsonvalue import dump, load

_PARTS_FIRST: Final = '{"parts":['
_NO_METADATA: Final = '"metadata":null}'


class StoredText(NamedTuple):
    """A message of a session, not parsed. `content`: the JSON of its parts and metadata."""

    id: str
    role: str
    content: str
    turn_id: str
    placed: bool
    author: str = ""

    def ui_text(self) -> str:
        """JSON of the message as clients know it; equal to `dump(self.to_ui())`."""
        if not self.author and self.content.startswith(_PARTS_FIRST) and not self.content.endswith(_NO_METADATA):
            return f'{{"id":{dump(self.id)},"role":{dump(self.role)},{self.content[1:]}'
        return dump(self.to_ui())

    def to_ui(self) -> Message:
        """Parse the message."""
        return to_ui(self.id, self.role, load(self.content), self.author)


def window_texts(session_id: str, *, max_messages: int = 500, max_bytes: int = 512 * 1024) -> list[StoredText]:
    """The messages of `selectors.window`, not parsed. One statement, which sees one moment."""
    bounds = window_bounds(max_messages, max_bytes)
    limits = (bounds.max_messages, bounds.exchange_bytes, bounds.max_bytes)
    with connection.cursor() as cursor:
        cursor.execute(WINDOW, (None, session_id, *limits, session_id))
        rows = cursor.fetchall()
    texts = [
        StoredText(message_id, role, content, turn_id, not waits, author)
        for message_id, role, content, turn_id, author, waits, *_ in rows
    ]
    if not texts or not texts[0].placed:
        return texts
    depth, _, floor = rows[0][-3:]
    return _from_first_question(texts) if depth > floor else texts


def _from_first_question(texts: Sequence[StoredText]) -> list[StoredText]:
    """The same cut as that of `selectors`; of what stands before the first question only summaries are parsed."""
    for index, text in enumerate(texts):
        if text.placed and (text.role == MessageRole.USER or _is_summary(text)):
            return list(texts[index:])
    return list(texts)


def _is_summary(text: StoredText) -> bool:
    return text.id.startswith(SYNTHETIC_PREFIX) and covered_range(text.to_ui()) is not None
