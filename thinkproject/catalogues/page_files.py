"""The catalogues of the page: a folder for each language, with the areas and keys of the English one.

A text that is not translated yet is empty, and English on the page. A text that counts has an object with one text for
each plural form of the language.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import TypeAlias

from babel import Locale

from thinkproject.catalogues.entries import ROOT

FOLDER = ROOT / "static" / "src" / "app" / "messages"
ENGLISH = "en"
COUNTED = "count"
"""The value that chooses the plural form; a form for one number alone need not show it."""
Message: TypeAlias = str | dict[str, str]
Catalogue: TypeAlias = dict[str, dict[str, Message]]
"""Messages by area and key."""
_PLACE = re.compile(r"\{(\w+)\}")
_EXACT = {"zero", "one", "two"}


def languages(folder: Path) -> list[str]:
    """The languages that the page speaks besides English, such as `de` or `pt-br`."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name != ENGLISH)


def read(folder: Path, language: str) -> Catalogue:
    """The catalogue of a language, which may have no files yet."""
    paths = sorted((folder / language).glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def wanted_files(folder: Path) -> dict[Path, bytes]:
    """The contents that the files of all languages should have: the keys of English, in its order.

    Texts that are gone are dropped; new ones, and those that began or ceased to count, are empty.
    """
    english = read(folder, ENGLISH)
    files = {}
    for language in languages(folder):
        known = read(folder, language)
        for area, messages in english.items():
            content = {key: _kept(message, known.get(area, {}).get(key, "")) for key, message in messages.items()}
            files[folder / language / f"{area}.json"] = written(content)
    return files


def surplus_files(folder: Path) -> list[Path]:
    """Files of areas that English does not have."""
    areas = set(read(folder, ENGLISH))
    return [path for name in languages(folder) for path in (folder / name).iterdir() if path.stem not in areas]


def written(messages: dict[str, Message]) -> bytes:
    """An area as its file has it."""
    return (json.dumps(messages, ensure_ascii=False, indent=2) + "\n").encode()


def forms_of(language: str) -> list[str]:
    """The plural forms that whole numbers below a thousand take, in the order of CLDR."""
    used = {form(language, count) for count in range(1000)} | {"other"}
    return [name for name in ("zero", "one", "two", "few", "many", "other") if name in used]


@cache
def form(language: str, count: int) -> str:
    """The plural form of a whole number."""
    return str(Locale.parse(language, sep="-").plural_form(count))


def problems(folder: Path) -> list[str]:
    """Texts that lack a plural form, or lose or invent a place for a value. An empty text is no problem here."""
    english = {key: message for messages in read(folder, ENGLISH).values() for key, message in messages.items()}
    found = []
    for language in languages(folder):
        forms = forms_of(language)
        for messages in read(folder, language).values():
            for key, message in messages.items():
                if message and key in english and (wrong := _wrong(english[key], message, forms)):
                    found.append(f"{language}: {key}: {wrong}")
    return found


def _kept(english: Message, known: Message) -> Message:
    return known if isinstance(known, dict) is isinstance(english, dict) else ""


def _wrong(english: Message, message: Message, forms: list[str]) -> str:
    if isinstance(english, str) or isinstance(message, str):
        same = isinstance(message, str) and isinstance(english, str) and _places(message) == _places(english)
        return "" if same else "the places for values differ"
    if sorted(message) != sorted(forms) or not all(message.values()):
        return f"its plural forms are {', '.join(forms)}"
    needed = set().union(*(_places(text) for text in english.values()))
    for name, text in message.items():
        free = {COUNTED} if name in _EXACT else set()
        if not needed - free <= _places(text) <= needed:
            return f"the places for values differ in the form {name}"
    return ""


def _places(text: str) -> set[str]:
    return set(_PLACE.findall(text))
