"""A run fetches what the tests need whose turn it is, and no more."""

import pytest

from tests.suite import downloads, rotation

ALL = {each.name: each for each in downloads.downloads()}


def needed(*paths: str, tenth: str | None = None) -> set[str]:
    return {name for name, each in ALL.items() if downloads.is_needed(each, paths, tenth)}


def test_what_needs_something_exists() -> None:
    for each in ALL.values():
        modules = list(downloads.modules_of(each))
        assert modules
        assert all((downloads.ROOT / module).is_file() for module in modules), each.name


def test_ten_plain_runs_need_all_of_it_and_one_does_not() -> None:
    turns = [needed(tenth=str(tenth)) for tenth in range(rotation.TENTHS)]
    assert set().union(*turns) == needed() == needed(tenth=rotation.WHOLE) == set(ALL)
    assert max(map(len, turns)) < len(ALL)
    large = "published servers of MCP (PyPI)"
    assert [large in turn for turn in turns].count(True) == 1
    assert all("clients sdk7" in turn for turn in turns), "its tests are spread over all turns"


@pytest.mark.parametrize("path", ["tests/browser", "tests/browser/test_examples.py::test_it", "tests/browser/"])
def test_paths_say_what_they_need(path: str) -> None:
    found = needed(path)
    assert {"example react", "example usechat"} <= found
    assert "clients sdk7" not in found
    assert ("a client of the State Protocol" in found) == (not path.endswith("test_it"))
