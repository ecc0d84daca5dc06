"""Time zones by name: which there are, which one a person may have meant, and whose is current.

The current zone is that of the person who asks: of a request by its header, of a socket by its query, and of a turn by
the message that it answers. Nothing is assumed where no zone was given.
"""

import difflib
import re
import zoneinfo
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo

from thinkproject.kernel.jsonvalue import JSONValue

HEADER: Final = "X-Time-Zone"
QUERY: Final = "timeZone"
"""Where a request and a socket name the zone of the person who asks."""
METADATA: Final = "timeZone"
"""Where a message's metadata name the zone of the person who wrote it."""

MAX_NAME: Final = 64
MAX_NEAR: Final = 3
CLOSE: Final = 0.72
"""How alike two names are of which one is proposed for the other, from 0 to 1."""
VERY_CLOSE: Final = 0.85
"""The same for what a zone is called in other words."""

_OF_MACHINES: Final = frozenset({"localtime", "posixrules", "Factory"})  # what they mean differs from host to host
_OFFSET: Final = re.compile(r"(?:utc|gmt|z)?([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)
_FARTHEST: Final = {"+": 14, "-": 12}  # the hours ahead of UTC, and behind it, that the database has names for
_OFF_THE_HOUR: Final = {
    "+3:30": "Asia/Tehran",
    "+4:30": "Asia/Kabul",
    "+5:30": "Asia/Kolkata",
    "+5:45": "Asia/Kathmandu",
    "+6:30": "Asia/Yangon",
    "+8:45": "Australia/Eucla",
    "+9:30": "Australia/Darwin",
    "+12:45": "Pacific/Chatham",
    "-3:30": "America/St_Johns",
    "-9:30": "Pacific/Marquesas",
}
"""Offsets that are no whole hours, which have no names of their own: the zone where most people live with one."""
_ABBREVIATIONS: Final = {
    "Europe/London": "bst",
    "Europe/Berlin": "cest mez mesz;w europe standard time;central european time;central europe standard time",
    "Europe/Athens": "eest oez oesz;eastern european time",
    "Europe/Lisbon": "west",
    "Europe/Moscow": "msk;russian standard time",
    "America/New_York": "edt et;eastern time;eastern standard time;us eastern",
    "America/Chicago": "cst cdt ct;central time;central standard time;us central",
    "America/Denver": "mdt mt;mountain time;mountain standard time",
    "America/Los_Angeles": "pst pdt pt;pacific time;pacific standard time;us pacific",
    "America/Anchorage": "akst akdt",
    "America/Halifax": "ast adt;atlantic time",
    "America/St_Johns": "nst ndt",
    "America/Sao_Paulo": "brt",
    "Asia/Kolkata": "ist;india standard time",
    "Asia/Shanghai": ";china standard time",
    "Asia/Tokyo": "jst;tokyo standard time",
    "Asia/Seoul": "kst",
    "Asia/Singapore": "sgt",
    "Asia/Hong_Kong": "hkt",
    "Asia/Dubai": "gst",
    "Asia/Jerusalem": "idt",
    "Australia/Sydney": "aest aedt",
    "Australia/Adelaide": "acst acdt",
    "Australia/Perth": "awst",
    "Pacific/Auckland": "nzst nzdt",
    "Africa/Johannesburg": "sast",
    "Africa/Nairobi": "eat",
    "UTC": "utc z zulu gmt",
}
_PLACES: Final = {
    "Europe/Vienna": "wien vienne bécs austria österreich salzburg graz linz innsbruck",
    "Europe/Berlin": "germany deutschland münchen munich hamburg köln cologne frankfurt stuttgart düsseldorf leipzig",
    "Europe/Zurich": "switzerland schweiz suisse zürich genf geneva genève basel bern",
    "Europe/Rome": "italy italia roma rom mailand milan milano naples napoli turin torino florence firenze",
    "Europe/Paris": "france lyon marseille toulouse nice",
    "Europe/Madrid": "spain españa barcelona sevilla seville valencia",
    "Europe/London": "england uk britain edinburgh manchester birmingham",
    "Europe/Lisbon": "lissabon lisboa porto",
    "Europe/Warsaw": "poland warschau warszawa krakow kraków",
    "Europe/Prague": "prag praha czechia brno",
    "Europe/Copenhagen": "denmark kopenhagen københavn",
    "Europe/Stockholm": "sweden göteborg gothenburg",
    "Europe/Brussels": "belgium brüssel bruxelles brussel antwerp",
    "Europe/Amsterdam": "netherlands holland rotterdam den_haag the_hague utrecht",
    "Europe/Bucharest": "romania bukarest bucurești bucuresti",
    "Europe/Belgrade": "serbia belgrad beograd",
    "Europe/Athens": "greece athen athina",
    "Europe/Kyiv": "ukraine kiew lviv odessa",
    "Europe/Moscow": "russia moskau moskva saint_petersburg",
    "Europe/Helsinki": "finland helsingfors",
    "Europe/Budapest": "hungary",
    "Asia/Shanghai": "china peking beijing shenzhen guangzhou",
    "Asia/Kolkata": "india delhi new_delhi mumbai bombay bangalore bengaluru chennai madras hyderabad",
    "Asia/Tokyo": "japan osaka kyoto",
    "Asia/Seoul": "korea south_korea busan",
    "Asia/Jerusalem": "israel tel_aviv haifa",
    "Asia/Ho_Chi_Minh": "vietnam saigon hanoi",
    "Asia/Karachi": "pakistan lahore islamabad",
    "America/New_York": "new_york_city nyc washington boston miami philadelphia atlanta",
    "America/Chicago": "houston dallas austin",
    "America/Los_Angeles": "california san_francisco seattle las_vegas san_diego portland",
    "America/Sao_Paulo": "brazil brasil rio rio_de_janeiro brasilia são_paulo",
    "America/Mexico_City": "mexico méxico",
    "America/Argentina/Buenos_Aires": "argentina",
    "America/Toronto": "ottawa montreal montréal quebec",
    "Australia/Sydney": "canberra",
    "Africa/Johannesburg": "south_africa cape_town pretoria durban",
}

_current: ContextVar[str] = ContextVar("think_time_zone", default="")


def current_zone() -> str:
    """The IANA name of the zone of the person who asks; empty where none was given."""
    return _current.get()


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Make a zone the current one; none where the name is none, as a browser's may be."""
    token = _current.set(name if is_zone(name) else "")
    try:
        yield
    finally:
        _current.reset(token)


def enter_zone(name: str) -> None:
    """The same for the rest of the task that is running."""
    _current.set(name if is_zone(name) else "")


def zone_in(headers: Mapping[str, str]) -> str:
    """The name in the headers of a request; empty where there is none."""
    return headers.get(HEADER, "").strip()


def zone_of_metadata(metadata: JSONValue) -> str:
    """The zone in a message's metadata, which may be a client's; empty where there is none."""
    name = metadata.get(METADATA) if isinstance(metadata, dict) else None
    return name if isinstance(name, str) and is_zone(name) else ""


def find_zone(name: str) -> ZoneInfo | None:
    """The zone of an IANA name; nothing for a name that is none, or that differs from machine to machine."""
    if len(name) > MAX_NAME or name in _OF_MACHINES or name.startswith(("posix/", "right/")):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, an impossible name, a folder of the database
        return None


def is_zone(name: str) -> bool:
    """Whether this is the name of a zone that is the same everywhere."""
    return find_zone(name) is not None


def near_zones(name: str) -> tuple[str, ...]:
    """Names of zones that may have been meant by one that is none, the likeliest first; none where nothing is near."""
    words = _plain(name[:MAX_NAME])
    offset = _OFFSET.fullmatch(words.replace(" ", ""))
    if offset is not None:
        return _of_offset(offset)
    place = words.rpartition("/")[2].strip()
    known = _meant().get(words) or _meant().get(place)
    if known is not None:
        return (known,)
    if not place or words in {each.casefold() for each in _OF_MACHINES}:
        return ()
    by_plain = _by_plain()
    if words in by_plain:
        return (by_plain[words],)
    found = [each for plain, each in by_plain.items() if plain.rpartition("/")[2] == place]
    by_place = {plain.rpartition("/")[2]: each for plain, each in by_plain.items()}
    places, region = {**_meant(), **by_place}, words.rpartition("/")[0]
    very_close = [places[key] for key in difflib.get_close_matches(place, places, n=MAX_NEAR, cutoff=VERY_CLOSE)]
    found += [each for each in very_close if each.casefold().startswith(region)]
    found += [by_plain[key] for key in difflib.get_close_matches(words, by_plain, n=MAX_NEAR, cutoff=CLOSE)]
    found += [by_place[key] for key in difflib.get_close_matches(place, by_place, n=MAX_NEAR, cutoff=CLOSE)]
    return tuple(dict.fromkeys(found))[:MAX_NEAR]


def _of_offset(found: re.Match[str]) -> tuple[str, ...]:
    """The zone of an offset: the name of a whole hour has the other sign, of others it is where people live with it."""
    sign, hours, minutes = found[1], int(found[2]), int(found[3] or 0)
    if minutes:
        known = _OFF_THE_HOUR.get(f"{sign}{hours}:{minutes:02}")
        return (known,) if known else ()
    if hours > _FARTHEST[sign]:
        return ()
    return (f"Etc/GMT{'-' if sign == '+' else '+'}{hours}" if hours else "UTC",)


def _plain(name: str) -> str:
    """A name for comparisons: without case, and with one space where there are spaces, dots or underscores."""
    return " ".join(re.sub(r"\(.*?\)|[\s_.,]+", " ", name.casefold()).split())


@cache
def _names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones()) - _OF_MACHINES


@cache
def _by_plain() -> dict[str, str]:
    """Names that people use, by the name for comparisons; those of the old layout of the database come last."""
    names = sorted(_names(), key=lambda each: ("/" not in each, each.startswith(("Etc/", "US/", "SystemV/")), each))
    return {plain: name for name, plain in reversed([(name, _plain(name)) for name in names])}


@cache
def _meant() -> dict[str, str]:
    meant: dict[str, str] = {}
    for zone, text in _ABBREVIATIONS.items():
        short, *long = text.split(";")
        meant |= {_plain(word): zone for word in [*short.split(), *long]}
    for zone, text in _PLACES.items():
        meant |= {_plain(word): zone for word in text.split()}
    return {word: zone for word, zone in meant.items() if zone in _names()}
