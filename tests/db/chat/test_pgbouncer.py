"""PostgreSQL behind PgBouncer in transaction mode: each transaction may have another connection of the server."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test import Client
from django.urls import reverse

from chat.models import AgentInstance
from chat.streams.logs import database_log
from chat.streams.records import Record
from tests.acceptance.product import wait_for
from tests.db.chat.conftest import say
from tests.mcp.guarded import free_port

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no pooler"),
    pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed"),
]
POOL = 4
CONFIG = """\
[databases]
* = host={host} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = {pool}
unix_socket_dir =
"""


@pytest.fixture
def pooled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Connections of this process lead through a PgBouncer with fewer connections than threads."""
    assert PROGRAM is not None
    settings: dict[str, Any] = connection.settings_dict
    options = dict(settings["OPTIONS"])
    port = free_port()
    config = tmp_path_factory.mktemp("pgbouncer") / "pgbouncer.ini"
    config.write_text(CONFIG.format(host=options["host"], user=settings["USER"], port=port, pool=POOL))
    for path in (config, *config.parents[:3]):
        path.chmod(0o755)
    owner = pwd.getpwuid(Path(options["host"]).stat().st_uid).pw_name  # who may use the socket; it does not run as root
    who = ["-u", owner] if os.getuid() == 0 else []
    program = subprocess.Popen([PROGRAM, *who, str(config)], stderr=subprocess.DEVNULL)
    connections.close_all()
    connection.close_pool()  # type: ignore[attr-defined]  # of the wrapper for PostgreSQL
    settings.update(HOST="127.0.0.1", PORT=str(port))
    settings["OPTIONS"] = {name: value for name, value in options.items() if name != "host"}
    try:
        wait_for(is_there, what="the pooler")
        yield
    finally:
        connections.close_all()
        connection.close_pool()  # type: ignore[attr-defined]  # as above
        settings.update(HOST="", PORT="", OPTIONS=options)
        program.kill()
        program.wait()


def is_there() -> bool:
    settings = connection.settings_dict
    try:
        with psycopg.connect(
            host=settings["HOST"], port=settings["PORT"], user=settings["USER"], dbname=settings["NAME"]
        ):
            return True
    except psycopg.OperationalError:
        return False


def test_searches_and_old_turns_are_read_by_many_at_once(pooled: None, alice: User, make_instance: Any) -> None:
    instance: AgentInstance = make_instance(alice, "talk", title="Garden")
    for number in range(12):
        say(instance, f"question-{number}", f"answer-{number}")
    with transaction.atomic():
        database_log.write_missing("old", [Record(at, f'{{"n":{at}}}') for at in range(500)])

    def look(number: int) -> int:
        client = Client()
        client.force_login(alice)
        try:
            found = [client.get(path).status_code for path in ("/api/v1/search?q=question", "/api/v1/instances")]
            assert next(each.offset for each in database_log.cold_records("old", number, 100)) == number
            return max(found)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=2 * POOL) as threads:
        assert set(threads.map(look, range(40))) == {200}


def test_pages_and_searches_of_the_admin_are_read_by_many_at_once(
    pooled: None, alice: User, make_instance: Any
) -> None:
    instance: AgentInstance = make_instance(alice, "talk", title="Garden")
    for number in range(5):
        say(instance, f"question-{number}", f"answer-{number}")
    boss = User.objects.create_superuser("boss", password="boss-password")
    names = {f"admin:{model._meta.app_label}_{model._meta.model_name}": model for model in site._registry}
    lists = [reverse(f"{name}_changelist") for name in names]
    firsts = {name: model._default_manager.first() for name, model in names.items()}
    pages = [reverse(f"{name}_change", args=[row.pk]) for name, row in firsts.items() if row is not None]
    assert len(pages) > 2
    paths = [reverse("admin:index"), *pages, *lists, *(f"{path}?q=question" for path in lists)]

    def look(path: str) -> tuple[str, int]:
        client = Client()
        client.force_login(boss)
        try:
            return path, client.get(path, follow=True).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(max_workers=2 * POOL) as threads:
        assert {found for found in threads.map(look, paths) if found[1] != 200} == set()
