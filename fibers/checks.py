"""System checks of durable execution. Each id is documented in `docs/design/fibers.md`."""

import inspect
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.db import DEFAULT_DB_ALIAS, connections, router

from fibers.conf import fiber_settings
from fibers.core.capabilities import capabilities_of
from fibers.effects.registered import effects
from fibers.registry import clashes, durables, find_durable


@register("fibers")
def check_durables(**_: object) -> list[CheckMessage]:
    """E001 a name twice, E002 not async, E005 an unknown `sealed` function."""
    found: list[CheckMessage] = [
        Error(
            f"Two durable functions are named {first.name!r}: {first.source} and {second.source}.",
            hint="Rows that are waiting carry the name: rename the newer one.",
            id="fibers.E001",
        )
        for first, second in clashes()
    ]
    for entry in durables():
        if not inspect.iscoroutinefunction(entry.function):
            found.append(Error(f"{entry.source} is durable but not `async def`.", id="fibers.E002"))
        if entry.sealed and find_durable(entry.sealed) is None:
            message = f"{entry.source} names {entry.sealed!r} as its `sealed` function, which does not exist."
            found.append(Error(message, id="fibers.E005"))
    return found


@register("fibers")
def check_effects(**_: object) -> list[CheckMessage]:
    """E007 an effect whose queryset is of a database that cannot carry it, or the one with the entries is."""
    if not effects():
        return []
    aliases = {DEFAULT_DB_ALIAS: "its entries are there"}
    aliases |= {router.db_for_read(effect.model): f"{effect.name!r} watches rows there" for effect in effects()}
    found: list[CheckMessage] = []
    for alias, reason in aliases.items():
        here = connections[alias]
        name, has_transactions = str(here.settings_dict["NAME"] or ""), bool(here.features.supports_transactions)
        lack = capabilities_of(here.vendor, name, has_transactions=has_transactions).lack
        if lack:
            message = f"Effects of querysets cannot use the database {alias!r}: {lack}."
            found.append(Error(message, hint=f"Why it is used: {reason}.", id="fibers.E007"))
    return found


@register("fibers")
def check_settings(**_: object) -> list[CheckMessage]:
    """E003 a heartbeat too slow for the lease, E004 SQLite without IMMEDIATE, E006 an unknown way of dispatch."""
    found: list[CheckMessage] = []
    if fiber_settings.heartbeat_seconds * 2 > fiber_settings.lease_seconds:
        found.append(
            Error(
                "THINK_FIBER_HEARTBEAT_SECONDS is more than half of THINK_FIBER_LEASE_SECONDS.",
                hint="One missed heartbeat must not cost a worker its fibers.",
                id="fibers.E003",
            )
        )
    database: dict[str, Any] = settings.DATABASES["default"]
    is_immediate = str(database.get("OPTIONS", {}).get("transaction_mode", "")).upper() in {"IMMEDIATE", "EXCLUSIVE"}
    if database["ENGINE"].endswith("sqlite3") and not is_immediate:
        found.append(
            Error(
                "SQLite needs OPTIONS['transaction_mode'] = 'IMMEDIATE'.",
                hint="Without it a transaction that reads and then writes fails as locked whenever another one writes.",
                id="fibers.E004",
            )
        )
    if fiber_settings.dispatch not in {"celery", "manual"}:
        found.append(Error("THINK_FIBER_DISPATCH must be 'celery' or 'manual'.", id="fibers.E006"))
    return found
