"""What can be wrong at start is one clear line, and nothing keeps running."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.ops.tree import Run, pids_of

pytestmark = pytest.mark.timeout(300)


def _error_of(run: Run) -> str:
    assert run.start().wait(seconds=200) != 0
    assert pids_of(run.data_dir) == {}
    lines = [line for line in run.output.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, run.output
    assert "Traceback" not in run.output
    return lines[0]


def test_a_port_in_use(make_run: Callable[..., Run]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        error = _error_of(make_run(port=port))
    assert f"port {port} on 127.0.0.1 cannot be used" in error
    assert f"PORT={port + 1} make run" in error


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysqlite://nonsense", "DATABASE_URL is not an address of a database"),
        ("postgres://somebody:secret-word@127.0.0.1:9/none", "Check DATABASE_URL"),
        ("sqlite:////dev/null/think.sqlite3", "Check DATABASE_URL"),
    ],
)
def test_a_broken_database_url(make_run: Callable[..., Run], url: str, said: str) -> None:
    error = _error_of(make_run(DATABASE_URL=url))
    assert said in error
    assert "secret-word" not in error


def test_a_data_directory_that_cannot_be_written(make_run: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory", encoding="utf-8")
    assert "cannot be" in _error_of(make_run(data_dir=tmp_path / "file" / "data"))


def test_an_unknown_setting_names_the_nearest_known_one(make_run: Callable[..., Run]) -> None:
    error = _error_of(make_run(THINK_MODLE="openai/gpt"))
    assert "THINK_MODLE" in error
    assert "Did you mean THINK_MODEL?" in error


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PORT", "eighty", "PORT is 'eighty'; expected a whole number"),
        ("THINK_APPS", "no_such_app", "THINK_APPS names 'no_such_app'"),
        ("REDIS_URL", "http://127.0.0.1", "REDIS_URL is not an address of a Redis"),
        ("ALLOWED_HOSTS", "chat.example.com", "SECRET_KEY (or SECRET_KEY_FILE) is required"),
        ("THINK_WEB_SERVER", "other", "THINK_WEB_SERVER is 'other'; expected uvicorn or daphne"),
        ("THINK_NO_RELOAD", "maybe", "THINK_NO_RELOAD is 'maybe'"),
    ],
)
def test_a_setting_that_cannot_be_followed(make_run: Callable[..., Run], name: str, value: str, said: str) -> None:
    assert said in _error_of(make_run(**{name: value}))
