"""The contract of workspaces, held by the database store."""

from typing import Any

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
from tools_app.workspace.services import open_for_scope

__all__ = ["reported"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=["rows", "objects"])
def workspace(request: pytest.FixtureRequest, transactional_db: None, alice: Any, settings: Any) -> Workspace:
    if request.param == "objects":
        settings.THINK_WORKSPACE_INLINE_BYTES = 2
    return open_for_scope("ins_1", alice.pk)


class TestFiles(FilesContract): ...


class TestDirectories(DirectoriesContract): ...


class TestLinks(LinksContract): ...


class TestSearch(SearchContract): ...


class TestChanges(ChangesContract): ...
