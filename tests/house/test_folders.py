"""A test lies in the folder of the product that it is about."""

from pathlib import PurePosixPath

import pytest

from tests.house.repository import ROOT, committed

ELSEWHERE = {
    "tests/db/chat/fuzz": "All of the chat at once, by programs that do what people do.",
    "tests/unit/ag_ui": "The events of another protocol, read by its own library.",
    "tests/unit/page": "The page's scripts, which Deno runs.",
    "tests/unit/suite": "The suite itself.",
}
"""Folders that are about no folder of the product, with the reason."""


def misplaced(folders: set[str], product: set[str]) -> list[str]:
    """Folders of unit tests and of tests with a database which no folder of the product has the name of."""
    found = {folder: PurePosixPath(*PurePosixPath(folder).parts[2:]) for folder in folders}
    return sorted(folder for folder, inner in found.items() if str(inner) not in product)


def folders_of_tests() -> set[str]:
    """Folders of `tests/unit` and `tests/db` that hold tests."""
    paths = [PurePosixPath(path) for path in committed() if path.startswith(("tests/unit/", "tests/db/"))]
    return {str(path.parent) for path in paths if path.match("test_*.py")}


def test_a_test_folder_is_a_product_folder() -> None:
    product = {str(parent) for path in committed() for parent in PurePosixPath(path).parents if path.endswith(".py")}
    folders = folders_of_tests()
    assert len(folders) > 40
    assert misplaced(folders, product) == sorted(ELSEWHERE)
    assert all((ROOT / folder).is_dir() for folder in ELSEWHERE)


@pytest.mark.parametrize(
    ("folder", "is_misplaced"),
    [("tests/db/chat/turns", False), ("tests/unit/chat/turns", False), ("tests/db/chat/talks", True)],
)
def test_a_folder_without_its_product_is_found(folder: str, is_misplaced: bool) -> None:
    assert misplaced({folder}, {"chat/turns", "chat"}) == [folder] * is_misplaced
