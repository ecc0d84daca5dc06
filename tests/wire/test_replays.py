"""The recordings, played against the real consumer: each connection gets what was recorded, frame by frame."""

import pytest

from tests.inprocess.stage import staged
from tests.wire.frame_amendments import AMENDMENTS
from tests.wire.recordings import NAMES, Event, amended_frames, events, not_played
from tests.wire.replay import Replay
from thinkproject.kernel.jsonvalue import dump

PLAYED = [name for name in NAMES if name not in not_played()]


def recorded(name: str) -> list[Event]:
    return [event for event in events(name) if event.direction != "note"]


def expected(name: str, *, without: str = "") -> list[Event]:
    """What this server must send where the recorded one sent something else."""
    found = recorded(name)
    rows = amended_frames()
    for row, change in AMENDMENTS.items():
        if row != without and rows[row] & {name, "everywhere"}:
            found = change(found)
    return found


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", PLAYED)
def test_replay_is_the_recording(name: str) -> None:
    with staged() as loop:
        loop.run_until_complete(Replay(loop, expected(name)).play())


LISTED = [(row, name) for row, names in amended_frames().items() for name in sorted(names)]


@pytest.mark.parametrize(("row", "name"), LISTED, ids=lambda value: str(value))
def test_every_listed_row_makes_a_difference(row: str, name: str) -> None:
    """As the frames that come are exactly the expected ones, a row is needed where those are others without it."""
    targets = PLAYED if name == "everywhere" else [name]
    assert any(as_text(expected(target)) != as_text(expected(target, without=row)) for target in targets)


def as_text(found: list[Event]) -> list[str]:
    return [f"{event.client} {event.direction} {dump(event.frame)}" for event in found]


def test_rows_of_the_page_are_those_that_are_known() -> None:
    assert amended_frames().keys() == AMENDMENTS.keys()


@pytest.mark.parametrize("name", sorted(not_played()))
def test_what_is_not_played_is_covered(name: str) -> None:
    assert name in NAMES
    tests = not_played()[name]
    assert tests
    for path, test in tests:
        assert f"def {test}(" in path.read_text()
