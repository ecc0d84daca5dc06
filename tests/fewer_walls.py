"""A machine on which code of models lacks a wall."""

from pathlib import Path

import pytest

from tools_app.sandbox.process import ENVIRONMENT


def without_namespaces(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let `unshare` fail before every sandbox, as it does in most containers."""
    failing = folder / "unshare"
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{folder}:{ENVIRONMENT['PATH']}")
