"""Scripts that try to get out: each is denied, and the next one runs."""

import asyncio
import dataclasses
import os
from pathlib import Path

import pytest

from tests.unit.tools_app.sandbox.conftest import SMALL, Run
from tests.unit.tools_app.sandbox.probes import PROBES, SECRET
from tools_app.sandbox.contract import Answer, SandboxOutcome
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.walls import Walls

PATIENT = dataclasses.replace(SMALL, seconds=60.0, cpu_seconds=30)


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret.json"
    path.write_text(f'"{SECRET}"')
    for folder in (path, *path.parents):
        if folder.stat().st_uid == os.geteuid() and folder.is_relative_to("/tmp") and folder != Path("/tmp"):
            folder.chmod(0o755)  # readable for everybody: only the sandbox keeps it
    return path


@pytest.fixture
async def loopback_port() -> object:
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


async def test_every_way_out_is_closed(
    each_walls: Walls,
    sandbox: DenoSandbox,
    run: Run,
    secret_file: Path,
    loopback_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await sandbox.walls() == each_walls
    monkeypatch.setenv("SECRET_OF_THE_PARENT", SECRET)

    async def probe(name: str) -> str | None:
        body = PROBES[name].replace("FILE", str(secret_file)).replace("PORT", str(loopback_port))
        result = await run(body, limits=PATIENT)  # a heap takes its time on a busy machine
        if result.outcome not in {SandboxOutcome.ERROR, SandboxOutcome.CRASHED} or SECRET in repr(result):
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
    assert result.outcome is SandboxOutcome.CRASHED
    assert result.value is None


async def test_a_forged_end_is_an_end_and_nothing_after_it_counts(run: Run) -> None:
    seen = []

    async def calls(name: str, args: list[object]) -> object:
        seen.append(name)
        return Answer()

    end = '{"t":"done","ok":true,"value":5}'
    late = '{"t":"call","id":9,"name":"tools.late","args":[]}'
    result = await run(f"{SAY} say(`{end}\\n{late}`); for (;;) ;", calls=calls)
    assert (result.outcome, result.value, seen) == (SandboxOutcome.OK, 5, [])


async def test_a_forged_error_of_the_wrong_shape_is_an_error(run: Run) -> None:
    result = await run(f'{SAY} say(`{{"t":"done","ok":false,"error":[1]}}`); for (;;) ;')
    assert result.outcome is SandboxOutcome.ERROR
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
    assert set(outcomes) <= {SandboxOutcome.OK, SandboxOutcome.ERROR, SandboxOutcome.CRASHED, SandboxOutcome.TIMEOUT}
    assert outcomes[4] is SandboxOutcome.CRASHED
    assert (await run("return 1")).value == 1
