"""Browsers and systems in words, from what a browser says of itself. Nothing else of its text is kept."""

import re
from typing import Final, NamedTuple

MAX_READ: Final = 1_000


class Device(NamedTuple):
    """Names of a browser and of its system; empty where they are not known."""

    browser: str
    system: str


# The first that is found counts: many name others too.
_BROWSERS: Final = (
    ("Edge", re.compile(r"\bEdg(?:e|A|iOS)?/")),
    ("Opera", re.compile(r"\b(?:OPR|OPiOS|Opera)/")),
    ("Samsung Internet", re.compile(r"\bSamsungBrowser/")),
    ("Vivaldi", re.compile(r"\bVivaldi/")),
    ("Firefox", re.compile(r"\b(?:Firefox|FxiOS)/")),
    ("Chrome", re.compile(r"\b(?:Headless)?(?:Chrome|Chromium|CriOS)/")),
    ("Safari", re.compile(r"\bVersion/[\d.]+ .*\bSafari/")),
)
_SYSTEMS: Final = (
    ("iPhone", re.compile(r"\biPhone\b")),
    ("iPad", re.compile(r"\biPad\b")),
    ("Android", re.compile(r"\bAndroid\b")),
    ("ChromeOS", re.compile(r"\bCrOS\b")),
    ("Windows", re.compile(r"\bWindows NT\b")),
    ("macOS", re.compile(r"\bMac(?:intosh| OS X)\b")),
    ("Linux", re.compile(r"\b(?:Linux|X11)\b")),
)


def device_of(user_agent: str) -> Device:
    """Name the browser and the system of a `User-Agent` header."""
    text = user_agent[:MAX_READ]
    found = [next((name for name, sign in signs if sign.search(text)), "") for signs in (_BROWSERS, _SYSTEMS)]
    return Device(*found)
