"""Prepares a command that runs turns in its own process."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError
from django.test.utils import override_settings

from chat.agent import declared, registry
from chat.http.health import readiness

_IN_MEMORY: Final = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


def agent_name(given: str) -> str:
    """Find the route name of an agent by it, or by its class name. Errors: `CommandError` with those there are."""
    names = [info.name for info in registry.list_agents()]
    for name in (given, declared.kebab(given)):
        if name in names:
            return name
    raise CommandError(f"There is no agent {given!r}. There are: {', '.join(names)}.")


@contextmanager
def alone() -> Iterator[None]:
    """Notify no worker; without Redis the stream stays in the memory of this process."""
    changes: dict[str, Any] = {"THINK_FIBER_DISPATCH": "manual"}
    if not getattr(settings, "REDIS_URL", "") or readiness().parts["redis"] != "ok":
        changes |= {"REDIS_URL": "", "CHANNEL_LAYERS": _IN_MEMORY}
    with override_settings(**changes):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Keep log lines out of what the command prints; errors still show."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
