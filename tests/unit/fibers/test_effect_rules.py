"""What follows from what was there and what is, and which databases can carry it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fibers.core.capabilities import capabilities_of
from fibers.core.effects import batches, compare
from tests.budget import examples

ROWS = st.dictionaries(st.text(max_size=3), st.none() | st.integers(0, 2), max_size=8)


@settings(max_examples=examples(100), deadline=None)
@given(present=ROWS, known=ROWS)
def test_every_row_is_in_one_kind_of_event_or_has_none(present: dict[str, int], known: dict[str, int]) -> None:
    diff = compare(present, known)
    assert set(diff.entered) == present.keys() - known.keys()
    assert set(diff.left) == known.keys() - present.keys()
    assert set(diff.updated) == {key for key in present.keys() & known.keys() if present[key] != known[key]}
    assert len(diff.keys) == len(set(diff.keys))
    assert compare(present, present).keys == ()


@given(events=st.lists(st.integers()), size=st.integers(0, 5))
def test_batches_have_every_event_once_in_order(events: list[int], size: int) -> None:
    cut = batches(events, size)
    assert [event for batch in cut for event in batch] == events
    assert all(1 <= len(batch) <= max(size, 1) for batch in cut)


@pytest.mark.parametrize(
    ("vendor", "name", "lack"),
    [
        ("postgresql", "think", ""),
        ("sqlite", "/var/think/db.sqlite3", ""),
        ("sqlite", ":memory:", "memory of one process"),
        ("sqlite", "file:memorydb_default?mode=memory&cache=shared", "memory of one process"),
        ("sqlite", "", "memory of one process"),
    ],
)
def test_a_database_that_confirms_nothing_to_others_lacks_what_effects_need(vendor: str, name: str, lack: str) -> None:
    found = capabilities_of(vendor, name, has_transactions=True).lack
    assert lack in found
    assert bool(lack) is bool(found)


def test_one_without_transactions_lacks_it_too() -> None:
    assert "transactions" in capabilities_of("mysql", "shop", has_transactions=False).lack
