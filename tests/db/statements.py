"""Every statement that this process sends to the database, in whatever thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements sent within the block, in order."""
    found: list[str] = []
    execute = CursorWrapper._execute

    def noted(self: CursorWrapper, sql: Any, *arguments: Any) -> Any:
        found.append(" ".join(str(sql).split()))
        return execute(self, sql, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "_execute", noted)
        yield found
