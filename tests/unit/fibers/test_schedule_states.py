"""The table of a schedule's moves."""

import itertools

import pytest

from fibers.core.schedules.states import MOVES, ScheduleEvent, ScheduleStatus, advance, sources
from fibers.errors import IllegalMove


@pytest.mark.parametrize(("status", "event"), list(itertools.product(ScheduleStatus, ScheduleEvent)))
def test_a_move_is_in_the_table_or_refused(status: ScheduleStatus, event: ScheduleEvent) -> None:
    if (status, event) in MOVES:
        assert advance(status, event) is MOVES[status, event]
        assert status in sources(event)
    else:
        assert status not in sources(event)
        with pytest.raises(IllegalMove):
            advance(status, event)


def test_only_an_active_schedule_fires() -> None:
    assert sources(ScheduleEvent.FIRE) == sources(ScheduleEvent.FIRE_LAST) == (ScheduleStatus.ACTIVE,)
