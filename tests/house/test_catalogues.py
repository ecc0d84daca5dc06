"""Text for people comes from catalogues: none stands beside them, and the files are up to date."""

from collections import Counter

from django.conf import settings
from django.utils.translation import to_language

from thinkproject.catalogues import files
from thinkproject.catalogues.entries import ROOT, relative

NOT_YET = {
    "chat/admin/",
    "chat/apps.py",
    "chat/templates/admin/",
    "fibers/admin.py",
    "fibers/apps.py",
    "sessions_app/admin/",
    "sessions_app/apps.py",
    "sessions_app/models.py",
    "sessions_app/templates/admin/",
    "templates/chat/page.html",
    "thinkproject/apps.py",
    "tools_app/apps.py",
}
"""Files and folders that are English only. One that has become clean has to leave the list."""


def test_no_text_for_people_stands_outside_of_the_catalogues() -> None:
    loose = files.all_loose()
    hints = "; in templates use translate, in Python gettext or Phrase (docs/howto/translate.md)"
    found = [str(each) + hints for each in loose if not any(each.place.startswith(name) for name in NOT_YET)]
    assert found == []
    counts = Counter(name for name in NOT_YET for each in loose if each.place.startswith(name))
    assert {name for name in NOT_YET if not counts[name]} == set(), "clean now: take them off the list"


def test_the_catalogues_are_up_to_date() -> None:
    wanted = files.wanted_files(files.all_entries(), files.FOLDER)
    stale = [relative(path) for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
    assert stale == [], "run `make fix`"
    assert files.problems(files.FOLDER) == []
    compiled = set(files.FOLDER.rglob("*.mo"))
    assert compiled == {path for path in wanted if path.suffix == ".mo"}


def test_every_language_with_a_catalogue_is_offered() -> None:
    offered = {code for code, _ in settings.LANGUAGES} - {"en", "en-xa", "ar-xb"}
    assert offered == {to_language(name) for name in files.languages(files.FOLDER)}


def test_the_wheel_has_the_catalogues() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '"locale/*/LC_MESSAGES/*"' in project
