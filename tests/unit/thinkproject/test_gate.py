"""What supervisor and children tell each other while they start, between real processes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

from thinkproject.run.gate import Gate, GateReport, report

WAIT = "import sys; from thinkproject.run.gate import wait_at; print(wait_at(int(sys.argv[1])), flush=True)"


def _waiting(gate: Gate) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WAIT, str(gate.fd)]
    return subprocess.Popen(command, pass_fds=[gate.fd], stdout=subprocess.PIPE, text=True)


def _output(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=20)
    return output.strip()


def test_nobody_passes_before_the_gate_is_open_and_everybody_after() -> None:
    gate = Gate()
    early = [_waiting(gate), _waiting(gate)]
    outputs = [process.stdout for process in early if process.stdout is not None]
    assert wait([output.fileno() for output in outputs], timeout=0.5) == []
    gate.open()
    assert [_output(process) for process in early] == ["True", "True"]
    assert _output(_waiting(gate)) == "True"  # one that is started again later


def test_a_gate_whose_supervisor_has_ended_stays_shut() -> None:
    code = (
        "import subprocess, sys; from thinkproject.run.gate import Gate; gate = Gate(); "
        f"subprocess.Popen([sys.executable, '-c', {WAIT!r}, str(gate.fd)], pass_fds=[gate.fd])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.strip() == "False"


def _reads(reader: GateReport, condition: Callable[[], bool]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        said += reader.read()
    return said


def test_reports_arrive_whole_and_their_end_is_seen() -> None:
    reader = GateReport()
    assert reader.read() == []
    os.write(reader.writer, b'{"half": ')
    assert reader.read() == []
    os.write(reader.writer, b"1}\n")
    report(reader.writer, {"text": "x" * 10_000})
    assert reader.read() == [{"half": 1}, {"text": "x" * 10_000}]
    reader.started()
    assert _reads(reader, lambda: reader.is_over) == []
    reader.close()


def test_a_report_that_nobody_reads_any_more_is_no_failure() -> None:
    reader = GateReport()
    writer = os.dup(reader.writer)
    reader.close()
    report(writer, {"serves": True})
    os.close(writer)
