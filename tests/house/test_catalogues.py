"""Text for people comes from catalogues: none stands beside them, and the files are up to date."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from django.utils.translation import gettext_lazy, to_language

from fibers.registry import durables
from tests.house.admin_labels import loose_labels, sentences_of_django
from thinkproject.catalogues import exchange, files, page_files
from thinkproject.catalogues.entries import ROOT, relative
from thinkproject.kernel.read_only_admin import ReadOnlyAdmin


def test_no_text_for_people_stands_outside_of_the_catalogues() -> None:
    loose = files.all_loose()
    hints = "; in templates use translate, in Python gettext or Phrase (docs/howto/translate.md)"
    assert [f"{each}{hints}" for each in loose] == []


def test_every_label_of_the_admin_is_from_a_catalogue() -> None:
    ours = {text for entry in files.all_entries() for text in (entry.text, entry.plural)}
    # What a developer names so is no word of ours, and other tests have declared some.
    theirs = {entry.name for entry in durables() if not entry.function.__module__.startswith(("chat.", "fibers."))}
    loose = loose_labels(admin.site, ours | sentences_of_django(), named=theirs)
    assert loose == [], "give fields a verbose_name, columns an admin.display, in gettext_lazy"


class _LooseFilter(admin.SimpleListFilter):
    title = "the filter"
    parameter_name = "one"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("1", "The choice")]


class _LooseAdmin(ReadOnlyAdmin):
    list_display = ("name", "how_many", "named")
    list_filter = (_LooseFilter,)
    fieldsets = (("The fieldset", {"fields": ("name",), "description": "The description"}),)
    search_help_text = "The help"
    actions = ("act",)

    def how_many(self, row: Group) -> str:
        return str(row)

    @admin.display(description=gettext_lazy("In no catalogue"))
    def named(self, row: Group) -> str:
        return str(row)

    def act(self, request: HttpRequest, queryset: Any) -> None:
        raise NotImplementedError


def test_labels_that_no_catalogue_has_are_found() -> None:
    site = admin.AdminSite(name="loose")
    site.register(Group, _LooseAdmin)
    loose = loose_labels(site, sentences_of_django() | {"Site administration"})
    ours = [line.removeprefix("_LooseAdmin.") for line in loose if line.startswith("_LooseAdmin.")]
    assert ours == [
        "actions act: Act",
        "fieldsets The fieldset: The description",
        "fieldsets: The fieldset",
        "list_display how_many: How many",
        "list_display named: In no catalogue",
        "list_filter _LooseFilter: the filter",
        "list_filter _LooseFilter=1: The choice",
        "search_help_text: The help",
    ]


def test_the_catalogues_are_up_to_date() -> None:
    wanted = files.wanted_files(files.all_entries(), files.FOLDER)
    stale = [relative(path) for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
    assert stale == [], "run `make fix`"
    assert files.problems(files.FOLDER) == []
    compiled = set(files.FOLDER.rglob("*.mo"))
    assert compiled == {path for path in wanted if path.suffix == ".mo"}


def test_the_catalogues_of_the_page_are_up_to_date() -> None:
    wanted = page_files.wanted_files(page_files.FOLDER)
    stale = [relative(path) for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
    assert stale + [relative(path) for path in page_files.surplus_files(page_files.FOLDER)] == [], "run `make fix`"
    assert page_files.problems(page_files.FOLDER) == []


def test_every_text_is_translated() -> None:
    lacking = {name: exchange.missing(name, exchange.Places()) for name in page_files.languages(page_files.FOLDER)}
    hint = "`python -m thinkproject.catalogues --missing de` prints the list (docs/howto/translate.md)"
    assert {name: lines for name, lines in lacking.items() if lines} == {}, hint


def test_every_language_with_a_catalogue_is_offered() -> None:
    offered = {code for code, _ in settings.LANGUAGES} - {"en", "en-xa", "ar-xb"}
    assert offered == {to_language(name) for name in files.languages(files.FOLDER)}
    assert offered == set(page_files.languages(page_files.FOLDER))


def test_the_wheel_has_the_catalogues() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"locale/*/LC_MESSAGES/*"' in project
