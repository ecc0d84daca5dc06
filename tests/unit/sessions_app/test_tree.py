"""Paths, branches and the newest leaf on pairs."""

from sessions_app.core.messages.tree import branches, newest_leaf, path_to

# u1 ─ a1 ─ u2 ─ a2
#    └ b1      └ b2
PAIRS = [("u1", None), ("a1", "u1"), ("b1", "u1"), ("u2", "a1"), ("a2", "u2"), ("b2", "u2")]
PARENTS = dict(PAIRS)


def test_a_path_is_root_first_and_holds_one_branch() -> None:
    assert path_to("b2", PARENTS) == ["u1", "a1", "u2", "b2"]
    assert path_to("b1", PARENTS) == ["u1", "b1"]


def test_an_unknown_leaf_has_no_path() -> None:
    assert path_to("nobody", PARENTS) == []


def test_a_missing_parent_truncates_the_walk() -> None:
    assert path_to("b", {"b": "a", "a": "gone"}) == ["a", "b"]


def test_a_cycle_ends_the_walk() -> None:
    assert path_to("a", {"a": "b", "b": "a"}) == ["b", "a"]


def test_branches_are_oldest_first() -> None:
    assert branches(PAIRS, "u1") == ["a1", "b1"]
    assert branches(PAIRS, None) == ["u1"]
    assert branches(PAIRS, "b1") == []


def test_the_newest_leaf_is_the_last_without_children() -> None:
    assert newest_leaf(PAIRS) == "b2"
    assert newest_leaf(PAIRS[:5]) == "a2"
    assert newest_leaf(PAIRS, below="b1") == "b1"
    assert newest_leaf(PAIRS, below="a1") == "b2"
    assert newest_leaf([]) is None
