"""When a schedule is due: once after a delay, once at an instant, at wall-clock times (cron), or every so often.

Pure: the caller gives the present, which is the database's. Instants are aware and in UTC; a wall-clock time is one of
the timing's zone. Where clocks are put forward over a time that is named, it is due at the first minute that exists;
where they are put back it is due the first time only. An instant that is over is refused when it is asked for, and what
is stored is late rather than never.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from fibers.errors import ScheduleInvalid
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.zones import find_zone, near_zones

MAX_INTERVAL_SECONDS: Final = 30 * 86_400
"""Longest interval: 30 days. What is rarer is said in cron, which knows months."""
MAX_AHEAD_SECONDS: Final = 100 * 365 * 86_400
MAX_CRON: Final = 100
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2200
CRON_FIELDS: Final = 5
PREVIEW: Final = 5
UTC_NAME: Final = "UTC"
PAST_SECONDS: Final = 60
"""How long ago an instant may be that is asked for: it was now when it was written, and words have no seconds."""


class ScheduleKind(StrEnum):
    """The four kinds of times."""

    DELAY = "delay"
    INSTANT = "instant"
    CRON = "cron"
    INTERVAL = "interval"


REPEATING: Final = frozenset({ScheduleKind.CRON, ScheduleKind.INTERVAL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times of a schedule as they are stored: a kind, a text, and a zone.

    `spec`: seconds of a delay or an interval, an ISO instant in UTC, or five fields of cron.
    """

    kind: ScheduleKind
    spec: str
    zone: str = UTC_NAME

    @classmethod
    def delay(cls, seconds: float) -> Self:
        """Once, so many seconds from when it is stored. Errors: `ScheduleInvalid`."""
        return cls(kind=ScheduleKind.DELAY, spec=_number(seconds, smallest=0, largest=MAX_AHEAD_SECONDS))

    @classmethod
    def at(cls, instant: datetime, zone: str = "") -> Self:
        """Once, at an instant. A naive one is of the zone, and needs it; whether it is over `check_ahead` says.

        Errors: `ScheduleInvalid`.
        """
        if not FIRST_YEAR <= instant.year <= LAST_YEAR:  # others lie beyond what calendars of some zones can say
            raise ScheduleInvalid(Phrase("The year lies between {first} and {last}.", first=FIRST_YEAR, last=LAST_YEAR))
        if instant.tzinfo is None:
            instant = existing(instant.replace(tzinfo=_needed_zone(zone, instant.isoformat(" ", "minutes"))))
        named = zone_named(zone or UTC_NAME)
        return cls(kind=ScheduleKind.INSTANT, spec=instant.astimezone(UTC).isoformat(), zone=named.key)

    @classmethod
    def cron(cls, text: str, zone: str = "") -> Self:
        """At the times of a cron text (minute, hour, day, month, weekday) of a zone, which it needs.

        Errors: `ScheduleInvalid`.
        """
        spec = " ".join(text.split())
        if len(spec) > MAX_CRON or len(spec.split()) != CRON_FIELDS:
            raise ScheduleInvalid("A cron text has five fields: minute, hour, day of the month, month and weekday.")
        timing = cls(kind=ScheduleKind.CRON, spec=spec, zone=_needed_zone(zone, spec).key)
        timing.next_after(datetime(2024, 1, 1, tzinfo=UTC))
        return timing

    @classmethod
    def every(cls, seconds: float) -> Self:
        """Every so many seconds, first after as many; at most 30 days. Errors: `ScheduleInvalid`."""
        return cls(kind=ScheduleKind.INTERVAL, spec=_number(seconds, smallest=1, largest=MAX_INTERVAL_SECONDS))

    @property
    def is_repeating(self) -> bool:
        """Whether there is another occurrence after each one."""
        return self.kind in REPEATING

    @property
    def shortest_seconds(self) -> float:
        """The least time between two occurrences, as far as the kind says; infinite for what is due once."""
        if self.kind is ScheduleKind.INTERVAL:
            return float(self.spec)
        return 60.0 if self.kind is ScheduleKind.CRON else math.inf

    def first_after(self, now: datetime) -> datetime:
        """The first instant, for a schedule that is armed now. Errors: `ScheduleInvalid`."""
        if self.kind is ScheduleKind.INSTANT:
            return datetime.fromisoformat(self.spec)
        if self.kind is ScheduleKind.DELAY:
            return now + timedelta(seconds=float(self.spec))
        return self.next_after(now)

    def check_ahead(self, now: datetime) -> None:
        """Refuse an instant that is over, with the present in the words: who asks for one may not know the date.

        A few seconds are no matter. Errors: `ScheduleInvalid`.
        """
        if self.kind is not ScheduleKind.INSTANT:
            return
        instant = datetime.fromisoformat(self.spec)
        if (now - instant).total_seconds() > PAST_SECONDS:
            zone = zone_named(self.zone)
            raise ScheduleInvalid(
                Phrase(
                    "{time} ({zone}) is over: it is {now} there now.",
                    time=_shown(instant, zone),
                    zone=self.zone,
                    now=_shown(now, zone),
                )
            )

    def next_after(self, now: datetime, due: datetime | None = None) -> datetime:
        """The next instant of a repeating schedule; `due` is the one that just began, which may be long ago.

        Instants between `due` and `now` are left out. Errors: `ScheduleInvalid` where none comes.
        """
        if self.kind is ScheduleKind.INTERVAL:
            step = timedelta(seconds=float(self.spec))
            steady = (now if due is None else due) + step
            return steady if steady > now else now + step
        return self._next_cron(now)

    def upcoming(self, now: datetime, first: datetime | None = None, *, count: int = PREVIEW) -> list[datetime]:
        """The next instants, `first` being what is armed already; one for what is due once."""
        found = [self.first_after(now) if first is None else first]
        while self.is_repeating and len(found) < count:
            found.append(self.next_after(max(found[-1], now), found[-1]))
        return found

    def _next_cron(self, now: datetime) -> datetime:
        try:
            times = CronSim(self.spec, now.astimezone(ZoneInfo(self.zone)))
            # In the hour that comes twice the search begins with times that were due in its first passage.
            return next(found for found in (each.astimezone(UTC) for each in times) if found > now)
        except (KeyError, OSError) as error:  # it was a zone when the schedule was stored
            raise _no_zone(self.zone) from error
        except (CronSimError, StopIteration, ValueError, OverflowError) as error:
            raise ScheduleInvalid(
                Phrase("“{text}” is no cron text that is ever due: {error}", text=self.spec, error=error)
            ) from error


