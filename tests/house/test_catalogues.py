"""Text for people comes from catalogues: none stands beside them, and the files are up to date."""

from django.conf import settings
from django.utils.translation import to_language

from thinkproject.catalogues import files
from thinkproject.catalogues.entries import ROOT, relative


def test_no_text_for_people_stands_outside_of_the_catalogues() -> None:
    loose = files.all_loose()
    hints = "; in templates use translate, in Python gettext or Phrase (docs/howto/translate.md)"
    assert [f"{each}{hints}" for each in loose] == []


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
