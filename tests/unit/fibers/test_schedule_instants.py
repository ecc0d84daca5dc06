"""Times at which something is due once: those that clocks leave out or have twice, and those that are over."""

from datetime import UTC, datetime, timedelta

import pytest

from fibers.core.schedules.timing import Timing, read_instant
from fibers.errors import ScheduleInvalid

NOW = datetime(2026, 11, 26, 23, 40, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("wall", "zone", "instant"),
    [
        ("2026-03-29T01:59", "Europe/Berlin", "2026-03-29T00:59+00:00"),
        ("2026-03-29T02:00", "Europe/Berlin", "2026-03-29T01:00+00:00"),  # is left out: 03:00
        ("2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:00+00:00"),
        ("2026-03-29T02:59:59", "Europe/Berlin", "2026-03-29T01:00+00:00"),
        ("2026-03-29T03:00", "Europe/Berlin", "2026-03-29T01:00+00:00"),
        ("2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30+00:00"),  # comes twice: the first
        ("2026-03-08T02:15", "America/New_York", "2026-03-08T07:00+00:00"),
        ("2026-10-04T02:15", "Australia/Lord_Howe", "2026-10-03T15:30+00:00"),  # half an hour is left out: 02:30
        ("2026-04-05T01:45", "Australia/Lord_Howe", "2026-04-04T14:45+00:00"),
        ("2011-12-30T10:00", "Pacific/Apia", "2011-12-30T10:00+00:00"),  # a whole day is left out
        ("2026-03-29T02:30", "UTC", "2026-03-29T02:30+00:00"),
    ],
)
def test_a_time_is_due_when_clocks_show_it_or_would_have(wall: str, zone: str, instant: str) -> None:
    timing = Timing.at(datetime.fromisoformat(wall), zone)
    assert timing.first_after(NOW) == datetime.fromisoformat(instant)


def test_the_second_passage_of_an_hour_can_be_named() -> None:
    timing = Timing.at(datetime.fromisoformat("2026-10-25T02:30").replace(fold=1), "Europe/Berlin")
    assert timing.first_after(NOW) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    assert Timing.at(read_instant("2026-10-25T02:30+01:00"), "Europe/Berlin") == timing


@pytest.mark.parametrize("zone", ["Europe/Vienna", "UTC", "America/Los_Angeles"])
def test_what_is_over_is_refused_with_the_present_in_the_words(zone: str) -> None:
    timing = Timing.at(read_instant("2025-01-02T09:00"), zone)
    with pytest.raises(ScheduleInvalid) as refused:
        timing.check_ahead(NOW)
    today = {"Europe/Vienna": "2026-11-27 00:40", "UTC": "2026-11-26 23:40", "America/Los_Angeles": "2026-11-26 15:40"}
    assert str(refused.value) == f"2025-01-02 09:00 ({zone}) is over: it is {today[zone]} there now."


@pytest.mark.parametrize(("seconds", "is_now"), [(-3600, True), (0, True), (5, True), (59, True), (62, False)])
def test_a_few_seconds_ago_is_now(seconds: int, is_now: bool) -> None:
    timing = Timing.at(NOW - timedelta(seconds=seconds))
    if not is_now:
        with pytest.raises(ScheduleInvalid):
            timing.check_ahead(NOW)
        return
    timing.check_ahead(NOW)


def test_what_is_no_instant_is_never_over() -> None:
    for timing in (Timing.delay(0), Timing.every(60), Timing.cron("0 9 * * *", "UTC")):
        timing.check_ahead(NOW)


NO_DATES = ["", "tomorrow", "2026-05-01", "20260501", "2026-W18-5", "09:00", "2026-13-01T09:00", "2027-02-30T09:00"]
WORDS = ["in 5 minutes", "03-29T09:00", "2027-05-01 9am", "2027-05-01T09:00 CEST", "1767000000"]


@pytest.mark.parametrize("text", [*NO_DATES, *WORDS])
def test_a_date_without_a_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(ScheduleInvalid, match="no date with a time of day"):
        read_instant(text)


@pytest.mark.parametrize("text", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00", "2201-01-01T00:00Z"])
def test_a_year_out_of_all_bounds_is_refused(text: str) -> None:
    with pytest.raises(ScheduleInvalid, match="The year lies between 1970 and 2200"):
        Timing.at(read_instant(text), "Pacific/Auckland")


@pytest.mark.parametrize("text", ["2026-05-01T09:00", "2026-05-01 09:00", " 2026-05-01T09:00:00 ", "20260501T0900"])
def test_a_date_with_a_time_of_day_is_read(text: str) -> None:
    assert read_instant(text).isoformat() == "2026-05-01T09:00:00"


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("Europe/Wien", "There is no time zone “Europe/Wien”. Did you mean Europe/Vienna?"),
        ("CEST", "There is no time zone “CEST”. Did you mean Europe/Berlin?"),
        ("localtime", "There is no time zone “localtime”. Name a place, for example Europe/Berlin, or UTC."),
        ("right/Europe/Berlin", "Did you mean Europe/Berlin?"),
    ],
)
def test_an_unknown_zone_gets_a_proposal(zone: str, words: str) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        Timing.at(read_instant("2099-01-01T00:00"), zone)
    assert words in str(refused.value)
    with pytest.raises(ScheduleInvalid) as refused:
        Timing.cron("0 9 * * *", zone)
    assert words in str(refused.value)


def test_what_was_stored_with_such_a_zone_goes_on() -> None:
    kept = Timing(kind=Timing.cron("0 9 * * *", "UTC").kind, spec="0 9 * * *", zone="posix/Europe/Berlin")
    try:
        assert kept.next_after(NOW) == datetime(2026, 11, 27, 8, tzinfo=UTC)
    except ScheduleInvalid:
        pytest.skip("this machine's database has no folder posix")
