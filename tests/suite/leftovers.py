"""What tests leave behind: a warning of asyncio about a process or a task that outlives its loop is a failure.

Such a line means that something was still running when its loop was closed: a process that was not waited for, a task
that was not cancelled. In the product the same code would leave processes and waiters behind.
"""

import logging
from typing import Final

KINDS: Final = (
    "that handles pid",  # a process ended after its loop
    "Task was destroyed but it is pending",
    "Unknown child process pid",
)


class Leftovers(logging.Handler):
    """Keeps the lines of asyncio that tell of something left behind, until they are taken."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line of those kinds."""
        text = record.getMessage()
        if any(kind in text for kind in KINDS):
            self._lines.append(text)

    def watch(self) -> None:
        """Listen from now on."""
        logging.getLogger("asyncio").addHandler(self)

    def take(self) -> str:
        """What came since the last time, a line each."""
        lines, self._lines = self._lines, []
        return "\n".join(lines)
