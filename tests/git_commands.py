"""Commands of git as tests give them to a repository."""

import os
import subprocess
from pathlib import Path


def git(folder: Path, *words: str) -> str:
    """Output of a command, with the repository's configuration and none of this machine."""
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *names, *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout
