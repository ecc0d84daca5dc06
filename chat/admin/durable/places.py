"""The conversation that a fiber works for: by its turn, its scope, or what its payload names.

A fixed number of queries for a page of a list.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from chat.core import durable_names
from chat.models import AgentInstance, AgentRun, Turn
from fibers.models import Fiber
from fibers.models.schedules import ScheduleRun

_OURS: Final = frozenset(value for name, value in vars(durable_names).items() if name.isupper())
_SEALS: Final = frozenset({durable_names.SEALED_TURN_FIBER, durable_names.AGENT_FIBER_SEALED})


@dataclass(frozen=True, slots=True, kw_only=True)
class FiberPlace:
    """The conversation and the turn of a fiber. Each is `None` where there is no such thing, or no longer."""

    instance: AgentInstance | None
    turn_id: str | None


def places_of(fibers: Sequence[Fiber]) -> dict[str, FiberPlace]:
    """Find the places of these fibers, by the keys of the latter. At most five queries."""
    turns = dict(Turn.objects.filter(fiber__in=fibers).values_list("fiber_id", "pk"))
    runs = ScheduleRun.objects.filter(fiber__in=fibers).values_list("fiber_id", "schedule__scope")
    scopes = {str(pk): scope for pk, scope in runs if scope}
    named = {fiber.pk: _named(fiber, turns.get(fiber.pk), scopes.get(fiber.pk)) for fiber in fibers}
    found = {
        "turn_id": _by_key(Turn.objects.filter(pk__in=_all(named, "turn_id")).values_list("pk", "instance_id")),
        "run_id": _by_key(AgentRun.objects.filter(pk__in=_all(named, "run_id")).values_list("pk", "parent_id")),
    }
    ids = {pk: _instance_id(names, found) for pk, names in named.items()}
    instances = AgentInstance.objects.in_bulk([each for each in ids.values() if each])
    return {pk: FiberPlace(instance=instances.get(each or ""), turn_id=turns.get(pk)) for pk, each in ids.items()}


def _named(fiber: Fiber, turn_id: str | None, schedule_scope: str | None) -> dict[str, str]:
    """The ids that name its conversation. Payloads of functions that are not ours say what their authors mean."""
    if fiber.scope or schedule_scope:
        return {"instance_id": str(fiber.scope or schedule_scope)}
    if turn_id is not None:
        return {"turn_id": turn_id}
    family = fiber.name.partition(":")[0]
    payload = fiber.payload
    if family in _SEALS and isinstance(payload, dict):
        payload = payload["payload"]  # that of the fiber that was lost
    if family not in _OURS or not isinstance(payload, dict):
        return {}
    return {key: str(payload[key]) for key in ("instance_id", "turn_id", "run_id") if payload.get(key)}


def _all(named: Mapping[str, Mapping[str, str]], key: str) -> list[str]:
    return [names[key] for names in named.values() if key in names]


def _by_key(rows: Iterable[tuple[object, str | None]]) -> dict[str, str]:
    return {str(key): instance_id for key, instance_id in rows if instance_id}


def _instance_id(names: Mapping[str, str], found: Mapping[str, Mapping[str, str]]) -> str | None:
    if "instance_id" in names:
        return names["instance_id"]
    return next((by[names[key]] for key, by in found.items() if names.get(key) in by), None)
