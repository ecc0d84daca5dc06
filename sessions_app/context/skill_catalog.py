"""Skills in external documents: the list shown to models, and the loaded document.

A document is a file with a head (`name`, `description`) and a text, see `sessions_app.core.context.documents`. What can
be loaded is what was listed: a key is never made a path.
"""

import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from sessions_app.core.context.context_blocks import Entry, key_list
from sessions_app.core.context.documents import HEAD_CHARS, Document, read_document

MAX_DOCUMENTS: Final = 500
MAX_BYTES: Final = 512 * 1024


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A document's key, and its address at its source."""

    key: str
    address: str


class DocumentSource(Protocol):
    """The source of documents."""

    def places(self) -> list[BlockPlace]:
        """Find the documents."""

    def read(self, address: str, max_bytes: int) -> bytes | None:
        """Read the beginning of a document; `None` if it is gone."""


class Documents:
    """A provider of skills: `get` lists them, `load` returns one. Thread-safe.

    Units: the list is read again after `seconds`. Keep one object for a class, so that the list is not read each turn.
    """

    def __init__(self, source: DocumentSource, *, keys: Collection[str] | None = None, seconds: float = 60.0) -> None:
        self._source = source
        self._keys = None if keys is None else frozenset(keys)
        self._seconds = seconds
        self._lock = threading.Lock()
        self._listed: dict[str, tuple[BlockPlace, Document]] = {}
        self._fresh_until = float("-inf")

    def get(self) -> str | None:
        """List the available documents, one line each with a description; empty without any."""
        return key_list(
            Entry(key=key, content="", description=document.description)
            for key, (_, document) in sorted(self._list().items())
        )

    def load(self, key: str) -> str | None:
        """The text of a document; `None` if it is not listed or gone."""
        found = self._list().get(key)
        content = None if found is None else self._source.read(found[0].address, MAX_BYTES + 1)
        if found is None or content is None:
            return None
        text = read_document(_text(content), name=key).text
        return text if len(content) <= MAX_BYTES else f"{text}\n... [truncated: larger than {MAX_BYTES} bytes]"

    def _list(self) -> dict[str, tuple[BlockPlace, Document]]:
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._listed = self._read_all()
                self._fresh_until = time.monotonic() + self._seconds
            return self._listed

    def _read_all(self) -> dict[str, tuple[BlockPlace, Document]]:
        listed: dict[str, tuple[BlockPlace, Document]] = {}
        for place in self._source.places()[:MAX_DOCUMENTS]:
            if self._keys is not None and place.key not in self._keys:
                continue
            head = self._source.read(place.address, HEAD_CHARS)
            if head is not None:
                listed[place.key] = (place, read_document(_text(head), name=place.key))
        return listed


def _text(content: bytes) -> str:
    return content.decode(errors="replace").replace("\0", "")
