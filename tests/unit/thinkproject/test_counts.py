"""How many web and worker processes `make run` starts."""

from pathlib import Path

import pytest

from thinkproject.run.counts import WEB_BYTES, WORKER_BYTES, Machine, available_memory, core_count, process_count

GIB = 1024 * 1024 * 1024
PAIR = WEB_BYTES + WORKER_BYTES


def machine(cores: int, memory_bytes: int | None = 64 * GIB) -> Machine:
    return Machine(cores=cores, memory_bytes=memory_bytes)


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_there_is_one_for_each_core(cores: int) -> None:
    assert process_count(0, machine(cores)) == cores


def test_what_was_asked_for_is_what_there_is() -> None:
    assert process_count(5, machine(2, 0)) == 5


def test_little_memory_means_fewer_but_never_none() -> None:
    assert process_count(0, machine(8, 4 * PAIR)) == 3  # further ones take half of it at most
    assert process_count(0, machine(8, PAIR)) == 1
    assert process_count(0, machine(8, 0)) == 1


def test_memory_that_is_unknown_is_no_limit(tmp_path: Path) -> None:
    assert available_memory(tmp_path / "meminfo", tmp_path) is None
    assert process_count(0, machine(4, None)) == 4


def test_available_memory_is_what_the_machine_and_the_container_leave(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 8000000 kB\nMemFree: 100 kB\nMemAvailable:    2048 kB\n", encoding="ascii")
    assert available_memory(meminfo, tmp_path) == 2048 * 1024
    (tmp_path / "memory.max").write_text("1000000\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("400000\n", encoding="ascii")
    assert available_memory(meminfo, tmp_path) == 600_000
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert available_memory(meminfo, tmp_path) == 2048 * 1024


@pytest.mark.parametrize(("quota", "most"), [("100000 100000", 1), ("50000 100000", 1), ("150000 100000", 1)])
def test_a_container_may_have_fewer_cores_than_the_machine(tmp_path: Path, quota: str, most: int) -> None:
    (tmp_path / "cpu.max").write_text(quota + "\n", encoding="ascii")
    assert core_count(tmp_path) == most


def test_a_container_without_a_quota_has_all_cores(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n", encoding="ascii")
    assert core_count(tmp_path) == core_count(tmp_path / "none") >= 1
