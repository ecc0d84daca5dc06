"""Values that show others: what is named once."""

from dataclasses import dataclass

import pytest

from thinkproject.kernel.errors import NotFound
from thinkproject.kernel.filling import filled
from thinkproject.kernel.read_only_admin import choice_filter, column


@dataclass(frozen=True)
class _Shown:
    kind: str
    name: str
    count: int = 0


@dataclass
class _Row:
    name: str = "a"
    kind: str = "stored"
    count: int = 3


def test_a_value_takes_what_it_is_not_given() -> None:
    assert filled(_Shown, _Row(), kind="given") == _Shown(kind="given", name="a", count=3)


def test_a_field_that_the_source_lacks_is_an_error_whatever_its_default() -> None:
    with pytest.raises(AttributeError, match="count"):
        filled(_Shown, object(), kind="x", name="y")


def test_the_code_of_an_error_is_its_name_unless_it_names_another() -> None:
    class LetterNotFound(NotFound):
        """There is no such letter."""

    class Lost(LetterNotFound):
        """It was lost."""

        code = "letter_lost"

    assert (LetterNotFound.code, Lost.code, NotFound.code) == ("letter_not_found", "letter_lost", "not_found")


def test_a_column_shows_a_row_under_its_words() -> None:
    shown = column("Size", lambda row: row.count * 2, ordering="count")
    assert shown(None, _Row()) == 6
    assert (shown.short_description, shown.admin_order_field) == ("Size", "count")


def test_a_filter_offers_its_words_under_its_title() -> None:
    made = choice_filter("State", "state", {})
    assert (made.title, made.parameter_name) == ("State", "state")
