"""Sentences are found in sources, loose text is reported, and translations survive an update."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import RequestFactory
from django.utils import translation
from django.utils.translation import gettext, ngettext, override, pgettext
from pytest_django import Settings

from chat.errors import InputInvalid
from chat.http.api.problems import problem_of
from thinkproject.catalogues import files, python_source, templates
from thinkproject.catalogues.entries import Entry
from thinkproject.kernel.languages import language_of, translate
from thinkproject.kernel.phrases import Phrase
from thinkproject.web.languages import install_made_up_languages, made_up


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>Hello</p>", ["Hello"]),
        ("<p>\n{% if x %}Hello{% endif %}</p>", ["Hello"]),
        ("{% block title %}Hello{% endblock %}", ["Hello"]),
        ('<a title="Close {{ name }}">×</a>', ["Close"]),
        ("<img alt='A cat'>", ["A cat"]),
        ('<input placeholder="Search"><input type="submit" value="Go">', ["Go", "Search"]),
        ('{% block attributes %} class="a" aria-label="Menu"{% endblock %}', ["Menu"]),
        ("{{ count }} message{{ count|pluralize }}", ["message", "|pluralize"]),
        ("{{ name|default:'Nothing' }}", ["|default:'Nothing"]),
        ('{{ on|yesno:"yes,no" }}', ['|yesno:"yes,no']),
        ("<p>{% translate 'Hello' %}, {{ name }}!</p>", []),
        ('<p aria-label="{% translate \'Menu\' %}" class="big" data-name="Menu"></p>', []),
        ("{% blocktranslate trimmed %}Hello <b>{{ name }}</b>{% endblocktranslate %}", []),
        ("{# a note #}{% comment %}another{% endcomment %}<!-- and one -->", []),
        ("<code>make run</code><script>let x;</script><title>{% block t %}Think{% endblock %}</title>", []),
        ("{{ name|default:'' }}{{ on|yesno:'1,0' }} · 5 %", []),
    ],
)
def test_loose_text_of_a_template_is_found(source: str, found: list[str]) -> None:
    assert [text for _, text in templates.find_loose(source)] == found


def test_a_line_is_named() -> None:
    assert templates.find_loose("{% translate 'a' %}\n{% comment %}\n{% endcomment %}\n<p>b</p>") == [(4, "b")]


ERRORS = '''
class BlockGone(ChatError, NotFound):
    """The block is gone."""

class ToolBroken(ToolError):
    """For models."""

class CompactionFailed(Frame):
    """A frame that has the name of an error."""
'''


@pytest.fixture
def errors() -> python_source.Errors:
    base = "class ThinkError(Exception): pass\nclass ChatError(ThinkError): pass\nclass ToolError(ThinkError): pass\n"
    return python_source.Errors.of([ast.parse(ERRORS), ast.parse(base)])


def test_errors_are_sorted_by_who_reads_them(errors: python_source.Errors) -> None:
    assert errors.people == {"ThinkError", "ChatError", "BlockGone"}
    assert errors.developers == {"ToolError", "ToolBroken"}
    every = files.known_errors()
    assert {"InputInvalid", "QuotaExceeded", "BlockTooLarge"} <= every.people
    assert {"ModelAuth", "LeaseLost", "ToolNotFound", "Disconnected"} <= every.developers
    assert not every.people & every.developers


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('raise BlockGone(f"{x} is gone")', 1),
        ('raise BlockGone("It is " + x)', 1),
        ('raise BlockGone("{} is gone".format(x))', 1),
        ('raise BlockGone(Phrase(f"{x} is gone"))', 1),
        ("raise BlockGone(Phrase(TEXT, x=x))", 1),
        ('problem(404, "gone", f"{x} is gone")', 1),
        ('messages.success(request, "Saved.")', 1),
        ('raise forms.ValidationError("No.")', 1),
        ('forms.CharField(label="Name", help_text="Short")', 2),
        ('@admin.display(description="Name")\ndef name(): ...', 1),
        ('name.short_description = "Name"', 1),
        ('class Meta:\n    verbose_name = "thing"', 1),
        ('raise BlockGone("It is gone.")', 0),
        ('raise BlockGone(Phrase("{x} is gone.", x=x), id=x)', 0),
        ("raise BlockGone(error.phrase)", 0),
        ('raise ToolBroken(f"{x} is broken")', 0),
        ('messages.success(request, gettext("Saved."))', 0),
        ('forms.CharField(label=_("Name"))', 0),
        ('@admin.display(description="↑")\ndef name(): ...', 0),
        ('Setting(10, description="For developers")', 0),
    ],
)
def test_loose_text_of_a_module_is_found(
    source: str, found: int, errors: python_source.Errors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(python_source, "relative", lambda path: path.name)
    path = tmp_path / "x.py"
    path.write_text(source)
    assert len(list(python_source.loose_of(path, errors))) == found


def test_sentences_are_found_where_they_are_said(
    errors: python_source.Errors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (python_source, templates):
        monkeypatch.setattr(module, "relative", lambda path: path.name)
    path = tmp_path / "x.py"
    path.write_text(
        ERRORS + 'BUSY = "Busy."\nraise BlockGone(BUSY)\nraise BlockGone("No.")\nraise ToolBroken("never")\n'
        'Phrase("{n} left", n=n)\npgettext("verb", "open")\nngettext("one", "many", n)\nproblem(404, "code", "None.")\n'
    )
    found = list(python_source.entries_of(path, errors))
    expected = [("The block is gone.", "", ""), ("Busy.", "", ""), ("No.", "", ""), ("{n} left", "", "")]
    expected += [("open", "", "verb"), ("one", "many", ""), ("None.", "", "")]
    assert {(entry.text, entry.plural, entry.context) for entry in found} == set(expected)
    page = tmp_path / "x.html"
    page.write_text(
        "{% load i18n %}{% translate \"It's\" %}{% translate 'open' context 'verb' %}"
        "{% blocktranslate count n=n trimmed %}{{ n }} day\n{% plural %}{{ n }} days{% endblocktranslate %}"
    )
    assert {(entry.text, entry.plural, entry.context) for entry in templates.entries_of(page)} == {
        ("It's", "", ""),
        ("open", "", "verb"),
        ("%(n)s day", "%(n)s days", ""),
    }


ENTRIES = [
    Entry(text="There is no such conversation."),
    Entry(text="One {thing}.", plural="{n} {thing}s.", place="a.py"),
]
GERMAN = {
    'msgid "There is no such conversation."\nmsgstr ""': (
        'msgid "There is no such conversation."\nmsgstr "Diese Unterhaltung gibt es nicht."'
    ),
    'msgstr[0] ""\nmsgstr[1] ""': 'msgstr[0] "Ein {thing}."\nmsgstr[1] "{n} {thing}."',
}


def german(folder: Path) -> Path:
    """A catalogue as a translator leaves it, brought up to date."""
    path = files.add("de", folder)
    write(folder, ENTRIES)
    text = path.read_text()
    for old, new in GERMAN.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    write(folder, ENTRIES)
    return path


def write(folder: Path, entries: list[Entry]) -> None:
    for path, content in files.wanted_files(entries, folder).items():
        path.write_bytes(content)


def test_translations_survive_an_update(tmp_path: Path) -> None:
    path = german(tmp_path)
    before = path.read_bytes()
    assert b"Diese Unterhaltung" in before
    write(tmp_path, ENTRIES)
    assert path.read_bytes() == before
    write(tmp_path, [*ENTRIES, Entry(text="New.")])
    assert b'msgid "New."\nmsgstr ""' in path.read_bytes()
    assert b"Diese Unterhaltung" in path.read_bytes()
    write(tmp_path, ENTRIES[1:])
    assert b"Diese Unterhaltung" not in path.read_bytes()
    assert files.languages(tmp_path) == ["de"]


def test_a_lost_place_is_a_problem(tmp_path: Path) -> None:
    path = german(tmp_path)
    assert files.problems(tmp_path) == []
    path.write_text(path.read_text().replace('msgstr[1] "{n} {thing}."', 'msgstr[1] "{n} {other}."'))
    [problem] = files.problems(tmp_path)
    assert "{other}" in problem


@pytest.fixture
def _languages_again() -> Iterator[None]:
    """Django forgets all catalogues when a test changes where they are."""
    yield
    install_made_up_languages()


@pytest.mark.usefixtures("_languages_again")
def test_a_translation_is_what_people_get(tmp_path: Path, settings: Settings) -> None:
    path = files.add("de", tmp_path)
    text = Phrase("There is no message {id!r} in this conversation.", id="msg_1")
    entries = [Entry(text=text.text)]
    write(tmp_path, entries)
    path.write_text(path.read_text().replace('msgstr ""\n', 'msgstr "Hier gibt es keine Nachricht {id!r}."\n'))
    write(tmp_path, entries)
    settings.LOCALE_PATHS, settings.LANGUAGES = [tmp_path], [("en", "English"), ("de", "Deutsch")]
    error = InputInvalid(text)
    with override("de"):
        assert "Hier gibt es keine Nachricht 'msg_1'." in problem_of(error).content.decode()
    with override("en"):
        assert "There is no message 'msg_1'" in problem_of(error).content.decode()
    assert str(error) == error.message == "There is no message 'msg_1' in this conversation."  # in logs and rows


@pytest.mark.parametrize(
    ("headers", "language"),
    [
        ({b"accept-language": b"en-XA"}, "en-xa"),
        ({b"accept-language": b"fr, ar-xb;q=0.5"}, "ar-xb"),
        ({b"accept-language": b"fr"}, "en"),
        ({}, "en"),
    ],
)
def test_a_connection_asks_for_a_language(headers: dict[bytes, bytes], language: str) -> None:
    assert language_of(headers.items()) == language


def test_the_cookie_wins(settings: Settings) -> None:
    cookie = f"{settings.LANGUAGE_COOKIE_NAME}=ar-xb".encode()
    assert language_of([(b"cookie", cookie), (b"accept-language", b"en-xa")]) == "ar-xb"


def test_made_up_languages_change_every_sentence() -> None:
    with override("en-xa"):
        assert gettext("Sign in") == "[Šíĝñ íñ ~~~]"
        assert pgettext("verb", "Open") == "[Óþéñ ~~]"
        assert ngettext("%(n)s day", "%(n)s days", 2) % {"n": 2} == "[2 ďáýš ~~]".replace("ď", "đ")
        assert translate(Phrase("At most {limit:,} files.", limit=1000)).startswith("[Áţ".replace("ţ", "ŧ"))
        assert "1,000" in translate(Phrase("At most {limit:,} files.", limit=1000))
        assert not translation.get_language_bidi()
    with override("ar-xb"):
        assert gettext("Sign in").startswith("\u202eSign\u202c \u202ein\u202c")
        assert translation.get_language_bidi()


@pytest.mark.parametrize(
    "kept", ["<code>make run</code>", "%(name)s", "%(seconds).1f", "{name!r:.80}", "&amp;", "https://a.example/b", "%%"]
)
def test_what_is_no_text_stays(kept: str) -> None:
    for language in ("en-xa", "ar-xb"):
        changed = made_up(f"See {kept} there", language)
        assert kept in changed
        assert len(changed) > 1.3 * len(f"See {kept} there".replace(kept, "")) + len(kept)
    assert made_up("  ", "en-xa") == "  "


def test_a_request_and_a_connection_agree() -> None:
    """Language is a matter of headers: a request that Django made and a connection agree."""
    request = RequestFactory().get("/", headers={"Accept-Language": "en-xa"})
    assert translation.get_language_from_request(request) == language_of([(b"accept-language", b"en-xa")])
