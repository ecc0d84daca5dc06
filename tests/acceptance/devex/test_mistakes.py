"""A mistake in a user's own code or environment is named: their file and line, or one clear line."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.product import ROOT, base_environ


def check(tmp_path: Path, agents: str, *, apps: str = "shop", files: str = "") -> "subprocess.CompletedProcess[str]":
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text(files, encoding="utf-8")
    (package / "agents.py").write_text(agents, encoding="utf-8")
    environ = base_environ(tmp_path / "data") | {"PYTHONPATH": str(tmp_path), "THINK_APPS": apps}
    words = [sys.executable, "manage.py", "check"]
    return subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("agents", "line", "said"),
    [
        ("from chat.think import Think\n\nclass A(Think):\n    x = nothing\n", 4, "NameError: name 'nothing'"),
        ("import no_such_library\n", 1, "ModuleNotFoundError: No module named 'no_such_library'"),
        ("def broken(:\n", 1, "SyntaxError"),
    ],
)
def test_an_error_in_agents_names_their_file_and_line(tmp_path: Path, agents: str, line: int, said: str) -> None:
    done = check(tmp_path, agents)
    assert done.returncode == 1
    *_, last = done.stderr.strip().splitlines()
    assert last.startswith(said)
    places = [text for text in done.stderr.splitlines() if text.strip().startswith("File ")]
    assert f'"{tmp_path}/shop/agents.py", line {line}' in places[-1]


def test_an_app_without_agents_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "__init__.py").touch()
    assert check(tmp_path, "", apps="shop,plain").returncode == 0


@pytest.mark.parametrize("name", ["no_such_app", "no_such_app.apps.Config", "shop.no_such_part"])
def test_a_missing_app_is_one_line(tmp_path: Path, name: str) -> None:
    done = check(tmp_path, "", apps=name)
    assert done.returncode == 1
    expected = f"error: THINK_APPS names {name!r}, which cannot be imported; is it on PYTHONPATH or installed?\n"
    assert done.stderr == expected


@pytest.mark.smoke
def test_two_agents_of_one_name_are_named(tmp_path: Path) -> None:
    done = check(tmp_path, "from chat.think import Think\n\nclass Assistant(Think):\n    pass\n")
    assert done.returncode == 1
    said = "Two agents claim the route name 'assistant': chat.agents.Assistant and shop.agents.Assistant."
    assert said in done.stderr.strip().splitlines()[-1]
