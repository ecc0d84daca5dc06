"""The composition: Celery, settings, static files, headers."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from celery import current_app
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from kombu.transport.redis import Channel
from pytest_django import Settings

from thinkproject.celery import app
from thinkproject.web import static_files


def test_every_process_talks_to_our_broker() -> None:
    app.loader.import_default_modules()
    assert current_app.conf.broker_url == app.conf.broker_url == django_settings.CELERY_BROKER_URL
    assert not current_app.conf.task_acks_late
    assert not app.tasks["fibers.run_fiber"].acks_late
    assert not Channel.do_restore  # a lost Redis would end the worker
    assert current_app.conf.accept_content == ["json"]


def test_every_beat_entry_names_a_task_that_exists() -> None:
    app.loader.import_default_modules()
    for name, entry in app.conf.beat_schedule.items():
        assert entry["task"] in app.tasks, name


@pytest.mark.django_db
def test_the_periodic_prune_runs() -> None:
    app.loader.import_default_modules()
    app.tasks["think.prune"].apply().get()


@pytest.mark.django_db
def test_sqlite_writes_never_start_as_reads() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite only")
    with connection.cursor() as cursor:
        values = [cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "cache_size")]
    assert values == ["wal", -8000]
    assert connection.settings_dict["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


@pytest.mark.long
def test_the_deploy_checks_pass_in_production() -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "ALLOWED_HOSTS": "chat.example.com",
        "SECRET_KEY": "abcdefghij0123456789" * 4,
        "DATABASE_URL": "postgres://u:p@127.0.0.1:9/none",
        "REDIS_URL": "redis://127.0.0.1:9/0",
    }
    command = [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"]
    done = subprocess.run(
        command, cwd=django_settings.BASE_DIR, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_only_who_calls_models_imports_their_client() -> None:
    code = """
import sys
import thinkproject.asgi, chat.http.api.router, thinkproject.run.server, thinkproject.run.servers.uvicorn_server
print("openai" in sys.modules)
import thinkproject.celery
from celery.signals import worker_init
worker_init.send(sender=None)
print("openai" in sys.modules)
"""
    environ = {"PATH": os.environ["PATH"], "THINK_DATA_DIR": str(django_settings.TEST_DIR)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=django_settings.BASE_DIR, env=environ, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["False", "True"], done.stderr


_LATER = {"mcp", "mcp_types", "snowballstemmer"}
_WEB = "from thinkproject.run.server import load; load('uvicorn'); import chat.http.api.router"
_COMMAND = "import django; django.setup()"
_WORKER = """
import django
django.setup()
import chat.durables, fibers.tasks, thinkproject.celery, celery.bin.worker
from celery.signals import worker_init
worker_init.send(sender=None)
"""


@pytest.mark.parametrize(
    ("start", "later"),
    [(_WEB, {*_LATER, "aiohttp"}), (_COMMAND, {*_LATER, "aiohttp"}), (_WORKER, _LATER)],
    ids=["web", "command", "worker"],
)
def test_a_start_waits_for_no_package_that_is_needed_later(start: str, later: set[str]) -> None:
    """That of MCP alone takes most of a second to load, in each process of a start."""
    code = f"{start}\nimport sys; print({later!r} & set(sys.modules) or 'none')"
    environ = {"PATH": os.environ["PATH"], "THINK_DATA_DIR": str(django_settings.TEST_DIR)}
    environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=django_settings.BASE_DIR,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "none", done.stderr


@pytest.mark.parametrize("server", ["uvicorn", "daphne"])
def test_a_process_loads_the_server_that_it_runs(server: str) -> None:
    """Twisted takes a fifth of a second to load, in each process of a start."""
    code = f"import sys; from thinkproject.run.server import load; load({server!r}); print('twisted' in sys.modules)"
    environ = {"PATH": os.environ["PATH"], "THINK_DATA_DIR": str(django_settings.TEST_DIR)}
    environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=django_settings.BASE_DIR,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [str(server == "daphne")], done.stderr


@pytest.mark.django_db
def test_pages_have_a_strict_policy(client: Client) -> None:
    policy = client.get("/admin/login/").headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "object-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


@pytest.mark.django_db
def test_a_listed_origin_may_read_and_others_may_not(client: Client, settings: Settings) -> None:
    settings.CORS_ALLOWED_ORIGINS, settings.CORS_URLS_REGEX = ["http://localhost:5173"], "^/"
    listed = client.get("/health/live", headers={"Origin": "http://localhost:5173"})
    assert listed.headers["Access-Control-Allow-Origin"] == "http://localhost:5173"
    assert listed.headers["Access-Control-Allow-Credentials"] == "true"
    for origin in ("http://localhost:5174", "https://localhost:5173", "null"):
        other = client.get("/health/live", headers={"Origin": origin})
        assert "Access-Control-Allow-Origin" not in other.headers
        assert "origin" in other.headers["Vary"].lower()


@pytest.mark.django_db
def test_a_preflight_of_a_listed_origin_is_answered(client: Client, settings: Settings) -> None:
    settings.CORS_ALLOWED_ORIGINS, settings.CORS_URLS_REGEX = ["http://localhost:5173"], "^/"
    asked = {"Origin": "http://localhost:5173", "Access-Control-Request-Method": "POST"}
    answer = client.options("/api/v1/agents", headers=asked)
    assert answer.status_code == 200
    assert "POST" in answer.headers["Access-Control-Allow-Methods"]


@pytest.fixture
def live_file() -> Iterator[Path]:
    path = Path(django_settings.BASE_DIR) / "static" / "dist" / "zz-test.js"
    path.parent.mkdir(exist_ok=True)
    path.write_text("export default 1;\n", encoding="utf-8")
    yield path
    path.unlink()


async def _fetch(path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    async def fallback(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 418, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
    }
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.disconnect"}

    await asyncio.wait_for(static_files.StaticFiles(fallback)(scope, receive, send), 5)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], {k.decode(): v.decode() for k, v in sent[0]["headers"]}, body


async def test_a_static_file_is_served_where_it_is_edited(live_file: Path) -> None:
    status, headers, body = await _fetch("/static/think/zz-test.js")
    assert (status, body) == (200, b"export default 1;\n")
    assert headers["content-type"].startswith("text/javascript")
    assert headers["x-content-type-options"] == "nosniff"
    again = await _fetch("/static/think/zz-test.js", **{"if-modified-since": headers["last-modified"]})
    assert again[0] == 304


@pytest.mark.parametrize(
    "path", ["/static/../manage.py", "/static/..%2fmanage.py", "/static//etc/passwd", "/static/", "/"]
)
async def test_what_is_no_static_file_goes_on_to_django(path: str) -> None:
    assert (await _fetch(path))[0] == 418


@pytest.mark.django_db
def test_the_first_user_is_made_once_and_has_no_password() -> None:
    from thinkproject.run.prepare import first_user

    assert first_user() == first_user() == "me"
    user = User.objects.get()
    assert user.is_superuser
    assert not user.has_usable_password()
