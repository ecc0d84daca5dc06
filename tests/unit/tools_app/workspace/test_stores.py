"""The contract of workspaces, held by the stores that need no database."""

from pathlib import Path

import pytest

from tests.workspace_contract import (
    ChangesContract,
    DirectoriesContract,
    FilesContract,
    LinksContract,
    SearchContract,
    reported,
)
from tools_app.core.files.workspace import Workspace
from tools_app.workspace.stores.memory import MemoryWorkspace

__all__ = ["reported"]


@pytest.fixture(params=["memory"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    return MemoryWorkspace()


class TestFiles(FilesContract): ...


class TestDirectories(DirectoriesContract): ...


class TestLinks(LinksContract): ...


class TestSearch(SearchContract): ...


class TestChanges(ChangesContract): ...
