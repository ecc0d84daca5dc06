"""Durable functions by name, and the system checks about them."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections

from fibers import registry
from fibers.checks import check_durables, check_effects, check_settings
from fibers.effects.declaring import create_effect
from fibers.errors import UnknownDurable
from fibers.registry import durable, find_durable, get_durable

NAMES = ("unit.one", "unit.sealer")


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    for name in NAMES:
        registry.forget(name)


def ids(messages: list[Any]) -> list[str]:
    return [message.id for message in messages]


def test_a_name_finds_its_function() -> None:
    @durable("unit.one", resume_seconds=5)
    async def one(ctx: object) -> None: ...

    assert get_durable("unit.one").function is one
    assert registry.resume_windows()["unit.one"] == 5


def test_an_unknown_name_is_an_error_with_the_name() -> None:
    assert find_durable("unit.none") is None
    with pytest.raises(UnknownDurable, match=r"unit\.none"):
        get_durable("unit.none")


def test_the_same_name_twice_is_a_system_check() -> None:
    @durable("unit.one")
    async def one(ctx: object) -> None: ...

    assert "fibers.E001" not in ids(check_durables())

    @durable("unit.one")
    async def two(ctx: object) -> None: ...

    found = [message for message in check_durables() if message.id == "fibers.E001"]
    assert len(found) == 1
    assert "one" in found[0].msg
    assert "two" in found[0].msg


def test_registering_the_same_function_again_is_no_clash() -> None:
    for _ in range(2):

        @durable("unit.one")
        async def one(ctx: object) -> None: ...

    assert ids(check_durables()) == []


def test_a_function_that_is_not_async_is_a_system_check() -> None:
    @durable("unit.one")  # type: ignore[arg-type]  # the mistake under test
    def one(ctx: object) -> None: ...

    assert ids(check_durables()) == ["fibers.E002"]


def test_an_unknown_sealed_function_is_a_system_check() -> None:
    @durable("unit.one", sealed="unit.sealer")
    async def one(ctx: object) -> None: ...

    assert ids(check_durables()) == ["fibers.E005"]

    @durable("unit.sealer")
    async def sealer(ctx: object) -> None: ...

    assert ids(check_durables()) == []


def test_settings_without_sense_are_system_checks(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ids(check_settings()) == []
    settings.THINK_FIBER_HEARTBEAT_SECONDS = 6.0
    settings.THINK_FIBER_DISPATCH = "pigeon"
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.sqlite3")
    monkeypatch.setitem(settings.DATABASES["default"], "OPTIONS", {})
    assert ids(check_settings()) == ["fibers.E003", "fibers.E004", "fibers.E006"]


async def test_effects_are_refused_over_a_database_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections["default"], "vendor", "sqlite")
    monkeypatch.setitem(connections["default"].settings_dict, "NAME", ":memory:")
    assert check_effects() == []
    effect = create_effect("unit.effect", User.objects.all, on_enter=print)
    try:
        (found,) = check_effects()
        assert (found.id, "no other one sees" in found.msg) == ("fibers.E007", True)
    finally:
        await effect.dispose()
