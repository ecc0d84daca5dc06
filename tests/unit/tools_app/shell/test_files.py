"""What a script finds of a workspace, and what of its changes is kept."""

import os
import signal
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sessions_app.core.messages.truncation import FORMER
from tests.unit.tools_app.shell.conftest import CONTEXT, NOTHING, Shell, texts
from tools_app.calls.run import execute
from tools_app.core.files.workspace import Entry, EntryKind, MakeDirectory, Put
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.errors import FileFailed, SandboxUnavailable
from tools_app.sandbox.contract import RunResult
from tools_app.sandbox.deno import DenoSandbox
from tools_app.shell import tool as shell_tool
from tools_app.shell.tool import create_bash_tool
from tools_app.workspace.stores.memory import MemoryWorkspace


async def test_the_tool_runs_a_script_over_the_workspace(
    workspace: MemoryWorkspace, shell_sandbox: DenoSandbox
) -> None:
    await workspace.write_file("/notes/a.txt", "one\ntwo\n")
    made = create_bash_tool(workspace, sandbox=shell_sandbox)
    call = ToolCall(
        call_id="c", tool_name="bash", input={"script": "grep -c o *.txt > count; cat count", "cwd": "notes"}
    )
    results = [item async for item in execute(made, call, CONTEXT)]
    [result] = results
    assert isinstance(result, ToolResult)
    changed = {**NOTHING, "created": ["/notes/count"]}
    assert result.output == {"stdout": "2\n", "stderr": "", "exitCode": 0, "changedFiles": changed}
    assert await workspace.read_file("/notes/count") == "2\n"


