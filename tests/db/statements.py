"""Every statement that this process sends to the database, in whatever thread."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper
from django.test import override_settings

from chat.streams.writing import writer


@contextmanager
def statements(*, bridge_only: bool = False) -> Iterator[list[str]]:
    """The statements sent within the block, in order; `bridge_only`: only what the loop's tasks asked for.

    None is there because of the time that passes: a log that a slow machine writes early, or a heartbeat.
    """
    found: list[str] = []
    execute: Any = getattr(CursorWrapper, "_execute")  # noqa: B009 - the stubs do not know it

    def noted(self: CursorWrapper, sql: Any, *arguments: Any) -> Any:
        thread = threading.current_thread().name
        if thread != "think-heartbeat" and (not bridge_only or thread.startswith("think-db")):
            found.append(" ".join(str(sql).split()))
        return execute(self, sql, *arguments)

    with pytest.MonkeyPatch.context() as patch, override_settings(THINK_STREAM_COLD_SECONDS=1000.0):
        patch.setattr(CursorWrapper, "_execute", noted)
        patch.setattr(writer, "BOUNDARY_SECONDS", 1000.0)  # the commit of a step that takes longer comes by itself
        yield found
