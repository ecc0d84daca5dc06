"""Scripts that try to get out: each is denied, and the next one runs."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.unit.tools_app.sandbox.conftest import Run
from tools_app.sandbox.contract import Answer, Outcome

SECRET = "canary-of-the-escape-tests"


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret.json"
    path.write_text(f'"{SECRET}"')
    for folder in (path, *path.parents):
        if folder.stat().st_uid == os.geteuid() and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)  # readable for everybody: only the sandbox keeps it
    return path


PROBES = {
    "read": 'return await Deno.readTextFile("FILE")',
    "read sync": 'return Deno.readTextFileSync("FILE")',
    "open": 'return (await Deno.open("FILE")).readable',
    "node fs": 'return (await import("node:fs")).readFileSync("FILE", "utf8")',
    "node process": 'return process.binding("fs").readFileUtf8("FILE")',
    "import literal": 'return (await import("file://FILE", {with: {type: "json"}})).default',
    "import text": 'return (await import("file://FILE", {with: {type: "text"}})).default',
    "import computed": 'const u = "file:" + "//FILE"; return (await import(u, {with: {type: "json"}})).default',
    "import in data": "return (await import(\"data:application/javascript,import x from 'file://FILE' with "
    "{type: 'json'}; export default x\")).default",
    "import in typescript": "return (await import(\"data:application/typescript,import x from 'file://FILE' with "
    "{type: 'text'}; export default (x as string)\")).default",
    "import in blob": "return (await import(URL.createObjectURL(new Blob([\"import x from 'file://FILE' with {type: "
    '\'json\'}; export default x"], {type: "application/javascript"})))).default',
    "worker": 'const w = new Worker("file://FILE", {type: "module"}); await new Promise((_, r) => w.onerror = r)',
    "fetch of a file": 'return await (await fetch("file://FILE")).text()',
    "require": 'return (await import("node:module")).createRequire("file:///")("FILE")',
    "environment": "return Deno.env.toObject()",
    "process environment": "if (Object.keys(process.env).length) return {...process.env}; throw new Error()",
    "proc": 'return await Deno.readTextFile("/proc/self/environ")',
    "proc of the parent": 'return await Deno.readTextFile("/proc/" + Deno.ppid + "/environ")',
    "fetch": 'return await (await fetch("http://127.0.0.1:PORT/")).text()',
    "connect": 'return (await Deno.connect({hostname: "127.0.0.1", port: PORT})).rid',
    "connect by unix socket": 'return await Deno.connect({transport: "unix", path: "/tmp/x.sock"})',
    "websocket": 'return await new Promise((ok, no) => { const s = new WebSocket("ws://127.0.0.1:PORT/"); '
    "s.onopen = () => ok(1); s.onerror = no })",
    "node net": 'const net = await import("node:net"); return await new Promise((ok, no) => '
    'net.connect(PORT, "127.0.0.1", () => ok(1)).on("error", no))',
    "listen": "return Deno.listen({port: 0}).addr",
    "dns": 'return await Deno.resolveDns("localhost", "A")',
    "remote import": 'return await import("http://127.0.0.1:PORT/x.js")',
    "npm import": 'return await import("npm:lodash")',
    "command": 'return await new Deno.Command("/bin/true").output()',
    "node child": 'return (await import("node:child_process")).execSync("id").toString()',
    "ffi": 'return Deno.dlopen("libc.so.6", {getpid: {parameters: [], result: "i32"}})',
    "kill": "Deno.kill(Deno.ppid, 'SIGKILL'); return 1",
    "system": "return Deno.hostname()",
    "write": 'await Deno.writeTextFile("/tmp/sandbox-escape", "x"); return 1',
    "temporary file": "return await Deno.makeTempFile()",
    "permissions": 'const {state} = await Deno.permissions.request({name: "read"}); '
    'if (state === "granted") return 1; throw state',
    "worker with permissions": 'new Worker("data:application/javascript,", {type: "module", deno: {permissions: '
    "{read: true}}}); return 1",
    "prototype of the constructor": "const F = (async () => {}).constructor; "
    "return await F(\"return Deno.readTextFile('FILE')\")()",
    "prototype of a tool": "return await tools.x.constructor.constructor(\"return Deno.readTextFileSync('FILE')\")()",
    "eval": "return await (0, eval)(\"Deno.readTextFile('FILE')\")",
    "vm": "return (await import('node:vm')).runInNewContext('d.readTextFileSync(\"FILE\")', {d: Deno})",
    "wasi": 'return new ((await import("node:wasi")).default)({version: "preview1", preopens: {"/": "/"}})',
    "inspector": "return (await import('node:inspector')).open(9229)",
    "heap snapshot": "return (await import('node:v8')).writeHeapSnapshot('/tmp/sandbox-escape')",
    "sqlite": "return new (await import('node:sqlite')).DatabaseSync('FILE')",
    "internals": "const core = Deno[Deno.internal].core; return core.ops.op_read_file_text_sync('FILE')",
}


@pytest.fixture
async def port() -> object:
    """A server on loopback that anybody on this machine reaches."""
    reached: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(b"connected")
        writer.write(f"HTTP/1.0 200 OK\r\n\r\n{SECRET}".encode())
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    assert reached == []


async def test_every_way_out_is_closed(run: Run, secret_file: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", SECRET)

    async def probe(name: str) -> str | None:
        body = PROBES[name].replace("FILE", str(secret_file)).replace("PORT", str(port))
        result = await run(body)
        if result.outcome not in {Outcome.ERROR, Outcome.CRASHED} or SECRET in repr(result):
            return f"{name}: {result}"
        return None

    found = [escaped for name in PROBES if (escaped := await probe(name))]
    assert found == []
    assert (await run("return await tools.x(1)")).value == {"name": "tools.x", "args": [1]}
    assert "sandbox-escape" not in os.listdir("/tmp")


FORGED = {
    "not json": "{",
    "no object": "[1]",
    "unknown kind": '{"t":"run"}',
    "no kind": "{}",
    "second greeting": '{"t":"ready"}',
    "call without number": '{"t":"call","name":"x","args":[]}',
    "call with a true number": '{"t":"call","id":true,"name":"x","args":[]}',
    "call with text as number": '{"t":"call","id":"1","name":"x","args":[]}',
    "call with a negative number": '{"t":"call","id":-1,"name":"x","args":[]}',
    "call without list": '{"t":"call","id":9,"name":"x","args":{}}',
    "call without name": '{"t":"call","id":9,"name":"","args":[]}',
    "long name": '{"t":"call","id":9,"name":"' + "x" * 400 + '","args":[]}',
    "unknown level": '{"t":"log","level":"shout","text":"x"}',
    "output that is no text": '{"t":"log","level":"log","text":{}}',
    "deep": '{"t":"done","ok":true,"value":' + "[" * 5000 + "]" * 5000 + "}",
    "not a number": '{"t":"done","ok":true,"value":NaN}',
    "twice the same call": '{"t":"call","id":77,"name":"x","args":[]}\\n{"t":"call","id":77,"name":"x","args":[]}',
}
SAY = "const say = (text) => Deno.stdout.writeSync(new TextEncoder().encode(text + '\\n'));"


@pytest.mark.parametrize("line", FORGED.values(), ids=FORGED)
async def test_what_no_runner_says_ends_the_run(run: Run, line: str) -> None:
    result = await run(f"{SAY} say(`{line}`); for (;;) await tools.x()")
    assert result.outcome is Outcome.CRASHED
    assert result.value is None


async def test_a_forged_end_is_an_end_and_nothing_after_it_counts(run: Run) -> None:
    seen = []

    async def calls(name: str, args: list[object]) -> object:
        seen.append(name)
        return Answer()

    end = '{"t":"done","ok":true,"value":5}'
    late = '{"t":"call","id":9,"name":"tools.late","args":[]}'
    result = await run(f"{SAY} say(`{end}\\n{late}`); for (;;) ;", calls=calls)
    assert (result.outcome, result.value, seen) == (Outcome.OK, 5, [])


async def test_a_forged_error_of_the_wrong_shape_is_an_error(run: Run) -> None:
    result = await run(f'{SAY} say(`{{"t":"done","ok":false,"error":[1]}}`); for (;;) ;')
    assert result.outcome is Outcome.ERROR
    assert result.error is not None
    assert result.error.message == "The code failed without a message."


async def test_a_script_that_breaks_the_runner_harms_itself_only(run: Run) -> None:
    bodies = [
        "JSON.stringify = () => 'x'; return 1",
        "Map.prototype.get = () => { throw 1 }; await tools.x(); return 1",
        "Object.prototype.t = 'call'; return {}",
        "Deno.stdout.close(); return 1",
        "Deno.exit(7)",
        "globalThis.close?.(); Deno.stdin.close(); await tools.x(); return 1",
    ]
    outcomes = [(await run(body)).outcome for body in bodies]
    assert set(outcomes) <= {Outcome.OK, Outcome.ERROR, Outcome.CRASHED, Outcome.TIMEOUT}
    assert outcomes[4] is Outcome.CRASHED
    assert (await run("return 1")).value == 1
