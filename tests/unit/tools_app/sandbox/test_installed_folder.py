"""The folder of what code may load: below the data directory of the installation, unless a setting says otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("given", [False, True])
def test_packages_are_installed_below_the_data_directory(tmp_path: Path, given: bool) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("THINK_", "DJANGO_"))}
    environ |= {
        "DJANGO_SETTINGS_MODULE": "thinkproject.settings",
        "THINK_DATA_DIR": str(tmp_path / "data"),
        "HOME": str(tmp_path / "home"),
    }
    wanted = tmp_path / "data" / "sandbox"
    if given:
        wanted = tmp_path / "elsewhere"
        environ["THINK_SANDBOX_PACKAGES_DIR"] = str(wanted)
    command = [sys.executable, "manage.py", "install_sandbox_packages"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"0 packages for code are in {wanted}."
