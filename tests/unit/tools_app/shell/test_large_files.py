"""Files that are too large to be changed are read: whole up to a bound, and by the usual commands in pieces."""

from typing import Any

import pytest

from tests.unit.tools_app.shell.conftest import CONTEXT, NOTHING, Shell
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.contract import DEFAULT_LIMITS, Limits, RunResult, Script
from tools_app.sandbox.deno import DenoSandbox
from tools_app.shell.tool import COPIES, BashOptions, ShellRunner, shell_program
from tools_app.workspace.stores.memory import MemoryWorkspace

LINES = [f"{number:08d} {'ERROR' if number % 50_000 == 7 else 'fine'} ü".encode() for number in range(150_000)]
LOG = b"\n".join(LINES) + b"\n"
LAST = b"".join(line + b"\n" for line in LINES[-2:]).decode()
ERRORS = [line.decode() for line in LINES if b"ERROR" in line]

COMMANDS = {
    "wc -l log": f"{len(LINES)} log\n",
    "wc -c log": f"{len(LOG)} log\n",
    "wc -w log": f"{3 * len(LINES)} log\n",
    "wc log": f" {len(LINES)}  {3 * len(LINES)} {len(LOG)} log\n",
    "head -n 1 log": LINES[0].decode() + "\n",
    "head -c 8 log": "00000000",
    "tail -n 2 log": LAST,
    "tail -2 log": LAST,
    "tail -c 4 log": " ü\n",
    "tail log | wc -l": "10\n",
    "grep ERROR log": "".join(f"{line}\n" for line in ERRORS),
    "grep -c ERROR log": f"{len(ERRORS)}\n",
    "grep -n 'ERROR ü' log | tail -n 1": f"100008:{ERRORS[-1]}\n",
    "grep -vc fine log": f"{len(ERRORS)}\n",
    "grep -o '^00100007' log": "00100007\n",
    "grep -q ERROR log && echo yes": "yes\n",
    "grep nothing log || echo none": "none\n",
    "cd d; grep -A 1 00100007 ../log | tail -n 1": LINES[100_008].decode() + "\n",
    "sed -n '$p' log": LINES[-1].decode() + "\n",
    "cat log | tail -n 1": LINES[-1].decode() + "\n",
    "wc -l < log": f"{len(LINES)}\n",
}


async def test_commands_read_a_large_file(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/log", LOG)
    await workspace.mkdir("/d")
    done = await bash("\n".join(f"{{ {each}; }} > /out{at}; cd /" for at, each in enumerate(COMMANDS)), seconds=300.0)
    assert (done["stderr"], done["exitCode"]) == ("", 0)
    made = {each: await workspace.read_file(f"/out{at}") for at, each in enumerate(COMMANDS)}
    assert made == COMMANDS
    assert await workspace.read_bytes("/log") == LOG


@pytest.mark.parametrize("command", ["sed -i s/ERROR/x/ log", "cp log copy", "mv log other", "cat log > copy"])
async def test_a_large_file_is_not_changed_and_the_reason_is_given(
    workspace: MemoryWorkspace, bash: Shell, command: str
) -> None:
    await workspace.write_file("/log", LOG)
    done = await bash(command)
    assert done["exitCode"] != 0
    assert "larger than 1000000 bytes" in done["stderr"]
    assert "No such file" not in done["stderr"]
    assert await workspace.read_bytes("/log") == LOG


async def test_a_file_above_the_bound_is_not_said_to_be_missing(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/huge", b"x" * 64_000_001)
    done = await bash("cat huge; head -n 1 huge; wc -c huge")
    assert done["stderr"].count("larger than 64000000 bytes") == 3
    assert "No such file" not in done["stderr"]
    assert done["skippedFiles"] == ["/huge"]
    assert done["changedFiles"] == NOTHING


async def test_a_script_has_the_memory_of_the_setting_whatever_the_workspace_holds(
    workspace: MemoryWorkspace, shell_sandbox: DenoSandbox
) -> None:
    """What does not fit into it is refused with words, and read in pieces."""
    given: list[int] = []

    class Watched(DenoSandbox):
        async def run(self, script: Script, *, limits: Limits = DEFAULT_LIMITS, **options: Any) -> RunResult:
            given.append(limits.memory_bytes)
            return await shell_sandbox.run(script, limits=limits, **options)

    most = sandbox_settings.limits.memory_bytes // COPIES
    lines = (b"x" * 63 + b"\n") * (most // 64)
    await workspace.write_file("/whole", lines)
    await workspace.write_file("/huge", lines + b"end\n")
    options = BashOptions(sandbox=Watched(program=shell_program(), spare=False))
    done = await ShellRunner(workspace=workspace, options=options).run(
        CONTEXT, "cat whole | wc -c; sed -n '$=' whole; tail -n 1 huge; grep -c x huge; wc -c < huge; cat huge"
    )
    assert done["stdout"] == f"{most}\n{most // 64}\nend\n{most // 64}\n"
    words = f"file is larger than {most} bytes; grep, head, tail and wc read it in pieces"
    assert (done["stderr"].count(words), done["exitCode"]) == (2, 1), done["stderr"]
    assert done["skippedFiles"] == ["/huge"]
    assert given == [sandbox_settings.limits.memory_bytes]


async def test_no_command_runs_in_the_background(bash: Shell) -> None:
    for script in ("echo hi; sleep 300 & echo done", "(sleep 300) &", "if true; then sleep 300 & fi"):
        done = await bash(script)
        assert done["exitCode"] == 2
        assert "there is no `&` here" in done["stderr"]
        assert done["stdout"] == ""  # nothing of it ran, so nothing is lost
    assert (await bash("echo $((6 & 3)); true && echo a 2>&1; echo 'a & b'"))["stdout"] == "2\na\na & b\n"


async def test_echo_takes_its_options_as_bash_does(bash: Shell) -> None:
    done = await bash(r"""echo -e 'a\tb\x41\u00fc\0101'; echo -ne '\e['; echo -nee 'x\n'; echo -eE 'a\tb'
echo -nE 'q\n'; echo; echo -- x; echo -x; echo -e 'no\c more'""")
    assert done["stdout"] == "a\tbAüA\n\x1b[x\na\\tb\nq\\n\n-- x\n-x\nno"
