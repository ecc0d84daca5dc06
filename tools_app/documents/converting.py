"""Files as models and people read them: a document as text, a photo upright and small enough.

Each is read by a process of its own (`child`), bounded in memory, processor time, the clock and what it answers, so
that no file takes a server or a worker along. The same bytes give the same view.
"""

import json
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sessions_app.core.messages.truncation import cut_text

MAX_TEXT_CHARS: Final = 1_000_000
MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
SECONDS: Final = 40.0
_AT_ONCE: Final = 2
"""Files that one process has read at once; others wait."""

TOO_SLOW: Final = "This file takes too long to read. Save a part of it as a file of its own."
_PROGRAM: Final = Path(__file__).resolve().with_name("child.py")
_places = threading.BoundedSemaphore(_AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A file as it is read. One of: `text`; a picture of `media_type` (no `data`: the file itself); `note`, alone.

    `note`: a sentence with the reason why there is neither. `is_lasting`: another attempt gives the same.
    """

    text: str = ""
    note: str = ""
    media_type: str = ""
    data: bytes = field(default=b"", repr=False)
    is_lasting: bool = True

    @property
    def words(self) -> str:
        """The text, or the note in parentheses; empty for a picture."""
        return self.text or (f"({self.note})" if self.note else "")

    def packed(self) -> bytes:
        """The view as bytes for a storage."""
        facts = {"text": self.text, "note": self.note, "mediaType": self.media_type}
        return json.dumps(facts).encode() + b"\n" + self.data

    @classmethod
    def unpacked(cls, stored: bytes) -> "View":
        """The view that was packed."""
        head, _, data = stored.partition(b"\n")
        facts = json.loads(head)
        return cls(text=facts["text"], note=facts["note"], media_type=facts["mediaType"], data=data)


def convert(data: bytes, media_type: str, *, seconds: float = SECONDS) -> View:
    """Read a file of a kind that has a view. Blocks for seconds: call it in a thread. Never raises for its bytes."""
    with _places:
        answer, is_lasting = _answer(data, media_type, seconds)
    if answer is None:
        return View(note=TOO_SLOW, is_lasting=is_lasting)
    head, _, made = answer.partition(b"\n")
    facts = json.loads(head)
    if "text" in facts:
        return View(text=cut_text(facts["text"], MAX_TEXT_CHARS))
    return View(note=facts.get("note", ""), media_type=facts.get("mediaType", ""), data=made)


def _answer(data: bytes, media_type: str, seconds: float) -> tuple[bytes | None, bool]:
    """The answer of the process, none if a limit ended it, and whether the clock had no part in that."""
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-I", str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )
    assert process.stdin is not None, "is a pipe"
    assert process.stdout is not None, "is a pipe"
    clock = threading.Timer(seconds, process.kill)
    clock.start()
    try:
        try:
            with process.stdin as sink:
                sink.write(json.dumps({"mediaType": media_type}).encode() + b"\n" + data)
        except BrokenPipeError:
            return None, clock.is_alive()
        answer = process.stdout.read(MAX_ANSWER_BYTES + 1)
        is_whole = b"\n" in answer and len(answer) <= MAX_ANSWER_BYTES
        return answer if is_whole else None, clock.is_alive()
    finally:
        clock.cancel()
        process.kill()
        process.stdout.close()
        process.wait()
