"""Scripts that take all they can get, or try to get out: each is denied or ended, and the next one runs."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.open_folders import open_to_all
from tests.unit.tools_app.shell.conftest import Shell, texts
from tools_app.errors import FileFailed, ToolError
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.walls import Walls
from tools_app.shell.calls import ShellCalls
from tools_app.workspace.stores.memory import MemoryWorkspace

SECRET = "canary-of-the-shell-tests"

GREEDY = {
    "fork bomb": ":(){ :|:& };:",
    "fork bomb by name": "bomb() { bomb | bomb & }; bomb",
    "endless loop": "while true; do :; done",
    "endless for": "for ((;;)); do echo x; done",
    "endless until": "until false; do x=$((x + 1)); done",
    "endless awk": "awk 'BEGIN { while (1) i++ }'",
    "endless sed": "echo x | sed ':a; s/x/x/; ta'",
    "endless jq": "jq -n 'def f: f; f'",
    "endless jq range": "jq -n '[range(1e12)] | length'",
    "endless recursion": "f() { f; }; f",
    "endless eval": 's=\'eval "$s"\'; eval "$s"',
    "endless source": "echo '. ./me' > me; . ./me",
    "endless output": "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done",
    "growing text": "a=x; while :; do a=$a$a; done",
    "growing array": "while :; do a+=(x x x x x x x x x x x x x x x x x x); done",
    "braces": f"for x in {{1..100000000}}; do :; done; echo {'{a,b}' * 20} | wc -c; false",
    "printf": "printf '%1000000000d' 1",
    "printf repeated": "printf 'x%.0s' {1..10000} {1..10000} > f; while :; do cat f f f > g; cat g g g > f; done",
    "seq": "seq 1 100000000",
    "seq with steps": "seq 1 0.0000001 10",
    "arithmetic": "echo $((2 ** 9223372036854775807)); while ((1)); do :; done",
    "deep substitutions": "x=$(printf '$(%.0s' {1..5000}); eval \"$x\"",
    "deep parentheses": "eval \"$(printf '(%.0s' {1..10000})\"",
    "sleeping": "sleep 1000",
    "waiting for input": "cat; read x; cat -; sleep 1000",
    "many files": "i=0; while :; do i=$((i + 1)); echo x > f$i; done",
    "many directories": "p=; while :; do p=$p/d; mkdir $p; done",
    "copying into itself": "mkdir d; while :; do cp -r d d2; mv d2 d/; done",
}
PATTERNS = [
    "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -E '^(a+)+$'",
    "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | grep -P '^(a|a)*$'",
    "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | sed -E 's/^(a|aa)+$/x/'",
    "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | awk '/^(a+)+$/'",
    "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! =~ ^(a+)+$ ]]",
    "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! | rg '^(a*)*$'",
    "case aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa! in *a*a*a*a*a*a*a*a*a*a*a*b) ;; esac",
    'jq -n \'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!" | test("^(a+)+$")\'',
    "x=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; shopt -s extglob; echo ${x//+(a|aa|aaa)b/}",
    "find . -regex '\\(a*\\)*b'; ls *a*a*a*a*a*a*a*a*a*a*b",
]
OUT = [
    "cat FILE",
    "cat ../../../../../../../../FILE",
    "cat < FILE",
    "ln -s FILE l; cat l",
    "ln -s ../../../../../../FILE l; cat l; cp l copy; cat copy",
    "ln FILE hard; cat hard",
    "ln -s DIRECTORY d; ls d; cat d/*",
    "cd DIRECTORY && ls",
    "cp -r DIRECTORY here; cat here/*",
    "mv FILE here; cat here",
    "cat /proc/self/environ /proc/1/environ /proc/*/environ",
    "cat /proc/self/cmdline /proc/self/maps /proc/self/ro?t/FILE /proc/self/cwd/FILE",
    "cat /proc/self/fd/*; ls -l /proc/self/fd /dev/fd",
    "cat /etc/passwd /etc/shadow /etc/hostname",
    "env; set; export -p; printenv; declare -p",
    "echo x > FILE.new; echo x > ../../../../FILE.new",
    "grep -r canary / ",
    "find / -name '*.secret'",
    "source FILE; . FILE; bash FILE; sh FILE",
    'exec FILE; eval "$(cat FILE)"',
    "read -r line < FILE; echo $line; mapfile a < FILE; echo ${a[@]}",
    "while read -r l; do echo $l; done < FILE",
    "echo $(< FILE); cat <(cat FILE)",
    "tee DIRECTORY/x < /dev/null; touch DIRECTORY/y; mkdir DIRECTORY/z",
    "python3 -c 'print(open(\"FILE\").read())'; perl -e 1; node -e 1; ruby -e 1; deno eval 1; js-exec 1",
    "/bin/sh -c 'cat FILE'; /usr/bin/env cat FILE; command cat FILE; builtin cat FILE; busybox cat FILE",
    "jq -n 'input_filename, env, $ENV, input'; jq -n --rawfile f FILE '$f'",
    'awk \'BEGIN { while ((getline l < "FILE") > 0) print l; "cat FILE" | getline x; print x; system("cat FILE") }\'',
    "awk 'BEGIN { for (k in ENVIRON) print k, ENVIRON[k] }'; sed -n 'r FILE' /dev/null; echo | sed '1e cat FILE'",
    "sqlite3 :memory: '.read FILE'; tar cf - FILE; gzip -c FILE; od -c FILE; base64 FILE",
]
NETWORK = [
    "curl -s http://127.0.0.1:PORT/",
    "wget -qO- http://127.0.0.1:PORT/",
    "source /dev/tcp/127.0.0.1/PORT",
    "cat < /dev/tcp/127.0.0.1/PORT",
    "exec 3<> /dev/tcp/127.0.0.1/PORT; echo GET / >&3; cat <&3",
    "echo x > /dev/udp/127.0.0.1/PORT",
    "nc 127.0.0.1 PORT; telnet 127.0.0.1 PORT; ssh 127.0.0.1; ping 127.0.0.1; nslookup localhost",
]
NAMES = [
    (
        "touch $'\\u202egpj.exe'; mkdir $'\\u2066x'; ln -s $'a\\nb' link; mv f $'\\e[31mred'; cp f $'\\x7f'; "
        "touch $'a\\x00b'; tee $'t\\n' < f; mkdir -p /d/$'\\r'; ln -s x \"$(printf 'n%.0s' {1..300})\""
    ),
    "echo x > $'a\\nb'",
    "echo x > \"$(printf 'n%.0s' {1..300})\"",
]


async def alive(bash: Shell) -> None:
    assert (await bash("echo alive"))["stdout"] == "alive\n"


ALWAYS = {"fork bomb", "endless loop", "endless output", "growing text", "braces", "sleeping"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ALWAYS else [pytest.mark.long]) for name in GREEDY]
)
async def test_what_takes_all_is_ended(name: str, workspace: MemoryWorkspace, bash: Shell) -> None:
    result = await bash(GREEDY[name], seconds=1.0)
    assert result["exitCode"] != 0 or name in {"fork bomb", "fork bomb by name", "waiting for input"}
    assert len(result["stdout"].encode()) <= 64_000
    assert (await workspace.info()).byte_count <= 20_000_000
    await alive(bash)


async def test_patterns_take_no_exponential_time(bash: Shell) -> None:
    result = await bash("\n".join(f"{line}; echo done" for line in PATTERNS))
    assert result["stdout"].splitlines().count("done") == len(PATTERNS)


async def test_nothing_of_the_machine_is_reached(
    each_walls: Walls,
    shell_sandbox: DenoSandbox,
    workspace: MemoryWorkspace,
    bash: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await shell_sandbox.walls() == each_walls
    monkeypatch.setenv("SECRET_OF_THE_PARENT", SECRET)
    secret = tmp_path / "x.secret"
    secret.write_text(f"echo {SECRET}\n")
    open_to_all(secret)
    before = sorted(os.listdir(tmp_path))
    scripts = [script.replace("FILE", str(secret)).replace("DIRECTORY", str(tmp_path)) for script in OUT]
    result = await bash("\n".join(f"( {script} ); echo; echo done" for script in scripts))
    assert SECRET not in str(result)
    assert "root:" not in result["stdout"]
    assert result["stdout"].splitlines().count("done") == len(OUT), result["stderr"]
    assert sorted(os.listdir(tmp_path)) == before
    assert SECRET not in str(await texts(workspace))


async def test_there_is_no_network(each_walls: Walls, shell_sandbox: DenoSandbox, bash: Shell) -> None:
    assert await shell_sandbox.walls() == each_walls
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(b"connected")
        writer.write(SECRET.encode())
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    port = str(server.sockets[0].getsockname()[1])
    result = await bash("\n".join(f"( {script.replace('PORT', port)} ); echo done" for script in NETWORK))
    assert result["stdout"].splitlines().count("done") == len(NETWORK), result["stderr"]
    assert SECRET not in result["stdout"]
    server.close()
    assert heard == []


async def test_names_that_cannot_be_shown_are_refused(workspace: MemoryWorkspace, bash: Shell) -> None:
    await workspace.write_file("/f", "x")
    for script in NAMES:
        result = await bash(f"{script}; true")
        assert result["stderr"], script
        assert result["changedFiles"]["created"] in ([], ["/a"]), script  # bash, too, ends a text at its NUL
    assert set(await texts(workspace)) <= {"/f", "/a"}


FORGED: list[tuple[str, list[Any]]] = [
    ("files.change", [[{"op": "write", "path": "/../../etc/x", "data": {"$bytes": "eA=="}}]]),
    ("files.change", [[{"op": "write", "path": "/a\u0000b", "data": {"$bytes": "eA=="}}]]),
    ("files.change", [[{"op": "write", "path": "/a", "data": "x"}]]),
    ("files.change", [[{"op": "write", "path": "/a", "data": {"$bytes": "not base64"}}]]),
    ("files.change", [[{"op": "write", "path": 1, "data": {"$bytes": "eA=="}}]]),
    ("files.change", [[{"op": "remove", "path": "/"}]]),
    ("files.change", [[{"op": "remove", "path": "/large"}]]),
    ("files.change", [[{"op": "append", "path": "/f", "data": {"$bytes": "eA=="}}]]),
    ("files.change", [[{"op": "link", "path": "/l", "target": ""}]]),
    ("files.change", [[{"op": "chown", "path": "/f"}]]),
    ("files.change", [{"op": "remove"}]),
    ("files.change", [[None]]),
    ("files.change", []),
    ("files.read", ["/f"]),
    ("files.read", [["/large"]]),
    ("files.read", [["/nowhere"]]),
    ("files.read", [[1]]),
    ("files.read", [["/f"] * 1001]),
    ("tools.search", [{}]),
    ("files.constructor", []),
]


async def test_a_process_that_lies_changes_nothing_that_it_may_not(workspace: MemoryWorkspace) -> None:
    await workspace.write_file("/f", "x")
    await workspace.write_file("/large", b"x" * 1_000_001)
    calls = ShellCalls(workspace, await workspace.glob("/**/*"), {})
    refused = 0
    for name, args in FORGED:
        try:
            await calls.answer(name, args)
        except ToolError:
            refused += 1
    assert refused == len(FORGED) - 1  # `..` stops at the root
    assert [each.path for each in calls.overlay.operations()] == ["/etc", "/etc/x"]


async def test_a_flood_of_changes_is_bounded(workspace: MemoryWorkspace) -> None:
    calls = ShellCalls(workspace, [], {})
    data = {"$bytes": "eHh4" * 300_000}
    files = [[{"op": "write", "path": f"/f{number}", "data": data}] for number in range(30)]
    folders = [[{"op": "mkdir", "path": f"/d{number}-{each}"} for each in range(5000)] for number in range(5)]
    refused = []
    for batch in (*files, *folders):
        try:
            await calls.answer("files.change", [batch])
        except FileFailed as error:
            refused.append(error.errno)
    assert set(refused) == {"ENOSPC"}
    assert len(refused) == 30 - 20_000_000 // 900_000 + 2


async def test_no_process_is_left(bash: Shell, shell_sandbox: DenoSandbox) -> None:
    await bash("sleep 100", seconds=0.2)
    assert shell_sandbox.running == []
