"""The sentences in which a class declares its tasks: `every weekday at 09:00 in Europe/Berlin`.

    every N minutes | every 1 minute | every N hours | every 1 hour
    every day at HH:mm in ZONE
    every weekday at HH:mm in ZONE
    every week on mon,wed at HH:mm in ZONE

A wall-clock time needs a zone, an interval has none: what hour it is differs from place to place, how long an hour
lasts does not.
"""

import re
from typing import Final

from fibers.core.schedules.timing import Timing
from fibers.errors import ScheduleInvalid
from thinkproject.kernel.phrases import Phrase

DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
UNITS: Final = {"minute": 60, "hour": 3600}
MAX_SENTENCE: Final = 200
HOURS: Final = 24
MINUTES: Final = 60

_INTERVAL: Final = re.compile(r"every (\d{1,6}) (minute|hour)(s?)( in .*)?", re.ASCII)
_CLOCK: Final = re.compile(r"every (day|weekday|week on ([a-z, ]+?)) at (\d{2}):(\d{2})(?: in (\S+))?", re.ASCII)


def parse_sentence(sentence: str) -> Timing:
    """Read the times of a declared task. Errors: `ScheduleInvalid`, which says what is wrong."""
    text = " ".join(sentence.split()) if len(sentence) <= MAX_SENTENCE else ""
    interval = _INTERVAL.fullmatch(text)
    if interval is not None:
        return _interval(text, interval)
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        raise ScheduleInvalid(
            Phrase(
                "“{sentence}” is no schedule. Write “every 10 minutes”, “every day at 09:00 in Europe/Berlin”, “every "
                "weekday at …” or “every week on mon,wed at …”.",
                sentence=sentence[:MAX_SENTENCE],
            )
        )
    return _wall_clock(text, clock)


def _interval(text: str, found: re.Match[str]) -> Timing:
    count, unit, plural, zone = int(found[1]), found[2], found[3], found[4]
    if zone:
        raise ScheduleInvalid(Phrase("“{sentence}”: an interval has no time zone.", sentence=text))
    if count < 1 or (count == 1) == bool(plural):
        raise ScheduleInvalid(
            Phrase("“{sentence}”: write “1 {unit}”, or a greater number and “{unit}s”.", sentence=text, unit=unit)
        )
    return Timing.every(count * UNITS[unit])


def _wall_clock(text: str, found: re.Match[str]) -> Timing:
    hour, minute, zone = int(found[3]), int(found[4]), found[5]
    if hour >= HOURS or minute >= MINUTES:
        raise ScheduleInvalid(Phrase("“{sentence}”: there is no such time of day.", sentence=text))
    if zone is None:
        raise ScheduleInvalid(Phrase("“{sentence}”: say in which time zone, as in “in Europe/Berlin”.", sentence=text))
    days = {"day": "*", "weekday": "1-5"}.get(found[1]) or _days(text, found[2])
    return Timing.cron(f"{minute} {hour} * * {days}", zone)


def _days(text: str, listed: str) -> str:
    names = [name.strip() for name in listed.split(",")]
    unknown = [name for name in names if name not in DAYS]
    if unknown:
        raise ScheduleInvalid(
            Phrase("“{sentence}”: the days are {days}.", sentence=text, days=", ".join((*DAYS[1:], DAYS[0])))
        )
    if len(set(names)) != len(names):
        raise ScheduleInvalid(Phrase("“{sentence}” names a day twice.", sentence=text))
    return ",".join(str(DAYS.index(name)) for name in sorted(names, key=DAYS.index))
