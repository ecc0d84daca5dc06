"""The trusted runners are typed, although they are JavaScript."""

import subprocess

import pytest

from tools_app.sandbox.process import RUNNER, deno_path


@pytest.mark.parametrize("command", ["check", "lint", "fmt --check"])
def test_the_runners_are_checked(command: str) -> None:
    done = subprocess.run(
        [deno_path(), *command.split(), "."], cwd=RUNNER.parent, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
