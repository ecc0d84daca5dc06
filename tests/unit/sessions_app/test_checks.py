"""System checks of conversation storage."""

from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.checks.registry import registry
from django.test import override_settings

from sessions_app.checks import check_database

pytestmark = pytest.mark.filterwarnings("ignore:Overriding setting DATABASES")


def ids(**database: Any) -> list[str | None]:
    with override_settings(DATABASES={"default": database}):
        return [found.id for found in check_database()]


@pytest.mark.parametrize("engine", ["django.db.backends.mysql", "django.db.backends.oracle"])
def test_another_database_is_an_error(engine: str) -> None:
    assert ids(ENGINE=engine) == ["think_sessions.E001"]


def test_a_strict_isolation_level_is_an_error() -> None:
    engine = "django.db.backends.postgresql"
    assert ids(ENGINE=engine, OPTIONS={"isolation_level": 4}) == ["think_sessions.E002"]
    assert ids(ENGINE=engine, OPTIONS={"isolation_level": 2}) == []
    assert ids(ENGINE=engine) == []
    assert ids(ENGINE="django.db.backends.sqlite3") == []


def test_an_old_sqlite_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 34, 1))
    assert ids(ENGINE="thinkproject.sqlite3") == ["think_sessions.E003"]
    assert ids(ENGINE="django.db.backends.postgresql") == []


def test_the_check_is_registered() -> None:
    assert check_database in registry.registered_checks
    assert run_checks(tags=["sessions"]) == []
