"""Laws of a schedule's times, over the changes of clocks in three zones."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from fibers.core.schedules.grammar import parse_sentence
from fibers.core.schedules.timing import Timing
from fibers.errors import ScheduleInvalid
from tests.budget import examples

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
CHANGES = {
    "Europe/Berlin": (date(2026, 3, 29), date(2026, 10, 25)),
    "America/New_York": (date(2026, 3, 8), date(2026, 11, 1)),
    "Australia/Lord_Howe": (date(2026, 10, 4), date(2026, 4, 5)),
}
"""The day when clocks are put forward, and the day when they are put back."""


def exists(at: datetime) -> bool:
    return at == at.astimezone(UTC).astimezone(at.tzinfo)


@st.composite
def days_around(draw: st.DrawFn) -> tuple[str, date]:
    zone = draw(st.sampled_from(ZONES))
    return zone, draw(st.sampled_from(CHANGES[zone])) + timedelta(days=draw(st.integers(-2, 2)))


@given(days_around(), st.integers(0, 23), st.integers(0, 59), st.floats(0, 3 * 86_400))
@settings(max_examples=examples(300), deadline=None)
def test_a_wall_clock_time_is_due_once_on_each_day(
    place: tuple[str, date], hour: int, minute: int, late: float
) -> None:
    zone, day = place
    timing = Timing.cron(f"{minute} {hour} * * *", zone)
    at = datetime.combine(day - timedelta(days=2), time(12), tzinfo=ZoneInfo(zone)).astimezone(UTC)
    found: list[datetime] = []
    while at < datetime.combine(day + timedelta(days=3), time(12), tzinfo=ZoneInfo(zone)).astimezone(UTC):
        at = timing.next_after(at)
        found.append(at)
    local = [each.astimezone(ZoneInfo(zone)) for each in found]
    assert len({each.date() for each in local}) == len(local)  # once on each day
    assert all((b.date() - a.date()).days == 1 for a, b in pairwise(local))  # on every day
    for each in local:
        named = datetime.combine(each.date(), time(hour, minute), tzinfo=ZoneInfo(zone))
        if exists(named):
            assert each == named
            assert each.fold == 0  # of a time that comes twice the first
        else:
            assert timedelta(0) < each.replace(tzinfo=None) - named.replace(tzinfo=None) <= timedelta(hours=1)
    # A late look misses some and repeats none.
    assert timing.next_after(found[0] + timedelta(seconds=late)) > found[0] + timedelta(seconds=late)


@given(days_around(), st.integers(0, 47 * 3600), st.sampled_from(("*/15 * * * *", "0 * * * *", "5 1,2,3 * * *")))
@settings(max_examples=examples(200), deadline=None)
def test_times_move_forward_only(place: tuple[str, date], seconds: int, text: str) -> None:
    zone, day = place
    timing = Timing.cron(text, zone)
    at = datetime.combine(day - timedelta(days=1), time(), tzinfo=UTC) + timedelta(seconds=seconds)
    for _ in range(20):
        following = timing.next_after(at)
        assert following > at
        assert following - at <= timedelta(hours=26)
        assert timing.next_after(at + (following - at) / 2) == following  # nothing lies between
        at = following


@given(st.floats(1, 30 * 86_400), st.floats(0, 90 * 86_400))
def test_an_interval_keeps_its_step_or_begins_anew(seconds: float, late: float) -> None:
    timing = Timing.every(seconds)
    due = datetime(2026, 1, 1, tzinfo=UTC)
    now = due + timedelta(seconds=late)
    following = timing.next_after(now, due)
    step = timedelta(seconds=float(timing.spec))
    assert now < following <= now + step
    if late < float(timing.spec):
        assert following == due + step


@given(st.integers(0, 10**9), st.sampled_from([Timing.delay(5), Timing.at(datetime(2030, 1, 1, tzinfo=UTC))]))
def test_what_is_due_once_has_one_time(seconds: int, timing: Timing) -> None:
    now = datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert timing.upcoming(now) == [timing.first_after(now)]


PIECES = ("every", "day", "weekday", "week", "on", "mon,wed", "mon,mon", "at", "09:00", "25:00", "in", "UTC", "5", "1")
WORDS = st.one_of(
    st.sampled_from((*PIECES, "minute", "minutes", "hours", "Europe/Berlin", "../x")), st.text(max_size=8)
)


@given(st.lists(WORDS, max_size=9).map(" ".join))
@settings(max_examples=examples(500))
def test_a_sentence_is_read_or_refused(sentence: str) -> None:
    try:
        timing = parse_sentence(sentence)
    except ScheduleInvalid:
        return
    assert timing.is_repeating
    assert len(timing.upcoming(datetime(2026, 1, 1, tzinfo=UTC))) == 5


FIELDS = st.one_of(st.sampled_from(("*", "*/5", "1-5", "L", "LW", "1#2", "5L", "29", "MON", "0")), st.text(max_size=4))


@given(st.lists(FIELDS, min_size=4, max_size=6).map(" ".join), st.sampled_from(ZONES))
@settings(max_examples=examples(500), deadline=None)
def test_a_cron_text_is_read_or_refused(text: str, zone: str) -> None:
    try:
        timing = Timing.cron(text, zone)
    except ScheduleInvalid:
        return
    times = timing.upcoming(datetime(2026, 1, 1, tzinfo=UTC))
    assert times == sorted(set(times))
