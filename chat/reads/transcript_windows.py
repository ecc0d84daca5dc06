"""The transcript that clients get, as JSON text: written from the texts of the rows, kept for a while by version.

A window is the newest stretch of the shown path and the messages that wait, of one version of a session. Which of those
were stopped is not part of the version and is read each time; a window at rest is kept whole.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from chat.reads import snapshots
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.stored_texts import StoredText
from thinkproject.kernel.jsonvalue import dump, load

KEPT_CHARS: Final = 32 * 1024 * 1024
"""Encoded text of all versions that are kept; the one used longest ago goes first."""

Version = tuple[str, int]


class MessageSpan(NamedTuple):
    """The place of one message in the text of a transcript."""

    id: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class TranscriptText:
    """The messages of a conversation as JSON text. Shared and immutable. `version`: session and last change."""

    version: Version | None
    text: str = "[]"
    places: tuple[MessageSpan, ...] = ()
    waiting: int = 0
    """How many of the last messages wait for a place in the path."""

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of the messages."""
        return frozenset(place.id for place in self.places)

    @property
    def messages(self) -> list[Message]:
        """The messages, parsed one by one. For what reads them; a frame is made of the text."""
        return [self._load(place) for place in self.places]

    def before(self, answer_id: str) -> "TranscriptText":
        """It as it was when an answer began: without that answer and those behind it. Its version promises nothing."""
        at = next((at for at, place in enumerate(self.places) if place.id == answer_id), None)
        if at is None or self.version is None:
            return self
        behind = [place for place in self.places[at:] if self._load(place)["role"] != "assistant"]
        kept = [(place.id, self.text[place.start : place.end]) for place in (*self.places[:at], *behind)]
        text, places = _joined(kept)
        return TranscriptText(version=(self.version[0], 0), text=f"[{text}]", places=places, waiting=self.waiting)

    def find(self, message_id: str) -> Message | None:
        """One message, parsed."""
        place = next((place for place in self.places if place.id == message_id), None)
        return None if place is None else self._load(place)

    def _load(self, place: MessageSpan) -> Message:
        message: Message = load(self.text[place.start : place.end])
        return message


class Window:
    """A version of a session's window. `size`: characters of its text, as it was read."""

    def __init__(self, version: Version | None, texts: Sequence[StoredText]) -> None:
        self.version = version
        self._queued = [text for text in texts if not text.placed]
        self._turns = tuple(text.turn_id for text in self._queued)
        self._head, self._places = _joined([(text.id, text.ui_text()) for text in texts if text.placed])
        self.size = len(self._head) + sum(len(text.content) for text in self._queued)
        self._marked: tuple[Set[str], TranscriptText] | None = None
        if not self._turns:
            self._marked = frozenset(), self._written(frozenset())
            self._head = ""  # it is in the transcript, and not needed again

    @property
    def is_at_rest(self) -> bool:
        """Whether no message waits: then nothing more has to be read."""
        return not self._turns

    @property
    def marked(self) -> TranscriptText:
        """Its transcript as it was marked last."""
        assert self._marked is not None, "a window is marked when it is read"
        return self._marked[1]

    def mark(self) -> TranscriptText:
        """Read which of its turns were stopped, and write it if that is news. One query, none for a window at rest."""
        stopped = snapshots.stopped_turns(self._turns)
        if self._marked is None or self._marked[0] != stopped:
            self._marked = stopped, self._written(stopped)
        return self._marked[1]

    def _written(self, stopped: Set[str]) -> TranscriptText:
        marked = ((text, snapshots.queued(text.to_ui(), is_stopped=text.turn_id in stopped)) for text in self._queued)
        head = f"{self._head}," if self._head and self._queued else self._head
        tail, places = _joined([(text.id, dump(message)) for text, message in marked], first=len(head) + 1)
        return TranscriptText(
            version=self.version,
            text=f"[{head}{tail}]",
            places=(*self._places, *places),
            waiting=len(self._queued),
        )


def _joined(texts: Sequence[tuple[str, str]], *, first: int = 1) -> tuple[str, tuple[MessageSpan, ...]]:
    """The texts of messages, given with their ids, with commas between them; `first`: the place of the first one."""
    places = []
    for message_id, text in texts:
        places.append(MessageSpan(message_id, first, first + len(text)))
        first += len(text) + 1
    return ",".join(text for _, text in texts), tuple(places)


class KeptWindows:
    """The newest version of each session that was needed lately, for all threads of a process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Window] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, version: Version) -> Window | None:
        """The window of this version."""
        with self._lock:
            window = self._kept.get(version[0])
            if window is None or window.version != version:
                return None
            self._kept.move_to_end(version[0])
            return window

    def read(self, version: Version) -> Window:
        """Read the window, and keep it unless a newer one is kept. Its text is written here."""
        window = Window(version, snapshots.window_of(version[0]))
        window.mark()
        with self._lock:
            kept = self._kept.pop(version[0], None)
            if kept is not None and kept.version is not None and kept.version > version:
                self._kept[version[0]] = kept
                return window
            self._size += window.size - (0 if kept is None else kept.size)
            self._kept[version[0]] = window
            while self._size > KEPT_CHARS:
                _, oldest = self._kept.popitem(last=False)
                self._size -= oldest.size
        return window

    def current(self, version: Version | None) -> TranscriptText:
        """The transcript of a version that was just read."""
        if version is None:
            return TranscriptText(version=None)
        return (self.find(version) or self.read(version)).mark()


kept_windows = KeptWindows()
