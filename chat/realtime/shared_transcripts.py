"""Transcripts as frames carry them, read and encoded once for all connections of a process that need the same version.

Each request still reads the version of the session and which waiting messages were stopped: what is returned is never
older than the moment of the call. The window itself, up to 512 KiB, is read when that version is not kept.
"""

import asyncio

from chat.agent.base import InstanceKey
from chat.core.wire import frames
from chat.reads import snapshots
from chat.reads.snapshots import Snapshot
from chat.reads.transcript_windows import KeptWindows, TranscriptText, Version, Window, kept_windows
from thinkproject.kernel.aio import db


class SharedTranscripts:
    """The transcripts that connections ask for. Connections that need one version wait for one read of it."""

    def __init__(self, kept: KeptWindows | None = None) -> None:
        self._kept = kept or KeptWindows()
        self._reading: dict[Version, asyncio.Task[Window]] = {}

    async def current(self, key: InstanceKey, snapshot: Snapshot | None = None) -> TranscriptText:
        """The transcript of an instance's current session, as it is now or a moment later.

        `snapshot`: the caller has just read it; then a window that is kept and at rest costs no query.
        """
        found = await db(self._look, key) if snapshot is None else self._at_rest(snapshot.version)
        if isinstance(found, TranscriptText):
            return found
        window = self._kept.find(found)  # it may have been read meanwhile
        if window is None:
            is_own = found not in self._reading
            window = await asyncio.shield(self._read(found))
            if is_own:
                return window.marked
        # A read that was under way may have asked about the waiting messages before this call.
        return window.marked if window.is_at_rest else await db(window.mark)

    def _at_rest(self, version: Version | None) -> TranscriptText | Version:
        if version is None:
            return TranscriptText(version=None)
        window = self._kept.find(version)
        return window.marked if window is not None and window.is_at_rest else version

    def _look(self, key: InstanceKey) -> TranscriptText | Version:
        """The transcript where its window is kept, else the version to read."""
        version = snapshots.version_of(key)
        if version is None:
            return TranscriptText(version=None)
        window = self._kept.find(version)
        return version if window is None else window.mark()

    def _read(self, version: Version) -> "asyncio.Task[Window]":
        task = self._reading.get(version)
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            task = asyncio.create_task(db(self._kept.read, version))
            self._reading[version] = task
            task.add_done_callback(lambda _: self._reading.pop(version, None))
        return task


def frame_of(transcript: TranscriptText, *, connect: bool = False, with_version: bool = False) -> str:
    """The frame that sends a transcript."""
    version = transcript.version if with_version else None
    return frames.messages_of(transcript.text, connect=connect, version=version)


shared_transcripts = SharedTranscripts(kept_windows)
