"""Encoded frames that the sockets of one process share.

Followers of one process get the same record; the frame around it is built by the first and reused by the others. A
small LRU; a stream with a new epoch differs in the record's text.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from chat.streams.records import Record

MAX_ENTRIES = 4_096


class FrameCache:
    """Frames keyed by stream, offset and kind (live and replayed frames differ). For one loop."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._frames: OrderedDict[tuple[str, int, str], tuple[str, str]] = OrderedDict()
        self.hits = 0
        self.misses = 0

    def frame(self, stream: str, record: Record, build: Callable[[Record], str], kind: str = "") -> str:
        """Return the frame of the record, built once."""
        key = (stream, record.offset, kind)
        found = self._frames.get(key)
        if found is not None and found[0] == record.text:
            self.hits += 1
            self._frames.move_to_end(key)
            return found[1]
        self.misses += 1
        frame = build(record)
        self._frames[key] = (record.text, frame)
        self._frames.move_to_end(key)
        if len(self._frames) > self._max_entries:
            self._frames.popitem(last=False)
        return frame


shared_frames: Final = FrameCache()
"""Those of this process."""
