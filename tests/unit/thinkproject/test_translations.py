"""What a language lacks is listed, a filled list comes back whole or not at all, and lost catalogues_at are found."""

import json
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from thinkproject.catalogues import exchange, files, page_files
from thinkproject.catalogues.entries import Entry

ENGLISH: dict[str, page_files.Message] = {
    "list.delete": "Delete {name}",
    "list.doors": {"one": "1 door", "other": "{count} doors"},
    "list.end": " of {label}",
}
ENTRIES = [Entry(text="Sign in"), Entry(text="One of %(what)s", plural="%(count)d of %(what)s"), Entry(text="a\nb")]


@pytest.fixture
def catalogues_at(tmp_path: Path) -> exchange.Places:
    """Catalogues of German and Arabic without a translation."""
    found = exchange.Places(server=tmp_path / "locale", page=tmp_path / "messages")
    (found.page / "en").mkdir(parents=True)
    (found.page / "en" / "list.json").write_bytes(page_files.written(ENGLISH))
    for language in ("de", "ar"):
        files.add(language, found.server)
        (found.page / language).mkdir()
    write({**files.wanted_files(ENTRIES, found.server), **page_files.wanted_files(found.page)})
    return found


def write(contents: dict[Path, bytes]) -> None:
    for path, content in contents.items():
        path.write_bytes(content)


def filled(language: str, catalogues_at: exchange.Places) -> exchange.Lines:
    """A translator's work: each text in brackets."""
    return {line: f"[{text}]" for line, text in exchange.missing(language, catalogues_at).items()}


@pytest.mark.parametrize(("language", "forms"), [("de", 2), ("ar", 6)])
def test_a_filled_list_comes_back_whole(language: str, forms: int, catalogues_at: exchange.Places) -> None:
    lines = exchange.parse(exchange.dump(filled(language, catalogues_at)))
    assert len(lines) == 4 + 2 * forms
    assert exchange.fill(language, lines, catalogues_at) == len(ENGLISH) + len(ENTRIES)
    assert exchange.missing(language, catalogues_at) == {}
    page = json.loads((catalogues_at.page / language / "list.json").read_text())
    assert page["list.delete"] == "[Delete {name}]"
    assert page["list.end"] == "[ of {label}]"
    assert len(page["list.doors"]) == forms
    with catalogues_at.po(language).open("rb") as file:
        known = read_po(file, locale=language)
    assert string_of(known, "a\nb") == "[a\nb]"
    assert len(string_of(known, "One of %(what)s")) == forms


def string_of(catalogue: Catalog, name: str) -> str | tuple[str, ...]:
    """The translation of a text, or its forms."""
    message = catalogue.get(name)
    assert message is not None
    found: Any = message.string
    return found if isinstance(found, str) else tuple(map(str, found))


def test_the_forms_of_gettext_have_their_names(catalogues_at: exchange.Places) -> None:
    lines = filled("ar", catalogues_at)
    for line in lines:
        lines[line] = line.partition(".")[2] or "text"
    exchange.fill("ar", lines, catalogues_at)
    with catalogues_at.po("ar").open("rb") as file:
        known = read_po(file, locale="ar")
    forms = list(string_of(known, "One of %(what)s"))
    assert forms == ["zero", "one", "two", "few", "other", "many"]  # in the order of the file's own Plural-Forms
    assert "n%100>=0 && n%100<=2 ? 4 : 5" in known.plural_forms


def test_a_list_may_be_filled_in_parts(catalogues_at: exchange.Places) -> None:
    lines = filled("de", catalogues_at)
    first = next(iter(lines))
    assert exchange.fill("de", {first: "Entferne {name}"}, catalogues_at) == 1
    assert first not in exchange.missing("de", catalogues_at)
    assert len(exchange.missing("de", catalogues_at)) == len(lines) - 1


def test_a_wrong_list_changes_nothing(catalogues_at: exchange.Places) -> None:
    lines = filled("de", catalogues_at)
    before = {path: path.read_bytes() for path in catalogues_at.page.parent.rglob("*.*") if path.is_file()}
    lacking = {line: text for line, text in lines.items() if not line.endswith(".one")}
    for wrong in ({**lines, "12345678": "x"}, lacking):
        with pytest.raises(exchange.ListWrong):
            exchange.fill("de", wrong, catalogues_at)
    with pytest.raises(exchange.ListWrong, match="twice"):
        exchange.parse("aa x\naa y\n")
    assert {path: path.read_bytes() for path in before} == before


def test_texts_that_are_gone_are_dropped_and_new_ones_are_empty(catalogues_at: exchange.Places) -> None:
    exchange.fill("de", filled("de", catalogues_at), catalogues_at)
    changed: dict[str, page_files.Message] = {"list.delete": "Delete {name}", "list.doors": "Doors", "list.new": "New"}
    (catalogues_at.page / "en" / "list.json").write_bytes(page_files.written(changed))
    (catalogues_at.page / "de" / "gone.json").write_text("{}")
    write(page_files.wanted_files(catalogues_at.page))
    page = json.loads((catalogues_at.page / "de" / "list.json").read_text())
    assert page == {"list.delete": "[Delete {name}]", "list.doors": "", "list.new": ""}
    assert page_files.surplus_files(catalogues_at.page) == [catalogues_at.page / "de" / "gone.json"]


@pytest.mark.parametrize(
    ("language", "key", "message", "is_wrong"),
    [
        ("de", "list.delete", "{name} löschen", False),
        ("de", "list.delete", "Löschen", True),
        ("de", "list.delete", "{name} {other}", True),
        ("de", "list.delete", {"one": "{name}", "other": "{name}"}, True),
        ("de", "list.doors", {"one": "eine Tür", "other": "{count} Türen"}, False),
        ("de", "list.doors", {"one": "eine Tür", "other": "Türen"}, True),
        ("de", "list.doors", {"other": "{count} Türen"}, True),
        ("de", "list.doors", "{count} Türen", True),
        ("ar", "list.doors", {"one": "باب", "other": "{count} باب"}, True),
        (
            "ar",
            "list.doors",
            dict.fromkeys(("zero", "one", "two"), "x") | dict.fromkeys(("few", "many", "other"), "{count}"),
            False,
        ),
        (
            "ar",
            "list.doors",
            dict.fromkeys(("zero", "one", "two", "few"), "x") | dict.fromkeys(("many", "other"), "{count}"),
            True,
        ),
    ],
)
def test_lost_places_and_forms_are_found(
    language: str, key: str, message: page_files.Message, is_wrong: bool, catalogues_at: exchange.Places
) -> None:
    path = catalogues_at.page / language / "list.json"
    path.write_bytes(page_files.written({key: message}))
    assert bool(page_files.problems(catalogues_at.page)) is is_wrong


def test_a_plural_of_the_server_that_lacks_a_form_is_found(catalogues_at: exchange.Places) -> None:
    exchange.fill("ar", filled("ar", catalogues_at), catalogues_at)
    assert files.problems(catalogues_at.server) == []
    path = catalogues_at.po("ar")
    path.write_text(path.read_text().replace('msgstr[3] "[%(count)d of %(what)s]"', 'msgstr[3] ""'))
    assert len(files.problems(catalogues_at.server)) == 1
