"""What a command finds of a workspace, and what of its changes is kept."""

import io
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from sessions_app.core.messages.truncation import FORMER
from tests.edited_files import NEW, OLD, edited_files
from tests.unit.tools_app.processes.conftest import Command
from tests.unit.tools_app.shell.conftest import CONTEXT, NOTHING, texts
from tools_app.calls.run import execute
from tools_app.core.files.workspace import MakeDirectory
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.errors import FileFailed
from tools_app.processes.child import RunningCommand
from tools_app.processes.copying import MAX_FILE_BYTES
from tools_app.processes.isolation import Isolation
from tools_app.processes.tool import create_process_tool, processes_report
from tools_app.workspace.stores.memory import MemoryWorkspace
from tools_app.workspace.unpacking import import_archive


async def test_the_tool_runs_real_programs_over_the_workspace(isolation: Isolation, workspace: MemoryWorkspace) -> None:
    await workspace.write_file("/notes/a.txt", "one\ntwo\n")
    made = create_process_tool(workspace)
    call = ToolCall(call_id="c", tool_name="run_command", input={"command": "wc -l < a.txt > n; cat n", "cwd": "notes"})
    [result] = [item async for item in execute(made, call, CONTEXT)]
    assert isinstance(result, ToolResult)
    assert result.output == {
        "stdout": "2\n",
        "stderr": "",
        "exitCode": 0,
        "changedFiles": {**NOTHING, "created": ["/notes/n"]},
    }
    assert "no network" in made.description


async def test_changes_are_named_by_what_happened_to_them(workspace: MemoryWorkspace, command: Command) -> None:
    await workspace.apply([MakeDirectory(path="/old/deep"), MakeDirectory(path="/kept")])
    for path in ("/a", "/b", "/same", "/old/deep/x", "/moved"):
        await workspace.write_file(path, f"{path}\n")
    await workspace.symlink("/kept", "/link")
    await workspace.write_file("/script", "#!/bin/sh\necho ran\n")
    result = await command(
        "echo more >> a; rm b; cp same t; mv t same; rm -r old; mv moved link/there; mkdir -p new/er;"
        "echo 1 > new/er/f; ln -s /workspace/a link2; ./script; exit 3"
    )
    assert result["changedFiles"] == {
        "created": ["/kept/there", "/link2", "/new/er/f"],
        "updated": ["/a"],
        "deleted": ["/b", "/moved", "/old/deep/x"],
        "directoriesCreated": ["/new", "/new/er"],
        "directoriesDeleted": ["/old", "/old/deep"],
    }
    assert (result["stdout"], result["exitCode"]) == ("ran\n", 3)
    assert await workspace.readlink("/link2") == "/a"
    assert (await texts(workspace))["/kept/there"] == "/moved\n"


async def test_a_change_that_hides_itself_is_found(workspace: MemoryWorkspace, command: Command) -> None:
    await workspace.write_file("/f", "old\n")
    result = await command("touch -r f /tmp/t; printf 'new\\n' > f; touch -r /tmp/t f")
    assert result["changedFiles"]["updated"] == ["/f"]


async def test_what_was_written_before_a_timeout_is_kept(workspace: MemoryWorkspace, command: Command) -> None:
    # A container on a busy machine begins after more than a second.
    result = await command("echo 1 > before; sleep 60; echo 2 > after", seconds=5.0)
    assert result["exitCode"] == 124
    assert result["stderr"] == "run_command: timed out after 5 seconds\n"
    assert await texts(workspace) == {"/before": "1\n"}


