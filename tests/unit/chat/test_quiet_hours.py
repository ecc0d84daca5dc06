"""The hours in which nothing is pushed, by the clock of the person's zone."""

from datetime import UTC, datetime, time

import pytest

from chat.models import NoticeChoices
from chat.push.choices import quiet_seconds


def seconds(at: str, begin: str | None, end: str | None, zone: str = "UTC") -> float:
    choices = NoticeChoices(
        quiet_from=None if begin is None else time.fromisoformat(begin),
        quiet_until=None if end is None else time.fromisoformat(end),
        zone=zone,
    )
    return quiet_seconds(choices, datetime.fromisoformat(f"2026-03-10T{at}").replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("at", "begin", "end", "hours"),
    [
        ("12:00", None, None, 0),
        ("12:00", "22:00", "07:00", 0),
        ("22:00", "22:00", "07:00", 9),
        ("23:30", "22:00", "07:00", 7.5),
        ("06:59:59.5", "22:00", "07:00", 1 / 3600),
        ("07:00", "22:00", "07:00", 0),
        ("13:00", "12:00", "14:00", 1),
        ("14:00", "12:00", "14:00", 0),
        ("13:00", "12:00", "12:00", 0),
    ],
)
def test_they_go_over_midnight_and_end_on_the_minute(at: str, begin: str | None, end: str | None, hours: float) -> None:
    assert seconds(at, begin, end) == pytest.approx(hours * 3600)


def test_they_are_those_of_the_zone() -> None:
    assert seconds("05:00", "22:00", "07:00", "Asia/Tokyo") == 0
    assert seconds("14:00", "22:00", "07:00", "Asia/Tokyo") == pytest.approx(8 * 3600)


def test_a_changed_clock_does_not_lengthen_them() -> None:
    choices = NoticeChoices(quiet_from=time(22), quiet_until=time(7), zone="Europe/Berlin")
    eve = datetime(2026, 3, 28, 22, tzinfo=UTC)  # 23 o'clock there; the clock goes forward in that night
    assert quiet_seconds(choices, eve) == pytest.approx(7 * 3600)
