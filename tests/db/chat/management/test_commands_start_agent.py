"""`start_agent` writes what runs, and overwrites nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from tests.house.repository import ROOT

AGENT = """\
from chat.think import Think


class SupportDesk(Think):
    title = "Support desk"
    description = "Say in one line what it is for."
    icon = "chat"
    suggestions = ("What can you do?",)
    workspace_tools = False  # tools for files cost 1,200 tokens in each call; see docs/howto/keep-an-agent-small.md

    def get_model(self):
        return "default"
"""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])


@pytest.mark.parametrize("name", ["SupportDesk", "support_desk", "support-desk", "support desk"])
def test_one_agent_whatever_way_its_name_is_written(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("start_agent", name)
    assert (tmp_path / "support_desk" / "agents.py").read_text(encoding="utf-8") == AGENT
    said = capsys.readouterr().out
    assert "wrote support_desk/agents.py" in said
    assert "\nServe it:     THINK_APPS=support_desk make run\n" in said


def test_a_package_elsewhere_is_served_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("start_agent", "SupportDesk", "--directory", "apart")
    assert "PYTHONPATH=apart THINK_APPS=support_desk make run" in capsys.readouterr().out


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    call_command("start_agent", "SupportDesk")
    with pytest.raises(CommandError, match=r"support_desk exists; nothing was written. To add to it: --app support_d"):
        call_command("start_agent", "SupportDesk")
    with pytest.raises(CommandError, match=r"agents\.py exists; nothing was written"):
        call_command("start_agent", "OtherDesk", "--app", "support_desk")
    assert (tmp_path / "support_desk" / "agents.py").read_text(encoding="utf-8") == AGENT


def test_an_app_keeps_what_it_has(tmp_path: Path) -> None:
    app = tmp_path / "shop_for_start_agent"
    app.mkdir()
    (app / "__init__.py").write_text("KEPT = True\n", encoding="utf-8")
    call_command("start_agent", "SupportDesk", "--app", app.name)
    assert (app / "agents.py").read_text(encoding="utf-8") == AGENT
    assert (app / "__init__.py").read_text(encoding="utf-8") == "KEPT = True\n"
    assert "from shop_for_start_agent.agents import SupportDesk" in (app / "tests" / "test_agents.py").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Assistant"], "an agent 'assistant' already"),
        (["Json"], "a module 'json' already"),
        (["9lives"], "'9lives' cannot name a class"),
        (["../etc"], "cannot name a class"),
        (["Kiosk", "--app", "no_such_package"], "no package that can be imported"),
    ],
)
def test_a_name_that_cannot_be(words: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("start_agent", *words)
    assert not list(tmp_path.iterdir())


def test_the_printed_commands_run_with_an_interpreter_that_has_django(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # as where no environment is activated
    call_command("start_agent", "SupportDesk")
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Talk to it:")]
    words = line.split()
    python = Path(words[words.index("manage.py") - 1])
    code = "import django; print(django.__name__)"
    assert subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout == "django\n"


def test_an_activated_environment_is_simply_python(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    call_command("start_agent", "SupportDesk")
    assert " python manage.py agent_chat support-desk\n" in capsys.readouterr().out


def test_the_package_may_be_served_before_it_is_there(tmp_path: Path) -> None:
    given = {"THINK_APPS": "support_desk", "PYTHONPATH": str(tmp_path), "THINK_DATA_DIR": str(tmp_path / "var")}
    environ = {**os.environ, **given, "DJANGO_SETTINGS_MODULE": "thinkproject.settings"}
    command = [sys.executable, str(ROOT / "manage.py")]

    def manage(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*command, *words], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert "THINK_APPS names 'support_desk'" in manage("check").stderr
    made = manage("start_agent", "SupportDesk")
    assert (made.returncode, "THINK_APPS=support_desk" in made.stdout) == (0, True), made.stderr
    assert manage("check").returncode == 0
