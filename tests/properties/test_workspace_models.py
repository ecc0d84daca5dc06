"""Random operations end alike on every store."""

import tempfile
from pathlib import Path
from typing import Any

from django.core.files.storage import InMemoryStorage
from hypothesis import given, settings

from tests.budget import examples
from tests.workspace_model import SEQUENCES, agrees
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.storage import StorageWorkspace


@given(SEQUENCES)
@settings(max_examples=examples(200))
async def test_a_directory_agrees_with_the_model(calls: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await agrees(DirectoryWorkspace(Path(folder, "root")), calls)


@given(SEQUENCES)
@settings(max_examples=examples(200))
async def test_a_storage_agrees_with_the_model(calls: list[Any]) -> None:
    await agrees(StorageWorkspace(InMemoryStorage(), "files"), calls)
