"""The walls around the process hold where Deno's permissions would not, and the death of the parent ends it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.open_folders import open_to_all
from tools_app.sandbox.contract import DEFAULT_LIMITS
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.process import SandboxProgram, command, spawn
from tools_app.sandbox.report import sandbox_report

REACH = """
const status = await Deno.readTextFile("/proc/self/status");
let network = "reached";
try { (await Deno.connect({hostname: "127.0.0.1", port: PORT})).close() } catch (error) { network = error.name }
let file = "written";
try { await Deno.writeTextFile("TARGET", "x") } catch (error) { file = error.name }
const lines = Object.fromEntries(status.split("\\n").map((line) => line.split(":\\t")));
console.log(JSON.stringify({network, file, user: lines.Uid, rights: lines.CapEff, sealed: lines.NoNewPrivs,
  environment: Object.keys(Deno.env.toObject()).sort()}));
"""


async def test_the_walls_hold_without_the_permissions_of_deno(tmp_path: Path) -> None:
    sandbox = DenoSandbox(spare=False)
    walls = await sandbox.walls()
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    script = tmp_path / "reach.js"
    script.write_text(REACH.replace("PORT", str(port)).replace("TARGET", str(tmp_path / "made")))
    open_to_all(script)
    guest = await spawn(command(walls, DEFAULT_LIMITS, SandboxProgram(script=script, flags=("--allow-all",))), 100_000)
    line = await guest.stdout.readline()
    await guest.end()
    server.close()
    found = json.loads(line)
    if "network" in walls.name:
        assert found["network"] in {"ConnectionRefused", "NetworkUnreachable"}
    if "user" in walls.name:
        assert found["user"].split("\t") == ["65534"] * 4
    if walls.prefix:
        assert found["sealed"] == "1"
        assert int(found["rights"], 16) == 0
    assert found["file"] != "written" or (tmp_path / "made").read_bytes() == b""
    assert found["environment"] == ["DENO_DIR", "DENO_NO_UPDATE_CHECK", "NO_COLOR", "PATH", "PWD"]


async def test_the_report_names_each_tier_with_a_reason(settings: Any, tmp_path: Path) -> None:
    settings.THINK_SANDBOX_PACKAGES_DIR = str(tmp_path)
    first, second = await sandbox_report()
    assert (first.tier, first.is_available) == ("javascript", True)
    assert "Deno without permissions" in first.reason
    assert (second.tier, second.is_available) == ("python", False)
    assert "install_sandbox_python" in second.reason


async def test_the_report_says_which_packages_are_there(settings: Any, tmp_path: Path) -> None:
    settings.THINK_SANDBOX_PACKAGES_DIR = str(tmp_path)
    settings.THINK_SANDBOX_PACKAGES = "words@1.0.0, @scope/other@2.0.0"
    (tmp_path / "words@1.0.0.js").write_text("export default 1")
    missing = (await sandbox_report())[1]
    assert (missing.tier, missing.is_available) == ("packages", False)
    assert missing.reason.startswith("@scope/other: not in")
    assert "install_sandbox_packages" in missing.reason
    (tmp_path / "@scope__other@2.0.0.js").write_text("export default 2")
    assert (await sandbox_report())[1].is_available


BUSY_PARENT = """
import asyncio, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings_test"
import django
django.setup()
from tools_app.sandbox.contract import Answer, Script
from tools_app.sandbox.deno import DenoSandbox

async def main():
    sandbox = DenoSandbox(spare=True)
    async def begun(name, args):
        print(*sandbox.running, flush=True)
        return Answer()
    await sandbox.run(Script(source="() => 1"), calls=begun)
    await sandbox.warmed()
    await sandbox.run(Script(source="async () => { tools.begun(); for (;;) ; }", namespaces=("tools",)), calls=begun)

asyncio.run(main())
"""


def test_a_busy_script_does_not_outlive_its_killed_parent() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", BUSY_PARENT], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4]
    )
    assert parent.stdout is not None
    guest = int(parent.stdout.readline())
    os.kill(guest, 0)  # it is there
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while _runs(guest) and time.monotonic() < deadline:
        time.sleep(0.01)
    alive = _runs(guest)
    if alive:
        os.kill(guest, signal.SIGKILL)
    assert not alive


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
