"""What a measurement of the reference implementation stands on, as far as it needs neither that nor a network."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.chats import ProviderLog, lateness
from bench.reference.runtime import HERE, binary, versions
from bench.rig import Meter
from bench.sockets import Socket
from tests.npm import NpmFailed

HELD = 60_000_000


def test_the_lock_has_a_hash_of_each_package_and_no_address() -> None:
    text = (HERE / "deno.lock").read_text(encoding="utf-8")
    lock = json.loads(text)
    assert all(entry["integrity"].startswith("sha512-") for entry in lock["npm"].values())
    assert "://" not in text
    pinned = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    assert {f"npm:{name}@{version}" for name, version in pinned.items()} <= lock["specifiers"].keys()
    assert versions().startswith(f"@cloudflare/think {pinned['@cloudflare/think']}, ")


def test_a_machine_without_a_program_of_its_own_is_named(tmp_path: Path) -> None:
    with pytest.raises(NpmFailed, match="workerd has no program for this machine"):
        binary(tmp_path, "@cloudflare", "workerd")
    program = tmp_path / "node_modules/.deno/@cloudflare+workerd-x@1/node_modules/@cloudflare/workerd-x/bin/workerd"
    program.parent.mkdir(parents=True)
    program.touch()
    assert binary(tmp_path, "@cloudflare", "workerd") == str(program)


def frame(request_id: str, text: str) -> bytes:
    """A chunk as both implementations send it."""
    body = json.dumps({"type": "text-delta", "id": "t", "delta": text}, separators=(",", ":"))
    return json.dumps({"body": body, "done": False, "id": request_id}, separators=(",", ":")).encode()


def test_turns_that_were_cut_or_differ_are_counted_and_the_others_give_their_delays(tmp_path: Path) -> None:
    log = tmp_path / "provider.jsonl"
    sent = [
        {"kind": "chunk", "unit": "text", "marker": marker, "at": 10.0 + at, "text": text}
        for marker in ("whole", "wrong", "cut")
        for at, text in enumerate(["a", "b"][: 1 if marker == "cut" else 2])
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in sent), encoding="utf-8")

    async def measured() -> tuple[list[float], int, int]:
        socket = Socket(b"")
        came = [("r1", "a"), ("r1", "b"), ("r2", "a"), ("r2", "x"), ("r3", "a")]
        socket.frames = [frame(*each) for each in came]
        socket.times = [10.5, 11.25, 10.0, 11.0, 10.0]
        asked = [(socket, "whole", "r1"), (socket, "wrong", "r2"), (socket, "cut", "r3")]
        return lateness(asked, ProviderLog(log), 2)

    late, chunks, broken = asyncio.run(measured())
    assert late == [0.5, 0.25, 0.0]
    assert (chunks, broken) == (5, 2)


def test_a_meter_counts_what_a_process_has_started() -> None:
    held = f"held = bytearray({HELD}); print('there', flush=True); input()"
    starts = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {held!r}]))"
    command = [sys.executable, "-c", starts]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "there\n"

        async def most() -> tuple[float, float]:
            meter = Meter({"tree": [process.pid], "provider": [process.pid]})
            meter.start()
            meter.stop()
            return meter.most, meter.peak["tree"]

        share, resident = asyncio.run(most())
        process.stdin.write("\n")
    assert HELD < share <= resident < 2 * HELD  # the provider's is not in it
    assert process.returncode == 0
