"""Rules about files as the workspace holds them up for code: whatever the way to a file, links and trees included."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tools_app.code_tool.state.functions import StateFunctions
from tools_app.core.files.workspace import Link, Put, Remove, Workspace
from tools_app.core.permissions.file_rules import FileRules, under_file_rules
from tools_app.core.permissions.rules import Permission, RuleSet
from tools_app.errors import FileFailed
from tools_app.processes.copying import copied
from tools_app.workspace.archive import export_zip
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.memory import MemoryWorkspace
from tools_app.workspace.write_back import write_back

RULES = RuleSet(
    own=(
        Permission.deny("write", "/sealed/**"),
        Permission.deny("delete", "sealed/*"),
        Permission.deny("read", "/hidden/**"),
        Permission.ask("edit", "/asked/*"),
    )
)
FILES = {
    "/.env": b"PASSWORD=1",
    "/app/id_rsa": b"key",
    "/sealed/a": b"sealed",
    "/sealed/deep/b": b"sealed",
    "/hidden/c": b"hidden",
    "/asked/d": b"asked",
    "/open/e": b"open",
}


def rules(*, is_approved: bool = False) -> FileRules:
    return FileRules(rules=RULES, now=datetime.now(UTC), is_approved=is_approved)


@pytest.fixture(params=["memory", "directory"])
async def ruled_files(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    """A workspace with files of each kind, and links to them."""
    made = MemoryWorkspace() if request.param == "memory" else DirectoryWorkspace(tmp_path / "root")
    for path, data in FILES.items():
        await made.write_file(path, data)
    await made.symlink("/.env", "/innocent")
    await made.symlink("/sealed", "/way")
    return made


async def state_of(files: Workspace) -> dict[str, Any]:
    found = {}
    for entry in await files.glob("/**/*"):
        found[entry.path] = await files.read_bytes(entry.path) if entry.kind == "file" else entry.target
    return found


def state(name: str, **given: Any) -> Callable[[Workspace], Awaitable[Any]]:
    return lambda files: StateFunctions(files).run(name, given)


async def zipped(files: Workspace) -> None:
    async for _ in export_zip(files):
        pass


ASKING: dict[str, Callable[[Workspace], Awaitable[Any]]] = {
    "a secret is read": state("readFile", path="/.env"),
    "its bytes": state("readFileBytes", path="/app/../.env"),
    "through a link": state("readFile", path="/innocent"),
    "under the mount": state("readFile", path="/workspace/.env"),
    "its hash": state("hash", path="/.env"),
    "compared": state("diff", path="/open/e", other="/innocent"),
    "copied": state("cp", source="/.env", target="/copy"),
    "copied with its directory": state("cp", source="/app", target="/copy", recursive=True),
    "moved": state("mv", source="/.env", target="/moved"),
    "moved with its directory": state("mv", source="/app", target="/moved"),
    "compressed": state("compress", path="/.env", target="/open/x.gz"),
    "archived with all": state("archive", path="/", target="/open/x.zip"),
    "exported": zipped,
    "written": state("writeFile", path="/.env", content="x"),
    "written through its link": lambda files: files.write_file("/innocent", "x"),
    "added to": state("appendFile", path="/.env", content="x"),
    "removed": state("rm", path="/.env"),
    "removed with all": state("rm", path="/app", recursive=True),
    "made under such a name": state("mv", source="/open/e", target="/open/.env"),
    "a file that asks": state("writeFile", path="/asked/d", content="x"),
    "a new one there": state(
        "applyEdits", edits=[{"path": "/open/e", "content": "x"}, {"path": "/asked/new", "content": "x"}]
    ),
    "replaced there": state("replaceInFiles", pattern="/**/*", search="asked", replacement="x"),
    "a link in its place": lambda files: files.apply([Link(path="/asked/d", target="/open/e")]),
}
DENIED: dict[str, Callable[[Workspace], Awaitable[Any]]] = {
    "written": state("writeFile", path="/sealed/a", content="x"),
    "written deep": state("writeJson", path="/sealed/deep/new", value=1),
    "written through a link": state("writeFile", path="/way/a", content="x"),
    "copied into": state("cp", source="/open", target="/sealed/open", recursive=True),
    "moved into": state("mv", source="/open/e", target="/way/e"),
    "moved away": state("mv", source="/sealed", target="/elsewhere"),
    "removed": state("rm", path="/sealed", recursive=True),
    "removed among others": lambda files: files.apply([Put(path="/open/e", content=b"x"), Remove(path="/sealed/a")]),
    "hidden, read": state("readFile", path="/hidden/c"),
    "hidden, copied": state("cp", source="/hidden", target="/seen", recursive=True),
    "hidden, moved": state("mv", source="/hidden/c", target="/seen"),
    "hidden, streamed": lambda files: anext(aiter(files.read_stream("/hidden/c"))),
}


@pytest.mark.parametrize("deed", ASKING)
async def test_what_asks_is_refused_to_code_until_a_person_has_approved_the_call(
    ruled_files: Workspace, deed: str
) -> None:
    before = await state_of(ruled_files)
    with under_file_rules(rules()), pytest.raises(FileFailed) as caught:
        await ASKING[deed](ruled_files)
    assert caught.value.errno == "EACCES"
    assert caught.value.data["rule"]["action"] == "ask"
    assert await state_of(ruled_files) == before
    with under_file_rules(rules(is_approved=True)):
        if not any(word in deed for word in ("archived", "exported", "replaced")):  # these meet what is denied
            await ASKING[deed](ruled_files)


@pytest.mark.parametrize("deed", DENIED)
async def test_what_a_rule_denies_no_approval_opens(ruled_files: Workspace, deed: str) -> None:
    before = await state_of(ruled_files)
    for is_approved in (False, True):
        with under_file_rules(rules(is_approved=is_approved)), pytest.raises(FileFailed, match="refused by the rule"):
            await DENIED[deed](ruled_files)
    assert await state_of(ruled_files) == before
    await DENIED[deed](ruled_files)  # without code there are no such rules


async def test_what_reads_many_files_leaves_out_what_it_may_not_read(ruled_files: Workspace, tmp_path: Path) -> None:
    """Searching, a copy for a command, and what a command brings back: the rest is done, and what was left is named."""
    with under_file_rules(rules()):
        found = await state("searchFiles", pattern="/**/*", query="[a-zA-Z]", regex=True)(ruled_files)
        (tmp_path / "copy").mkdir()
        copy = await copied(ruled_files, tmp_path / "copy", most=1_000_000)
        (tmp_path / "copy" / "sealed" / "a").write_bytes(b"x")
        (tmp_path / "copy" / ".env").write_bytes(b"x")
        (tmp_path / "copy" / "new").write_bytes(b"x")
        written = await write_back(ruled_files, copy.operations(most=1_000_000))
    assert {each["path"] for each in found} == {"/sealed/a", "/sealed/deep/b", "/asked/d", "/open/e"}
    assert copy.skipped == {"/.env", "/app/id_rsa", "/hidden/c"}
    assert [change.path for change in written.changes] == ["/new"]
    assert any("/sealed/a" in line and "refused by the rule" in line for line in written.errors)
    assert any("/.env" in line for line in copy.errors)
    assert (await ruled_files.read_bytes("/sealed/a"), await ruled_files.read_bytes("/.env")) == (
        b"sealed",
        b"PASSWORD=1",
    )