async def test_a_file_that_somebody_else_changed_is_left_alone_and_named(
    workspace: MemoryWorkspace, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workspace.write_file("/f", "old\n")
    plain = RunningCommand.finish

    async def slow(self: RunningCommand) -> object:
        ended = await plain(self)
        await workspace.write_file("/f", "theirs\n")
        return ended

    monkeypatch.setattr(RunningCommand, "finish", slow)
    result = await command("echo mine > f; echo mine > g")
    assert [line.split(":")[0] for line in result["errors"]] == ["/f"]
    assert await texts(workspace) == {"/f": "theirs\n", "/g": "mine\n"}


async def test_a_log_of_40_megabytes_is_read_and_changed(workspace: MemoryWorkspace, command: Command) -> None:
    line = "2026 a line of a log, in Zürich\n".encode("cp1252")
    log = line * (40_000_000 // len(line)) + b"ERROR\n"
    await workspace.write_file("/big.log", log)
    script = "wc -c < big.log; tail -n 1 big.log; grep -c ERROR big.log; sed -i s/ERROR/fine/ big.log"
    result = await command(script, disk_bytes=250_000_000)
    assert (result["stdout"], result["stderr"]) == (f"{len(log)}\nERROR\n1\n", "")
    assert await workspace.read_bytes("/big.log") == log.replace(b"ERROR", b"fine")


async def test_the_end_of_a_long_output_is_kept(command: Command) -> None:
    result = await command(
        "echo begin; yes 'line of a test ééé' | head -n 9000; echo FAILED test_total;"
        "head -c 300000 /dev/zero | tr '\\0' x >&2; echo exit 1 >&2; exit 1"
    )
    for stream, start, end in (("stdout", "begin\n", "é\nFAILED test_total\n"), ("stderr", "xxx", "xexit 1\n")):
        assert 63_800 < len(result[stream].encode()) <= 64_000
        assert result[stream].startswith(start)
        assert result[stream].endswith(end)
        assert len(FORMER.findall(result[stream])) == 1
        assert "\ufffd" not in result[stream]
    assert result["exitCode"] == 1


async def test_a_command_in_the_background_ends_with_the_call(command: Command) -> None:
    started = time.monotonic()
    result = await command("sleep 300 & echo done")
    assert (result["stdout"], result["exitCode"]) == ("done\n", 0)
    assert time.monotonic() - started < 20


async def test_files_that_are_too_large_are_left_alone(workspace: MemoryWorkspace, command: Command) -> None:
    large = b"x" * (MAX_FILE_BYTES + 1)
    await workspace.write_file("/d/large", large)
    await workspace.write_file("/d/small", "1\n")
    result = await command("ls d; echo mine > d/large; rm d/small", disk_bytes=60_000_000)
    assert result["stdout"] == "small\n"
    assert result["skippedFiles"] == ["/d/large"]
    assert result["changedFiles"] == {**NOTHING, "deleted": ["/d/small"]}
    assert await workspace.read_bytes("/d/large") == large


async def test_what_a_workspace_cannot_have_is_named_and_not_kept(workspace: MemoryWorkspace, command: Command) -> None:
    result = await command(
        "mkfifo pipe; touch $'a\\nb' $'\\xff' $'\\u202ex'; ln -s /etc/passwd p; ln -s /nowhere q; mkdir d; chmod 0 d;"
        "echo 1 > hidden; chmod 0 hidden"
    )
    assert result["changedFiles"]["created"] == ["/hidden", "/p", "/q"]
    assert len(result["errors"]) == 4
    assert await workspace.read_file("/hidden") == "1\n"
    assert await workspace.stat("/p") is None


async def test_a_working_directory_has_to_be_one(command: Command) -> None:
    with pytest.raises(FileFailed):
        await command("true", "/nowhere")


async def test_the_report_says_what_works_and_why_not(isolation: Isolation, settings: object) -> None:
    [report] = await processes_report()
    assert report.is_available
    assert isolation.name in report.reason
    settings.THINK_PROCESSES_ISOLATION = "off"  # type: ignore[attr-defined]
    [report] = await processes_report()
    assert not report.is_available
    assert "THINK_PROCESSES_ISOLATION" in report.reason


@pytest.mark.parametrize("seed", range(2))
async def test_a_command_changes_the_place_it_was_asked_to_and_no_other_byte(
    workspace: MemoryWorkspace, command: Command, seed: int
) -> None:
    files = edited_files(seed)
    for file in files:
        await workspace.write_file(f"/{file.name}", file.before)
    done = await command(f"mkdir copies && cp *.txt copies && LC_ALL=C sed -i 's/{OLD}/{NEW}/' *.txt")
    assert done["exitCode"] == 0, done
    for file in files:
        assert await workspace.read_bytes(f"/copies/{file.name}") == file.before, file.name
        assert await workspace.read_bytes(f"/{file.name}") == file.after, file.name


def packed_repository(folder: Path) -> bytes:
    """A tar.gz file of a repository with a commit, in which a program is tracked with its mode."""
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "tool").write_text("no script\n")
    (folder / "tool").chmod(0o755)
    (folder / "main.py").write_text("print(1)\n")
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    home = {"HOME": str(folder), "PATH": "/usr/bin:/bin"}
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run(["git", *who, *words], cwd=folder, check=True, env=home)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        archive.add(folder, ".")
    return out.getvalue()


def on_disk(folder: Path) -> dict[str, bytes | None]:
    found = folder.glob(".git/**/*")
    return {f"/{each.relative_to(folder)}": each.read_bytes() if each.is_file() else None for each in found}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_git_reads_a_repository_that_came_in_and_no_byte_of_it_changes(
    workspace: MemoryWorkspace, command: Command, isolation: Isolation, tmp_path: Path
) -> None:
    if "git" not in (await command("command -v git"))["stdout"]:
        pytest.skip(f"{isolation.name} has no git")
    await import_archive(workspace, io.BytesIO(packed_repository(tmp_path)))

    async def repository() -> dict[str, bytes | None]:
        found = await workspace.glob("/.git/**/*")
        return {each.path: await workspace.read_bytes(each.path) if each.kind == "file" else None for each in found}

    before = await repository()
    assert before == on_disk(tmp_path)
    looked = await command("git status --porcelain && git log --format=%s")
    assert (looked["stdout"], looked["stderr"], looked["changedFiles"]) == ("Begin\n", "", NOTHING)
    await workspace.write_file("/main.py", "print(2)\n")
    seen = await command("git status --porcelain && git log --format=%s && git diff HEAD")
    assert seen["stderr"] == ""
    assert seen["stdout"].startswith(" M main.py\nBegin\ndiff --git a/main.py b/main.py\n")
    assert seen["stdout"].endswith("-print(1)\n+print(2)\n")
    assert await repository() == before | {"/.git/index": await workspace.read_bytes("/.git/index")}
    made = await command("git -c user.name=A -c user.email=a@example.org commit -qam Second && git log --format=%s")
    assert made["stdout"] == "Second\nBegin\n"
    assert await workspace.read_bytes("/.git/index") != before["/.git/index"]
