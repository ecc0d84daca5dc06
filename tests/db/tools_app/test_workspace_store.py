"""The contract of workspaces, held by the database store."""

from typing import Any

import pytest

from tests.workspace_contract import DirectoriesContract, FilesContract
from tests.workspace_links_contract import ChangesContract, LinksContract, SearchContract, reported
from tests.workspace_names_contract import NamesContract
from tools_app.core.files.workspace import Workspace
from tools_app.workspace.services import open_for_scope

__all__ = ["reported"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workspace(transactional_db: None) -> Workspace:
    return open_for_scope("ins_1", None)


@pytest.fixture
def large_files(settings: Any) -> None:
    """Have storage keep files from two bytes."""
    settings.THINK_WORKSPACE_INLINE_BYTES = 2


class TestFiles(FilesContract): ...


class TestDirectories(DirectoriesContract): ...


class TestLinks(LinksContract): ...


class TestSearch(SearchContract): ...


class TestChanges(ChangesContract): ...


class TestNames(NamesContract): ...


@pytest.mark.usefixtures("large_files")
class TestLargeFiles(FilesContract): ...


@pytest.mark.usefixtures("large_files")
class TestDirectoriesOfLargeFiles(DirectoriesContract): ...
