"""The files of the catalogues: the template, a file to translate for each language, and its compiled form.

They are written with Babel, of the development environment; what runs needs the compiled forms only. The files hold no
dates and no lines, so they change with the sentences alone.
"""

import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from babel import Locale
from babel.messages.catalog import Catalog, Message
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation import to_locale

from thinkproject.catalogues import python_source, templates
from thinkproject.catalogues.entries import ROOT, Entry, Loose, python_files, template_files

FOLDER = ROOT / "chat" / "locale"
_PLACE = re.compile(r"%\((\w+)\)|(?<!\{)\{(\w+)")
_HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n{fields}\n'


class _Undated(Catalog):
    """A catalogue whose head has what programs read, and no dates or names."""

    @property
    def mime_headers(self) -> list[tuple[str, str]]:
        """The fields of the head."""
        fields = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Transfer-Encoding", "8bit")]
        if self.locale is not None:
            fields += [("Language", str(self.locale)), ("Plural-Forms", self.plural_forms)]
        return fields


def all_entries() -> list[Entry]:
    """The sentences of all sources, sorted."""
    errors = known_errors()
    found = {entry for path in python_files() for entry in python_source.entries_of(path, errors)}
    found |= {entry for path in template_files() for entry in templates.entries_of(path)}
    return sorted(found)


def all_loose() -> list[Loose]:
    """Text for people in all sources that no catalogue has."""
    errors = known_errors()
    found = [loose for path in python_files() for loose in python_source.loose_of(path, errors)]
    return found + [loose for path in template_files() for loose in templates.loose_of(path)]


def known_errors() -> python_source.Errors:
    """The error classes of the product."""
    return python_source.Errors.of([python_source.parse(path) for path in python_files()])


def languages(folder: Path) -> list[str]:
    """The locales that have a catalogue, such as `de` or `pt_BR`."""
    return sorted(path.parents[1].name for path in folder.glob("*/LC_MESSAGES/django.po"))


def wanted_files(entries: list[Entry], folder: Path) -> dict[Path, bytes]:
    """The contents that the files should have, by path: the template, and for each language both forms.

    Translations of sentences that are gone are dropped; new ones are empty, and English until they are translated.
    """
    files = {folder / "django.pot": written(_catalogue(entries))}
    for name in languages(folder):
        place = folder / name / "LC_MESSAGES"
        with (place / "django.po").open("rb") as file:
            translated = read_po(file, locale=name)
        catalogue = _catalogue(entries, translated)
        compiled = BytesIO()
        write_mo(compiled, catalogue)
        files[place / "django.po"] = written(catalogue)
        files[place / "django.mo"] = compiled.getvalue()
    return files


def problems(folder: Path) -> list[str]:
    """Translations that lose or invent a place for a value, or lack some of their plural forms."""
    found = []
    for name in languages(folder):
        with (folder / name / "LC_MESSAGES" / "django.po").open("rb") as file:
            catalogue = read_po(file, locale=name)
        found += [f"{name}: {message.id!r} and {message.string!r}" for message in catalogue if _is_wrong(message)]
    return found


def add(language: str, folder: Path) -> Path:
    """Make the empty catalogue of a language, such as `de` or `pt-br`. Errors: `FileExistsError`."""
    locale = to_locale(language)
    path = folder / locale / "LC_MESSAGES" / "django.po"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(written(Catalog(locale=Locale.parse(locale))))
    return path


def _catalogue(entries: Iterable[Entry], translated: Catalog | None = None) -> Catalog:
    catalogue = _Undated(locale=translated.locale if translated else None)
    for entry in entries:
        known = translated.get(entry.text, entry.context or None) if translated else None
        catalogue.add(
            (entry.text, entry.plural) if entry.plural else entry.text,
            string=known.string if known and known.string and bool(known.pluralizable) is bool(entry.plural) else None,
            context=entry.context or None,
            locations=[(entry.place, 0)],
            user_comments=known.user_comments if known else (),
        )
    return catalogue


def written(catalogue: Catalog) -> bytes:
    """A catalogue as its file has it."""
    output = BytesIO()
    write_po(output, catalogue, width=110, omit_header=True, sort_output=True, include_lineno=False)
    fields = ""
    if catalogue.locale is not None:
        fields = f'"Language: {catalogue.locale}\\n"\n"Plural-Forms: {catalogue.plural_forms}\\n"\n'
    return _HEADER.format(fields=fields).encode() + output.getvalue()


def _is_wrong(message: Message) -> bool:
    if not message.id or not message.string:
        return False
    sources = message.id if isinstance(message.id, tuple | list) else [message.id]
    strings = message.string if isinstance(message.string, tuple | list) else [message.string]
    needed, known = _places(sources[-1]), set().union(*(_places(source) for source in sources))
    if any(strings) and not all(strings):
        return True
    given = [_places(string) for string in strings if string]
    return any(not places <= known for places in given) or (bool(given) and not needed <= set().union(*given))


def _places(text: str) -> set[str]:
    return {name or other for name, other in _PLACE.findall(text.replace("{{", ""))}
