r"""The list of what a language lacks, for a translator, and the way of the translations back into the files.

A line of the list is `ID TEXT`; the translator writes the translation in the place of the text. A text that counts has
a line for each plural form of the language, `ID.FORM TEXT`. An id is made of the key, so a list stays good while others
add texts. A line break within a text is written as `\n`.
"""

import hashlib
from dataclasses import dataclass
from gettext import c2py
from io import BytesIO
from pathlib import Path
from typing import TypeAlias

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po
from django.utils.translation import to_locale

from thinkproject.catalogues import files, page_files

Lines: TypeAlias = dict[str, str]
"""Texts by id and, where they count, form."""


class ListWrong(ValueError):
    """A line of a filled list that cannot be taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The folders of the two kinds of catalogues."""

    server: Path = files.FOLDER
    page: Path = page_files.FOLDER

    def po(self, language: str) -> Path:
        """The server's file of a language."""
        return self.server / to_locale(language) / "LC_MESSAGES" / "django.po"


def missing(language: str, places: Places) -> Lines:
    """English texts that a language does not have yet, by the ids of their lines."""
    lines: Lines = {}
    known = _page_texts(language, places)
    forms = page_files.forms_of(language)
    for key, message in _page_texts(page_files.ENGLISH, places).items():
        if not known.get(key):
            lines |= _lines(_id("page", key), message, forms)
    catalog = _catalog(language, places)
    for entry in catalog:
        if entry.id and not _is_translated(entry):
            lines |= _server_lines(entry, _server_forms(catalog, language))
    return lines


def fill(language: str, lines: Lines, places: Places) -> int:
    """Write translations into the files, which were brought up to date before; returns how many texts they were.

    Nothing is written when a line is of no text, or a text that counts lacks a form. Errors: `ListWrong`.
    """
    rest = dict(lines)
    contents = {**_filled_page(language, rest, places), **_filled_server(language, rest, places)}
    if rest:
        raise ListWrong(f"No text has the id {next(iter(rest))!r}.")
    for path, content in contents.items():
        path.write_bytes(content)
    return len({line.partition(".")[0] for line in lines})


def dump(lines: Lines) -> str:
    """The list as text."""
    return "".join(f"{line} {_escaped(text)}\n" for line, text in lines.items())


def parse(text: str) -> Lines:
    """A filled list. Empty lines and lines without a translation are left out. Errors: `ListWrong`."""
    lines: Lines = {}
    for line in text.splitlines():
        name, _, words = line.partition(" ")
        if not words:
            continue
        if name in lines:
            raise ListWrong(f"The id {name!r} is there twice.")
        lines[name] = words.replace("\\n", "\n").replace("\\\n", "\\n")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\n", "\\\\n").replace("\n", "\\n")


def _id(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]


def _lines(name: str, message: page_files.Message, forms: list[str]) -> Lines:
    if isinstance(message, str):
        return {name: message}
    return {f"{name}.{form}": message.get(form, message["other"]) for form in forms}


def _taken(lines: Lines, name: str, forms: list[str] | None) -> page_files.Message | None:
    if forms is None:
        return lines.pop(name, None)
    found = {form: lines.pop(f"{name}.{form}") for form in forms if f"{name}.{form}" in lines}
    if found and len(found) != len(forms):
        raise ListWrong(f"The text {name!r} needs the forms {', '.join(forms)}.")
    return found or None


# --- the page -----------------------------------------------------------------------------------------------------


def _page_texts(language: str, places: Places) -> dict[str, page_files.Message]:
    areas = page_files.read(places.page, language).values()
    return {key: message for messages in areas for key, message in messages.items()}


def _filled_page(language: str, lines: Lines, places: Places) -> dict[Path, bytes]:
    forms = page_files.forms_of(language)
    known = page_files.read(places.page, language)
    contents = {}
    for area, messages in page_files.read(places.page, page_files.ENGLISH).items():
        area_known = known.get(area, {})
        filled: dict[str, page_files.Message] = {}
        for key, message in messages.items():
            given = _taken(lines, _id("page", key), None if isinstance(message, str) else forms)
            filled[key] = given or area_known.get(key, "")
        contents[places.page / language / f"{area}.json"] = page_files.written(filled)
    return contents


# --- the server ---------------------------------------------------------------------------------------------------


def _catalog(language: str, places: Places) -> Catalog:
    return read_po(BytesIO(places.po(language).read_bytes()), locale=to_locale(language))


def _server_forms(catalog: Catalog, language: str) -> list[str]:
    """The names of gettext's plural forms, in the order of the file."""
    index = c2py(catalog.plural_expr)
    named = {index(count): page_files.form(language, count) for count in range(1000)}
    return [named[place] for place in sorted(named)]


def _is_translated(entry: Message) -> bool:
    return all(entry.string) if isinstance(entry.string, tuple | list) else bool(entry.string)


def _server_id(entry: Message) -> str:
    first = entry.id[0] if isinstance(entry.id, tuple | list) else entry.id
    return _id("server", entry.context or "", first)


def _server_lines(entry: Message, forms: list[str]) -> Lines:
    if not isinstance(entry.id, tuple | list):
        return {_server_id(entry): entry.id}
    return _lines(_server_id(entry), {"one": entry.id[0], "other": entry.id[-1]}, forms)


def _filled_server(language: str, lines: Lines, places: Places) -> dict[Path, bytes]:
    catalog = _catalog(language, places)
    forms = _server_forms(catalog, language)
    for entry in catalog:
        if not entry.id:
            continue
        given = _taken(lines, _server_id(entry), forms if isinstance(entry.id, tuple | list) else None)
        if isinstance(given, str):
            entry.string = given
        elif given:
            entry.string = tuple(given[form] for form in forms)
    return {places.po(language): files.written(catalog)}
