"""The database's clock, which decides every instant of a schedule."""

from datetime import datetime
from typing import Final

from thinkproject.kernel.statements import Statement, read_instant

_NOW: Final = Statement("SELECT :instant_of_clock.present: FROM (SELECT :now: AS present) AS clock")


def database_now() -> datetime:
    """The present, aware, in UTC."""
    row = _NOW.one()
    assert row is not None
    return read_instant(str(row[0]))
