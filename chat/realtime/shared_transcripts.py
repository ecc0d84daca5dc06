"""Transcripts as frames carry them, read and encoded once for all connections of a process that need the same version.

Each request still reads the version of the session and which waiting messages were stopped: what is returned is never
older than the moment of the call. The window itself, up to 512 KiB, is read when no connection has that version yet.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from chat.agent.base import InstanceKey
from chat.conf import chat_settings
from chat.core.wire import frames
from chat.reads import snapshots
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump

KEPT_CHARS: Final = 32 * 1024 * 1024
"""Encoded text of all versions that are kept; the one used longest ago goes first."""

Version = tuple[str, int]
_Limits = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """The messages of a conversation, and their JSON text. Shared and immutable. `version` as in `snapshots`."""

    version: Version | None
    messages: list[Message] = field(default_factory=list)
    text: str = "[]"

    def frame(self, *, connect: bool = False, with_version: bool = False) -> str:
        """The frame that sends it."""
        return frames.messages_of(self.text, connect=connect, version=self.version if with_version else None)


@dataclass(slots=True, kw_only=True)
class _Window:
    """A version of a session's window, with its marks: stopped turns among the waiting messages."""

    version: Version
    limits: _Limits
    stored: list[StoredMessage]
    waiting: tuple[str, ...]  # turns of messages that have no place yet
    marked: tuple[frozenset[str], Transcript] | None = None
    size: int = 0  # characters of its text

    def mark(self) -> Transcript:
        """Read which of its turns were stopped, and encode it if that is news. One query, none for a window at rest."""
        stopped = frozenset(snapshots.stopped_turns(self.waiting))
        if self.marked is None or self.marked[0] != stopped:
            messages = snapshots.marked(self.stored, stopped)
            self.marked = stopped, Transcript(version=self.version, messages=messages, text=dump(messages))
        return self.marked[1]


class SharedTranscripts:
    """The newest version of each session that a connection needed lately."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Window] = OrderedDict()
        self._reading: dict[Version, asyncio.Task[_Window]] = {}
        self._size = 0

    async def current(self, key: InstanceKey) -> Transcript:
        """The transcript of an instance's current session, as it is now or a moment later."""
        found = await db(self._look, key)
        if isinstance(found, Transcript):
            if found.version is not None and found.version[0] in self._kept:
                self._kept.move_to_end(found.version[0])
            return found
        window = self._find(found)  # it may have been read meanwhile
        if window is None:
            window = await asyncio.shield(self._read(found))
        # A read that was under way may have asked about the waiting messages before this call.
        return await db(window.mark)

    def _look(self, key: InstanceKey) -> Transcript | Version:
        """The transcript where its window is kept, else the version to read."""
        version = snapshots.version_of(key)
        if version is None:
            return Transcript(version=None)
        window = self._find(version)
        return version if window is None else window.mark()

    def _find(self, version: Version) -> _Window | None:
        window = self._kept.get(version[0])
        return window if window is not None and (window.version, window.limits) == (version, _limits()) else None

    def _read(self, version: Version) -> "asyncio.Task[_Window]":
        task = self._reading.get(version)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.create_task(self._read_and_keep(version))
            self._reading[version] = task
            task.add_done_callback(lambda _: self._reading.pop(version, None))
        return task

    async def _read_and_keep(self, version: Version) -> _Window:
        window = await db(_window, version)
        kept = self._kept.pop(version[0], None)
        if kept is not None and kept.version > version:
            self._kept[version[0]] = kept
            return window
        self._size += window.size - (0 if kept is None else kept.size)
        self._kept[version[0]] = window
        while self._size > KEPT_CHARS:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.size
        return window


def _limits() -> _Limits:
    return chat_settings.window_messages, chat_settings.window_bytes


def _window(version: Version) -> _Window:
    limits, stored = _limits(), snapshots.window_of(version[0])
    waiting = tuple(message.turn_id for message in stored if not message.placed)
    window = _Window(version=version, limits=limits, stored=stored, waiting=waiting)
    window.size = len(window.mark().text)  # encoded here, and not on the loop
    return window


shared_transcripts = SharedTranscripts()
