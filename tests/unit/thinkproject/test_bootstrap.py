"""From a bare Python: what is checked, when packages are installed, and what is said when that is impossible."""

import json
import sys
from pathlib import Path

import pytest

from thinkproject.run import bootstrap
from thinkproject.run.bootstrap import SetupError
from thinkproject.run.suite_runs import not_tested


@pytest.fixture
def bare_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
def installs(bare_project: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the installer was asked for, call by call."""
    asked: list[list[str]] = []

    def make() -> None:
        asked.append(["environment"])
        (bare_project / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        (bare_project / ".venv" / "bin" / "python").touch()

    monkeypatch.setattr(bootstrap, "_make_environment", make)
    monkeypatch.setattr(bootstrap, "_sync", asked.append)
    return asked


def test_the_second_time_nothing_is_installed(installs: list[list[str]]) -> None:
    bootstrap.install(["base"])
    bootstrap.install(["base"])
    assert installs == [["environment"], ["base"]]


def test_a_changed_lock_is_installed(installs: list[list[str]], bare_project: Path) -> None:
    bootstrap.install(["base"])
    (bare_project / "requirements" / "base.txt").write_text("base==2\n", encoding="utf-8")
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
    installs: list[list[str]], bare_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_names: list[str]) -> None:
        raise SetupError("no network")

    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "_sync", fail)
        with pytest.raises(SetupError):
            bootstrap.install(["base"])
    bootstrap.install(["base"])
    assert installs[-1] == ["base"]


def test_another_python_makes_a_new_environment(installs: list[list[str]], bare_project: Path) -> None:
    bootstrap.install(["base"])
    stamp = json.loads((bare_project / ".venv" / ".installed.json").read_text(encoding="utf-8"))
    stamp["python"] = "CPython 3.10.0 x86_64"
    (bare_project / ".venv" / ".installed.json").write_text(json.dumps(stamp), encoding="utf-8")
    (bare_project / ".venv" / "bin" / "python").unlink()
    (bare_project / ".venv" / "bin").rmdir()
    bootstrap.install(["base"])
    assert installs == [["environment"], ["base"], ["environment"], ["base"]]


def test_a_python_without_venv_names_what_to_install(bare_project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SetupError, match=rf"apt install python{sys.version_info.major}\.\d+-venv") as caught:
        bootstrap.install(["base"])
    assert "\n" not in str(caught.value)


def test_a_python_that_is_too_old_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
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


def _note_calls(path: Path, notes: Path) -> None:
    """Put a program at `path` that writes its arguments and what it should trust as a line of JSON."""
    names = ("UV_SYSTEM_CERTS", "DENO_TLS_CA_STORE", "PIP_CERT")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"seen = {{name: os.environ.get(name) for name in {names!r}}}\n"
        f"open({str(notes)!r}, 'a').write(json.dumps([sys.argv[1:], seen]) + '\\n')\n",
        encoding="utf-8",
    )
    path.chmod(0o755)


def _calls(notes: Path) -> list[tuple[list[str], dict[str, str | None]]]:
    return [(words, seen) for words, seen in map(json.loads, notes.read_text(encoding="utf-8").splitlines())]


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list of authorities of this machine, and nothing that says which one to take."""
    path = tmp_path / "ca-certificates.crt"
    path.write_text("a company's own authority", encoding="utf-8")
    monkeypatch.setattr(bootstrap, "CERTIFICATE_BUNDLES", (tmp_path / "missing.crt", path))
    for name in ("UV_SYSTEM_CERTS", "DENO_TLS_CA_STORE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return path


def test_packages_are_fetched_with_the_authorities_of_this_machine(bare_project: Path, bundle: Path) -> None:
    notes = bare_project / "notes"
    _note_calls(bare_project / ".venv" / "bin" / "uv", notes)
    bootstrap._sync(["base"])
    [(words, seen)] = _calls(notes)
    assert words[:2] == ["pip", "sync"]
    assert seen["UV_SYSTEM_CERTS"] == "true"


def test_the_installer_itself_is_fetched_with_the_authorities_of_this_machine(bare_project: Path, bundle: Path) -> None:
    notes = bare_project / "notes"
    _note_calls(bare_project / ".venv" / "bin" / "python", notes)
    assert bootstrap._pip_certificates() == ["--cert", str(bundle)]
    assert _calls(notes)[0][0][:4] == ["-m", "pip", "config", "list"]


def test_a_configured_authority_of_pip_is_kept(bare_project: Path, bundle: Path) -> None:
    pip = bare_project / ".venv" / "bin" / "python"
    pip.parent.mkdir(parents=True)
    pip.write_text("#!/bin/sh\necho \"global.cert='/somewhere/else.pem'\"\n", encoding="utf-8")
    pip.chmod(0o755)
    assert bootstrap._pip_certificates() == []


def test_builds_and_tests_of_pages_trust_this_machine(bare_project: Path, bundle: Path) -> None:
    notes = bare_project / "notes"
    _note_calls(bare_project / "deno", notes)
    assert bootstrap._call([str(bare_project / "deno"), "install"]) == 0
    [(_words, seen)] = _calls(notes)
    assert seen == {"UV_SYSTEM_CERTS": "true", "DENO_TLS_CA_STORE": "mozilla,system", "PIP_CERT": None}


def test_what_is_set_to_be_trusted_wins(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_SYSTEM_CERTS", "false")
    monkeypatch.setenv("DENO_TLS_CA_STORE", "mozilla")
    environ = bootstrap.trusting_this_machine()
    assert (environ["UV_SYSTEM_CERTS"], environ["DENO_TLS_CA_STORE"]) == ("false", "mozilla")


def test_a_machine_without_authorities_leaves_uv_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "CERTIFICATE_BUNDLES", (tmp_path / "missing.crt",))
    monkeypatch.delenv("UV_SYSTEM_CERTS", raising=False)
    assert "UV_SYSTEM_CERTS" not in bootstrap.trusting_this_machine()


def test_the_last_lines_say_what_was_not_tested_and_why(tmp_path: Path) -> None:
    report = tmp_path / "report"
    records = [
        {"database": "sqlite", "skipped": {"no Chromium": 149, "SQLite has one writer at a time": 2}},
        {"database": "postgres", "skipped": {}},
    ]
    report.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    assert not_tested(report) == [
        "not tested (sqlite): 149, because: no Chromium",
        "not tested (sqlite): 2, because: SQLite has one writer at a time",
    ]
