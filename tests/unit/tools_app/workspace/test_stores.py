"""The contract of workspaces, held by the stores that need no database."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.storage import FileSystemStorage, InMemoryStorage

from tests.workspace_contract import DirectoriesContract, FilesContract
from tests.workspace_links_contract import ChangesContract, LinksContract, SearchContract, reported
from tools_app.core.files.workspace import Workspace
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.memory import MemoryWorkspace
from tools_app.workspace.stores.storage import StorageWorkspace

__all__ = ["reported"]


@pytest.fixture(params=["memory", "directory", "storage in memory", "storage on disk"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    makers: dict[str, Callable[[], Workspace]] = {
        "memory": MemoryWorkspace,
        "directory": lambda: DirectoryWorkspace(tmp_path / "root"),
        "storage in memory": lambda: StorageWorkspace(InMemoryStorage(), "files"),
        "storage on disk": lambda: StorageWorkspace(FileSystemStorage(tmp_path), "some/files"),
    }
    return makers[request.param]()


class TestFiles(FilesContract): ...


class TestDirectories(DirectoriesContract): ...


class TestLinks(LinksContract): ...


class TestSearch(SearchContract): ...


class TestChanges(ChangesContract): ...