def zone_named(name: str) -> ZoneInfo:
    """The time zone of an IANA name. Errors: `ScheduleInvalid`, with the names that may have been meant."""
    zone = find_zone(name)
    if zone is None:
        raise _no_zone(name)
    return zone


def existing(instant: datetime) -> datetime:
    """An instant of a zone; where its clocks are put forward over it, the first one after the gap."""
    before, after = instant.replace(fold=0).utcoffset(), instant.replace(fold=1).utcoffset()
    if before is None or after is None or before >= after:
        return instant
    # In a gap the offset before it names an instant after it, by as much as is left out of the clock.
    low, high = instant.replace(fold=1).astimezone(UTC), instant.replace(fold=0).astimezone(UTC)
    zone = instant.tzinfo
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        low, high = (low, middle) if middle.astimezone(zone).utcoffset() == after else (middle, high)
    return high.replace(microsecond=0).astimezone(zone)


def read_instant(text: str) -> datetime:
    """A date and time of day in ISO 8601, with or without an offset.

    Errors: `ScheduleInvalid`; for a date alone too, which leaves the hour open.
    """
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise _no_instant(text) from error
    if not any(mark in text.strip() for mark in ("T", "t", " ")):
        raise _no_instant(text)
    return instant


def _no_instant(text: str) -> ScheduleInvalid:
    return ScheduleInvalid(Phrase("“{text}” is no date with a time of day. Write it as 2027-05-01T09:00.", text=text))


def _no_zone(name: str) -> ScheduleInvalid:
    near = near_zones(name)
    if not near:
        return ScheduleInvalid(
            Phrase("There is no time zone “{name}”. Name a place, for example Europe/Berlin, or UTC.", name=name)
        )
    return ScheduleInvalid(
        Phrase("There is no time zone “{name}”. Did you mean {near}?", name=name, near=", ".join(near))
    )


def _shown(instant: datetime, zone: ZoneInfo) -> str:
    return f"{instant.astimezone(zone):%Y-%m-%d %H:%M}"


def _needed_zone(name: str, text: str) -> ZoneInfo:
    """The zone of a wall-clock time. What hour that is differs from place to place, so none is assumed."""
    if not name.strip():
        raise ScheduleInvalid(Phrase("“{text}”: say in which time zone, for example Europe/Berlin or UTC.", text=text))
    return zone_named(name)


def _number(seconds: float, *, smallest: float, largest: float) -> str:
    if isinstance(seconds, bool) or not math.isfinite(seconds) or not smallest <= seconds <= largest:
        raise ScheduleInvalid(
            Phrase(
                "The seconds of a schedule lie between {smallest} and {largest}.", smallest=smallest, largest=largest
            )
        )
    return f"{float(seconds):.3f}".rstrip("0").rstrip(".")
