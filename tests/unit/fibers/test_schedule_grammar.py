"""The sentences of declared tasks."""

import pytest

from fibers.core.schedules.grammar import parse_sentence
from fibers.core.schedules.timing import Timing
from fibers.errors import ScheduleInvalid


@pytest.mark.parametrize(
    ("sentence", "timing"),
    [
        ("every 10 minutes", Timing.every(600)),
        ("every 1 minute", Timing.every(60)),
        ("every 1 hour", Timing.every(3600)),
        ("every 36 hours", Timing.every(36 * 3600)),
        ("every day at 09:00 in Europe/Berlin", Timing.cron("0 9 * * *", "Europe/Berlin")),
        ("every weekday at 17:45 in America/New_York", Timing.cron("45 17 * * 1-5", "America/New_York")),
        ("every week on wed,mon at 00:05 in Etc/UTC", Timing.cron("5 0 * * 1,3", "Etc/UTC")),
        ("  every   day at 09:00   in UTC ", Timing.cron("0 9 * * *", "UTC")),
    ],
)
def test_a_sentence_gives_its_times(sentence: str, timing: Timing) -> None:
    assert parse_sentence(sentence) == timing


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("every 5 minute", "“1 minute”"),
        ("every 1 minutes", "“1 minute”"),
        ("every 1 hours", "“1 hour”"),
        ("every 0 minutes", "“1 minute”"),
        ("every 5 minutes in Europe/Berlin", "an interval has no time zone"),
        ("every day at 09:00", "in which time zone"),
        ("every day at 24:00 in UTC", "no such time"),
        ("every day at 09:60 in UTC", "no such time"),
        ("every day at 9:00 in UTC", "is no schedule"),
        ("every day at 09:00 in Europe/Nowhere", "no time zone"),
        ("every week on mon,funday at 09:00 in UTC", "the days are"),
        ("every week on mon,mon at 09:00 in UTC", "names a day twice"),
        ("every week on  at 09:00 in UTC", "is no schedule"),
        ("every 800 hours", "lie between"),
        ("0 9 * * *", "is no schedule"),
        ("every day at 09:00 in ../../etc/passwd", "no time zone"),
        ("x" * 10_000, "is no schedule"),
    ],
)
def test_a_wrong_sentence_is_refused_with_its_reason(sentence: str, reason: str) -> None:
    with pytest.raises(ScheduleInvalid, match=reason):
        parse_sentence(sentence)
