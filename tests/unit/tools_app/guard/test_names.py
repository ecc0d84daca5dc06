"""Names of strangers' files are strangers' text, whichever way a call gets to see them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tools_app.core.files.calling import call
from tests.unit.tools_app.guard.noting import Notes
from tests.unit.tools_app.shell.conftest import Shell, bash, shell_sandbox
from tests.workspace_names_contract import TOLD, NamesContract
from tools_app.code_tool.state.functions import StateFunctions
from tools_app.core.files.workspace import MakeDirectory, Put, Workspace
from tools_app.core.guard.reach import reaching, written_as
from tools_app.core.origins import Origin
from tools_app.file_tools.workspace_tools import create_workspace_tools
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.memory import MemoryWorkspace

__all__ = ["bash", "shell_sandbox"]  # fixtures


class TestNames(NamesContract): ...


@pytest.fixture
async def noted(workspace: MemoryWorkspace) -> AsyncIterator[Notes]:
    """A directory of own files, one of a stranger's, and what is noted from then on."""
    await workspace.apply([Put(path="/own/a.txt", content=b"needle"), Put(path="/b.txt", content=b"needle")])
    with written_as(Origin.FILE):
        await workspace.apply([Put(path=f"/in/{TOLD}.txt", content=b""), MakeDirectory(path=f"/in/{TOLD}!")])
    notes = Notes()
    with reaching(notes):
        yield notes


async def test_a_store_without_marks_counts_unless_it_is_trusted(tmp_path: Path) -> None:
    await DirectoryWorkspace(tmp_path).write_file(f"/{TOLD}.txt", "")
    notes = Notes()
    with reaching(notes):
        await DirectoryWorkspace(tmp_path, is_trusted=True).read_dir("/")
        await DirectoryWorkspace(tmp_path, is_trusted=True).glob("*")
        assert notes.found == []
        await DirectoryWorkspace(tmp_path).read_dir("/")
        await DirectoryWorkspace(tmp_path).glob("*")
    assert notes.found == [(Origin.FILE, f"/{TOLD}.txt")] * 2


@pytest.mark.parametrize(
    ("tool", "given"), [("list", {"path": "/in"}), ("find", {"pattern": "**/*"}), ("find", {"pattern": "/in/*"})]
)
async def test_tools_that_show_the_names(workspace: Workspace, noted: Notes, tool: str, given: Any) -> None:
    await call(_tools(workspace)[tool], **given)
    assert (Origin.FILE, f"/in/{TOLD}.txt") in noted.found


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("list", {"path": "/own"}),
        ("find", {"pattern": "/own/**"}),
        ("grep", {"query": "needle"}),
        ("write", {"path": "/in/new.txt", "content": "x"}),
        ("delete", {"path": "/in", "recursive": True}),
    ],
)
async def test_tools_that_do_not(workspace: Workspace, noted: Notes, tool: str, given: Any) -> None:
    await call(_tools(workspace)[tool], **given)
    assert noted.found == []


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("glob", {"pattern": "**"}),
        ("find", {"pattern": "/in/*"}),
        ("readdir", {"path": "/in"}),
        ("walkTree", {"path": "/"}),
        ("applyEdits", {"edits": [{"path": "/in", "delete": True}]}),
    ],
)
async def test_functions_of_code_that_show_the_names(workspace: Workspace, noted: Notes, name: str, given: Any) -> None:
    await StateFunctions(workspace).run(f"state.{name}", given)
    assert (Origin.FILE, f"/in/{TOLD}.txt") in noted.found


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("summarizeTree", {"path": "/"}),
        ("searchFiles", {"query": "needle", "pattern": "/{own/a,b,in/*}.txt"}),
        ("exists", {"path": "/in"}),
        ("rm", {"path": "/in", "recursive": True}),
    ],
)
async def test_functions_of_code_that_do_not(workspace: Workspace, noted: Notes, name: str, given: Any) -> None:
    await StateFunctions(workspace).run(f"state.{name}", given)
    assert noted.found == []


@pytest.mark.parametrize(
    "script",
    [
        "ls /in",
        "ls -R",
        "echo in/*",
        "find . -type f",
        "cd in; for f in *; do echo $f; done",
        "tree",
        "rm -r in",
        "cp -r in copy",
        "mv in away",
        "du -a",
    ],
)
async def test_scripts_that_look_at_the_names(noted: Notes, bash: Shell, script: str) -> None:
    assert (await bash(script))["exitCode"] == 0
    assert (Origin.FILE, f"/in/{TOLD}.txt") in noted.found


async def test_a_script_that_looks_elsewhere_has_not_seen_them(noted: Notes, bash: Shell) -> None:
    done = await bash("ls own; cat own/*; echo x > in/mine.txt; sed -i s/n/m/ b.txt; test -d in; mkdir -p in/d")
    assert (done["stdout"], done["exitCode"]) == ("a.txt\nneedle", 0)
    assert noted.found == []


def _tools(workspace: Workspace) -> dict[str, Any]:
    return {tool.name: tool for tool in create_workspace_tools(workspace)}
