"""What environment variables make of the settings, each time in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SHOW = """
import json, sys
from thinkproject import settings
print(json.dumps({name: getattr(settings, name) for name in sys.argv[1:]}, default=str))
"""


def run(folder: Path, *names: str, **values: str) -> "subprocess.CompletedProcess[str]":
    """Load the settings with these variables alone, and print some."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    environ = {**kept, "THINK_DATA_DIR": str(folder), **values}
    words = [sys.executable, "-c", SHOW, *names]
    return subprocess.run(words, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def loaded(folder: Path, *names: str, **values: str) -> dict[str, Any]:
    done = run(folder, *names, **values)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_variables_of_make_run(tmp_path: Path) -> None:
    given = {"THINK_BIND": "0.0.0.0", "THINK_SETTINGS": "mine.settings", "THINK_WORKER_THREADS": "7"}
    names = ("BIND", "SETTINGS_MODULE", "WORKER_THREADS", "DEBUG", "THINK_SANDBOX")
    found = loaded(tmp_path, *names, **given, THINK_DEBUG="1", THINK_SANDBOX='{"runs": 3}')
    assert [found[name] for name in names[:4]] == ["0.0.0.0", "mine.settings", 7, True]
    assert "runs=3" in found["THINK_SANDBOX"]


def test_variables_of_a_production_server(tmp_path: Path) -> None:
    given = {"ALLOWED_HOSTS": "chat.example.com", "SECRET_KEY": "k" * 50, "THINK_TRUST_PROXY": "1"}
    names = ("SECURE_HSTS_SECONDS", "SECURE_PROXY_SSL_HEADER", "LOG_LEVEL", "LOG_FORMAT")
    logged = {"THINK_LOG_LEVEL": "debug", "THINK_LOG_FORMAT": "json"}
    found = loaded(tmp_path, *names, **given, **logged, THINK_HSTS_SECONDS="60")
    assert list(found.values()) == [60, ["HTTP_X_FORWARDED_PROTO", "https"], "DEBUG", "json"]
    refused = run(tmp_path, **given, THINK_DEBUG="1")
    assert "THINK_DEBUG shows internals to everybody" in refused.stderr


@pytest.mark.parametrize(
    ("name", "secret", "setting"),
    [
        ("DATABASE_URL_FILE", "postgres://me@db.example/chat", "DATABASES"),
        ("REDIS_URL_FILE", "redis://redis.example:6379/0", "REDIS_URL"),
        ("OPENAI_API_KEY_FILE", "sk-of-a-file", "OPENAI_API_KEY"),
        ("SECRET_KEY_FILE", "k" * 50, "SECRET_KEY"),
    ],
)
def test_secrets_come_from_files(tmp_path: Path, name: str, secret: str, setting: str) -> None:
    path = tmp_path / "secret"
    path.write_text(f"{secret}\n")
    own = "db.example" if name == "DATABASE_URL_FILE" else secret
    assert own in str(loaded(tmp_path / "data", setting, **{name: str(path)})[setting])


def test_a_removed_variable_ends_the_start_with_what_to_do(tmp_path: Path) -> None:
    refused = run(tmp_path, THINK_BROWSER_RUNS="3")
    assert refused.returncode != 0
    assert (
        """THINK_BROWSER_RUNS is not a setting any more. Set THINK_BROWSER='{"runs": …}' instead.""" in refused.stderr
    )
