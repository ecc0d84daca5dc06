"""The step rule."""

import pytest

from fibers.core.journal import Journal, Recorded, normalised
from fibers.errors import StepMismatch


def test_a_recorded_none_is_found() -> None:
    journal = Journal([("a", None)])
    assert journal.find("a") == Recorded(None)
    assert journal.find("b") is None


def test_a_key_with_a_record_is_refused() -> None:
    journal = Journal()
    journal.check_new("a")
    journal.add("a", 1)
    with pytest.raises(StepMismatch, match="'a'"):
        journal.check_new("a")
    assert len(journal) == 1


def test_a_value_is_what_will_be_read_back() -> None:
    assert normalised({"pair": (1, 2), 3: "x"}) == {"pair": [1, 2], "3": "x"}


@pytest.mark.parametrize("value", [{1, 2}, float("nan"), object()])
def test_what_json_cannot_carry_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        normalised(value)
