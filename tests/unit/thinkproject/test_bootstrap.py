"""From a bare Python: what is checked, when packages are installed, and what is said when that is impossible."""

import json
import sys
from pathlib import Path

import pytest

from thinkproject import bootstrap
from thinkproject.bootstrap import SetupError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of lock files only, whose installer notes what it was asked for."""
    (tmp_path / "requirements").mkdir()
    for name in ("base", "dev", "local-model", "uv"):
        (tmp_path / "requirements" / f"{name}.txt").write_text(f"{name}==1\n", encoding="utf-8")
    venv = tmp_path / ".venv"
    monkeypatch.setattr(bootstrap, "REQUIREMENTS", tmp_path / "requirements")
    monkeypatch.setattr(bootstrap, "VENV", venv)
    monkeypatch.setattr(bootstrap, "PYTHON", venv / "bin" / "python")
    monkeypatch.setattr(bootstrap, "STAMP", venv / ".installed.json")
    return tmp_path


@pytest.fixture
def installs(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the installer was asked for, call by call."""
    asked: list[list[str]] = []

    def make() -> None:
        asked.append(["environment"])
        (project / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        (project / ".venv" / "bin" / "python").touch()

    monkeypatch.setattr(bootstrap, "_make_environment", make)
    monkeypatch.setattr(bootstrap, "_sync", asked.append)
    return asked


def test_the_second_time_nothing_is_installed(installs: list[list[str]]) -> None:
    bootstrap.install(["base"])
    bootstrap.install(["base"])
    assert installs == [["environment"], ["base"]]


def test_a_changed_lock_is_installed(installs: list[list[str]], project: Path) -> None:
    bootstrap.install(["base"])
    (project / "requirements" / "base.txt").write_text("base==2\n", encoding="utf-8")
    assert not bootstrap.installed("base")
    bootstrap.install(["base"])
    assert installs == [["environment"], ["base"], ["base"]]


def test_what_is_there_already_stays(installs: list[list[str]]) -> None:
    bootstrap.install(["dev"])
    bootstrap.install(["base"])
    bootstrap.install(["local-model"])
    bootstrap.install(["base"])
    assert installs == [["environment"], ["dev"], ["dev", "local-model"]]


def test_a_failed_install_is_tried_again(
    installs: list[list[str]], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_names: list[str]) -> None:
        raise SetupError("no network")

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "_sync", fail)
        with pytest.raises(SetupError):
            bootstrap.install(["base"])
    bootstrap.install(["base"])
    assert installs[-1] == ["base"]


def test_another_python_makes_a_new_environment(installs: list[list[str]], project: Path) -> None:
    bootstrap.install(["base"])
    stamp = json.loads((project / ".venv" / ".installed.json").read_text(encoding="utf-8"))
    stamp["python"] = "CPython 3.10.0 x86_64"
    (project / ".venv" / ".installed.json").write_text(json.dumps(stamp), encoding="utf-8")
    (project / ".venv" / "bin" / "python").unlink()
    (project / ".venv" / "bin").rmdir()
    bootstrap.install(["base"])
    assert installs == [["environment"], ["base"], ["environment"], ["base"]]


def test_a_python_without_venv_says_what_to_install(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SetupError, match=rf"apt install python{sys.version_info.major}\.\d+-venv") as caught:
        bootstrap.install(["base"])
    assert "\n" not in str(caught.value)


def test_a_python_that_is_too_old_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SetupError, match=r"3\.11 or newer is needed"):
        bootstrap.require_python(["run"])


@pytest.mark.parametrize(("system", "machine"), [("Windows", "AMD64"), ("Linux", "riscv64")])
def test_a_platform_without_binaries_is_refused(monkeypatch: pytest.MonkeyPatch, system: str, machine: str) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    with pytest.raises(SetupError, match="not supported"):
        bootstrap.require_platform()


def test_an_unknown_command_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.main(["fly"]) == bootstrap.EXIT_SETUP
    assert "no command 'fly'" in capsys.readouterr().out
