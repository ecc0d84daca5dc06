"""Effects over a table that is not of this project: users, whose first name is a status here."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import QuerySet

from fibers.effects.registered import EffectEvent, effects


@pytest.fixture(autouse=True)
def _no_effects() -> Iterator[None]:
    yield
    for effect in effects():
        asyncio.run(effect.dispose())


class Seen:
    """A handler that notes its events: kind, name of the row's user and its status then."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        self.keys: list[str] = []

    async def __call__(self, event: EffectEvent) -> None:
        user: Any = event.row
        name, status = (user.username, user.first_name) if user is not None else (event.object_pk, "gone")
        self.events.append((event.kind.value, name, status))
        self.keys.append(event.key)

    def take(self) -> list[tuple[str, str, str]]:
        found, self.events = self.events, []
        return sorted(found)


@pytest.fixture
def seen() -> Seen:
    return Seen()


def pending() -> QuerySet[User]:
    return User.objects.filter(first_name="pending")


def add(name: str, status: str = "pending") -> User:
    return User.objects.create(username=name, first_name=status)
