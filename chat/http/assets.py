"""The files that pages load, under the names that the build gave them (`static/dist/manifest.json`).

Names carry a hash of the content, so browsers keep these files for ever. The manifest is read again when it has
changed: after a build the next page names the new files.
"""

import hashlib
import json
import logging
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from django.templatetags.static import static

logger = logging.getLogger(__name__)

MANIFEST = Path(__file__).resolve().parents[1] / "static" / "think" / "manifest.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file that a page loads: its address, and those of the modules that it imports before it runs."""

    url: str
    preload: tuple[str, ...] = ()


def find_asset(name: str) -> Asset | None:
    """The file that stands for a plain name, such as `main.js`; `None`, with a warning, when nothing was built.

    Addresses are those of the project's static storage. Modules import each other by relative names, so a storage has
    to keep the files of a folder together. Errors: `KeyError` for a name that the build does not know.
    """
    entries = _entries(MANIFEST)
    if entries is None:
        _warn_once()
        return None
    return _asset(entries[name])


def find_messages(language: str) -> Asset | None:
    """The page's texts in a language such as `pt-br`, or in the one that it is a variety of; `None` without any."""
    entries = _entries(MANIFEST) or {}
    for name in (language.lower(), language.lower().partition("-")[0]):
        if entry := entries.get(f"messages-{name}.js"):
            return _asset(entry)
    return None


def _asset(entry: dict[str, Any]) -> Asset:
    url = static(f"think/{entry['file']}")
    return Asset(url=url, preload=tuple(urljoin(url, module) for module in entry["preload"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltScript:
    """The text of a file of the build. `build`: another one for each build."""

    text: str
    build: str


def find_script(name: str) -> BuiltScript | None:
    """The text of a file by its plain name, for what is given out elsewhere than its address; `None` when not built.

    Errors: `KeyError` for a name that the build does not know.
    """
    entries = _entries(MANIFEST)
    if entries is None:
        return None
    names = sorted(entry["file"] for entry in entries.values())
    text = (MANIFEST.parent / entries[name]["file"]).read_text(encoding="utf-8")
    return BuiltScript(text=text, build=hashlib.sha256("\n".join(names).encode()).hexdigest()[:12])


def _entries(manifest: Path) -> dict[str, Any] | None:
    try:
        found = manifest.stat()
    except FileNotFoundError:
        return None
    entries: dict[str, Any] = _read(manifest, found.st_mtime_ns, found.st_ino)
    return entries


@lru_cache(maxsize=1)
def _read(manifest: Path, *_version: int) -> dict[str, Any]:
    entries: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))["entries"]
    return entries


@cache
def _warn_once() -> None:
    logger.warning(
        "the page's scripts and styles are missing; run `python static/build.py`", extra={"action": "page_not_built"}
    )
