"""Ids are prefixed and ordered."""

from thinkproject.kernel.ids import new_id


def test_ids_are_strictly_increasing_in_one_process() -> None:
    ids = [new_id("msg") for _ in range(2000)]
    assert ids == sorted(set(ids))


def test_ids_carry_their_prefix() -> None:
    assert new_id("trn").startswith("trn_")