async def test_changes_are_named_by_what_happened_to_them(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.apply([MakeDirectory(path="/old/deep"), MakeDirectory(path="/kept")])
    for path in ("/a", "/b", "/same", "/old/deep/x", "/moved"):
        await workspace.write_file(path, f"{path}\n")
    result = await bash(
        "echo more >> a; echo again >> a; rm b; cat same > t; mv t same; rm -r old; mv moved kept/there;"
        "mkdir -p new/er; echo 1 > new/er/f; echo gone > g; rm g; ln -s /a link; rmdir nothing"
    )
    assert result["changedFiles"] == {
        "created": ["/kept/there", "/link", "/new/er/f"],
        "updated": ["/a"],
        "deleted": ["/b", "/moved", "/old/deep/x"],
        "directoriesCreated": ["/new", "/new/er"],
        "directoriesDeleted": ["/old", "/old/deep"],
    }
    assert result["exitCode"] == 1
    assert "rmdir: failed to remove 'nothing'" in result["stderr"]
    assert await texts(workspace) == {
        "/a": "/a\nmore\nagain\n",
        "/kept/there": "/moved\n",
        "/link": "/a\nmore\nagain\n",
        "/new/er/f": "1\n",
        "/same": "/same\n",
    }


async def test_links_are_followed_within_the_workspace(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/d/f", "old\n")
    await workspace.symlink("/d", "/l")
    await workspace.symlink("../../../../etc/passwd", "/out")
    await workspace.symlink("/loop", "/loop")
    script = "cat l/f; echo new > l/f; echo x > l/g; readlink l; cat out loop; cd l && pwd -P; rm -r /l; ls /"
    result = await bash(script)
    assert result["stdout"] == "old\n/d\n/d\nd\nloop\nout\n"
    assert result["changedFiles"] == {**NOTHING, "created": ["/d/g"], "updated": ["/d/f"], "deleted": ["/l"]}
    assert result["stderr"].count("No such file") == 2


async def test_files_have_the_names_that_programs_give_them_as_well(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/d/f", "old\n")
    result = await bash("cat /workspace/d/f; echo new > /workspace/d/g; ls /; find / -name g; cd /workspace/d && ls")
    assert result["stdout"] == "old\nd\n/d/g\nf\ng\n"
    assert result["changedFiles"] == {**NOTHING, "created": ["/d/g"]}


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("i=0; while true; do i=1; done", "too many"),
        ("until false; do :; done", "too many"),
        ("f() { f; }; f", "maximum recursion depth"),
    ],
)
async def test_limits_are_said_in_words_for_scripts(bash: Shell, script: str, words: str) -> None:
    result = await bash(script)
    assert words in result["stderr"]
    assert "executionLimits" not in result["stderr"]


async def test_a_directory_called_workspace_is_itself(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/workspace/f", "old\n")
    result = await bash("cat /workspace/f; echo new > /workspace/g; ls /")
    assert result["stdout"] == "old\nworkspace\n"
    assert result["changedFiles"] == {**NOTHING, "created": ["/workspace/g"]}


async def test_new_files_of_the_system_are_not_kept(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/tmp/stored", "1\n")
    script = (
        "for d in bin usr dev proc sys tmp; do echo x > /$d/new; cat /$d/new; done; echo 2 > /tmp/stored; ls /; ls /tmp"
    )
    result = await bash(script)
    assert result["stdout"] == "x\n" * 6 + "tmp\nnew\nstored\n"
    assert result["changedFiles"] == {**NOTHING, "updated": ["/tmp/stored"]}


async def test_a_file_that_somebody_else_changed_is_left_alone_and_named(workspace: MemoryWorkspace) -> None:
    for path in ("/read", "/written", "/removed/f", "/mine"):
        await workspace.write_file(path, "old\n")

    class Slow(DenoSandbox):
        """Others write between the script's end and its writing back."""

        async def run(self, *args: Any, **kwargs: Any) -> RunResult:
            result = await super().run(*args, **kwargs)
            for path in ("/written", "/removed/f", "/new", "/removed/too"):
                await workspace.write_file(path, "theirs\n")
            return result

    slow = Slow(program=shell_tool.shell_program(), spare=False)
    runner = shell_tool.ShellRunner(workspace=workspace, options=shell_tool.BashOptions(sandbox=slow))
    result = await runner.run(CONTEXT, "cat read > written; rm -r removed; echo x > new; echo y > mine")
    assert sorted(line.split(":")[0] for line in result["errors"]) == ["/new", "/removed/f", "/written"]
    assert result["changedFiles"] == {**NOTHING, "updated": ["/mine"]}
    assert await texts(workspace) == {
        "/mine": "y\n",
        "/new": "theirs\n",
        "/read": "old\n",
        "/removed/f": "theirs\n",
        "/removed/too": "theirs\n",
        "/written": "theirs\n",
    }


async def test_what_was_written_before_a_timeout_is_kept_and_named(workspace: MemoryWorkspace, bash: Shell) -> None:
    result = await bash("echo 1 > before; sleep 30; echo 2 > after", seconds=0.5)
    assert result["exitCode"] == 124
    assert result["changedFiles"] == {**NOTHING, "created": ["/before"]}
    assert await texts(workspace) == {"/before": "1\n"}


async def test_what_was_written_before_the_process_was_killed_is_kept(shell_sandbox: DenoSandbox) -> None:
    class Killing(MemoryWorkspace):
        """Reading a file of it ends the process that asked."""

        async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> AsyncIterator[tuple[Entry, bytes | None]]:
            for pid in shell_sandbox.running:
                os.kill(pid, signal.SIGKILL)
            async for each in super().read_many(paths, max_bytes=max_bytes):
                yield each

    workspace = Killing()
    await workspace.write_file("/trap", "x")
    runner = shell_tool.ShellRunner(workspace=workspace, options=shell_tool.BashOptions(sandbox=shell_sandbox))
    result = await runner.run(CONTEXT, "echo 1 > before; cat trap; echo 2 > after")
    assert result["exitCode"] == 137
    assert result["changedFiles"] == {**NOTHING, "created": ["/before"]}


async def test_a_file_that_is_too_large_is_read_and_not_changed(workspace: MemoryWorkspace, bash: Shell) -> None:
    large = b"x" * 1_000_001
    await workspace.write_file("/d/large", large)
    await workspace.write_file("/d/small", "1\n")
    result = await bash("ls -l d/large | grep -c 1000001; cat d/large | wc -c; rm d/large; rm -r d; mv d/large x; ls d")
    assert result["stdout"] == "1\n1000001\nlarge\nsmall\n"
    assert result["skippedFiles"] == ["/d/large"]
    assert result["changedFiles"] == NOTHING
    assert await workspace.read_bytes("/d/large") == large
    over = await bash("set -e; echo kept > other; echo x > d/large; echo never")
    assert (over["exitCode"], over["stdout"]) == (1, "")
    assert "left as it is" in over["stderr"]
    assert over["changedFiles"] == {**NOTHING, "created": ["/other"]}
    assert await workspace.read_bytes("/d/large") == large


async def test_a_file_cannot_grow_beyond_the_bound(workspace: MemoryWorkspace, bash: Shell) -> None:
    result = await bash("printf '%0900000d' 1 > f; cat f >> f2; cat f >> f2")
    assert "EFBIG" in result["stderr"]
    assert [entry.size for entry in await workspace.glob("/*")] == [900_000, 900_000]


async def test_binary_files_pass_through(workspace: MemoryWorkspace, bash: Shell) -> None:
    data = bytes(range(256)) * 10
    await workspace.write_file("/bin.dat", data)
    result = await bash(
        "cat bin.dat > copy; cp bin.dat two; cat bin.dat bin.dat | wc -c; "
        "base64 -w0 bin.dat > b64; base64 -d b64 > back; cat bin.dat"
    )
    assert result["stdout"].startswith("5120\n")
    assert "\x00" not in result["stdout"]
    for path in ("/copy", "/two", "/back"):
        assert await workspace.read_bytes(path) == data


async def test_outputs_are_cut_between_characters(bash: Shell) -> None:
    result = await bash(
        "for i in $(seq 1 5000); do echo 'ééééééééé'; done; cat /nowhere; echo 1 failed;"
        "for i in 1 2 3; do printf '%030000d' 7 >&2; done; echo exit 1 >&2"
    )
    for stream, start, end in (("stdout", "éé", "é\n1 failed\n"), ("stderr", "cat: ", "7exit 1\n")):
        assert 63_800 < len(result[stream].encode()) <= 64_000
        assert result[stream].startswith(start)
        assert result[stream].endswith(end)
        assert len(FORMER.findall(result[stream])) == 1
        assert "\ufffd" not in result[stream]


async def test_a_thousand_files_are_read_in_few_batches(shell_sandbox: DenoSandbox) -> None:
    batches: list[int] = []

    class Counting(MemoryWorkspace):
        async def read_many(self, paths: Sequence[str], *, max_bytes: int) -> AsyncIterator[tuple[Entry, bytes | None]]:
            if paths:
                batches.append(len(paths))
            async for each in super().read_many(paths, max_bytes=max_bytes):
                yield each

    counting = Counting()
    files = {f"/d{number % 10}/f{number}.txt": f"text {number}\n" * 20 for number in range(1000)}
    await counting.apply([Put(path=path, content=text.encode()) for path, text in files.items()])
    runner = shell_tool.ShellRunner(workspace=counting, options=shell_tool.BashOptions(sandbox=shell_sandbox))
    result = await runner.run(CONTEXT, "grep -rl 'text 7$' . | sort; ls | wc -l")
    assert result["stdout"] == "d7/f7.txt\n10\n"
    assert sum(batches) == 1000
    assert len(batches) <= 12
    batches.clear()
    await runner.run(CONTEXT, "cat d1/f1.txt; ls -l d2; find . -name 'f9*'")
    assert batches == [1]


@pytest.mark.long
async def test_contents_are_let_go_and_fetched_again(workspace: MemoryWorkspace, bash: Shell) -> None:
    for number in range(68):
        await workspace.write_file(f"/f{number}", b"%02d\n" % number + b"x" * 990_000)
    script = "for f in f*; do wc -c < $f; done | sort -u; head -n 1 f0 | head -c 2"
    result = await bash(script, seconds=300.0)  # a busy machine takes minutes for 68 MB
    assert (result["stdout"], result["stderr"], result["exitCode"]) == ("990003\n00", "", 0)


async def test_variables_are_those_that_were_given_and_no_others(bash: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "canary")
    result = await bash("echo $GIVEN; env; set", environment={"GIVEN": "yes"})
    assert result["stdout"].startswith("yes\n")
    assert "canary" not in result["stdout"]


async def test_every_call_has_a_shell_of_its_own(bash: Shell) -> None:
    await bash("mkdir -p /notes; cd /notes; export KEPT=yes; kept() { echo yes; }")
    result = await bash('pwd; echo "${KEPT:-no}"; kept || ls')
    assert result["stdout"] == "/\nno\nnotes\n"


async def test_a_working_directory_has_to_be_one(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/f", "x")
    for cwd in ("/nowhere", "/f"):
        with pytest.raises(FileFailed):
            await bash("true", cwd)
    assert (await bash("pwd", "../.."))["stdout"] == "/\n"


async def test_without_the_bundle_the_call_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shell_tool, "BUNDLE", tmp_path / "none.js")
    with pytest.raises(SandboxUnavailable, match=r"tools_app\.shell\.bundling"):
        shell_tool.shell_program()


async def test_a_script_may_replace_a_file_by_a_directory(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/a", "x")
    await workspace.write_file("/d/f", "x")
    await workspace.symlink("/d", "/l")
    result = await bash("rm a; mkdir a; echo 1 > a/b; rm -r d; echo 2 > d; ln -sf /a l; cat l/b")
    assert result["stdout"] == "1\n"
    kinds = {entry.path: entry.kind for entry in await workspace.glob("/*")}
    assert kinds == {"/a": EntryKind.DIRECTORY, "/d": EntryKind.FILE, "/l": EntryKind.SYMLINK}
    assert await workspace.readlink("/l") == "/a"


SLOW = "awk 'BEGIN { for (i = 0; i < 9000; i++) x += i }'"
"""A round of a loop that computes. Empty ones reach the bound of rounds within a second."""


@pytest.mark.parametrize(
    "waiting",
    [
        "sleep 30",
        f"while :; do {SLOW}; done",
        "while true; do echo x > /f; done",
        "sleep 30 | cat",
        f"f() {{ while :; do {SLOW}; done; }}; f",
    ],
)
async def test_what_was_printed_before_a_timeout_is_in_the_result(bash: Shell, waiting: str) -> None:
    result = await bash(f"echo first; echo problem >&2; (echo second); {waiting}; echo never", seconds=1.0)
    assert result["exitCode"] in {124, 137}
    assert result["stdout"].startswith("first\nsecond\n")
    assert "never" not in result["stdout"]
    assert "problem\n" in result["stderr"]
    assert "bash: timed out after 1 seconds" in result["stderr"]


async def test_what_was_on_its_way_to_another_command_was_not_printed(bash: Shell) -> None:
    result = await bash("echo first; while :; do echo piped; done | sort; echo never", seconds=1.0)
    assert (result["exitCode"], result["stdout"]) == (124, "first\n")
    result = await bash("echo first | while read word; do echo got $word; sleep 30; done", seconds=1.0)
    assert (result["exitCode"], result["stdout"]) == (124, "got first\n")


async def test_a_name_that_looks_alike_is_proposed(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/Cafe\u0301.txt", "one\n")
    await workspace.write_file("/notes.md", "two\n")
    failing = await bash("cat Caf\u00e9.txt Notes.md none.txt")
    assert failing["exitCode"] == 1
    assert "/Caf\u00e9.txt is not there. There is /Cafe\u0301.txt (it has U+0065 U+0301 for U+00E9)" in failing["hint"]
    assert "There is /notes.md" in failing["hint"]
    assert "none.txt" not in failing["hint"]
    assert "hint" not in await bash("cat Caf*.txt; [ -e Notes.md ] || true")


async def test_a_script_sees_so_many_entries_and_no_more(
    workspace: MemoryWorkspace, bash: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shell_tool.MAX_ENTRIES == 10_000
    monkeypatch.setattr(shell_tool, "MAX_ENTRIES", 3)
    for name in "abcd":
        await workspace.write_file(f"/{name}", "x")
    result = await bash("ls; rm *")
    assert result["stdout"] == "a\nb\nc\n"
    assert result["errors"] == ["The workspace has more than 3 entries; the script saw the first ones."]
    assert list(await texts(workspace)) == ["/d"]  # what it did not see stays
