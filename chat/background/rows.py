"""Rows of an agent's background work: their names, keys and payloads, and how they are shown."""

import hashlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, Literal

from chat.agent import declared
from chat.agent.base import Agent
from chat.agent.think import Think
from chat.agent.values.background import FiberInspection, FiberStart
from chat.core.durable_names import AGENT_RUN, TOOL_CALL
from chat.errors import FiberInvalid, FiberMethodMissing
from fibers.core.budget import read_incident
from fibers.core.states import FiberStatus, may_run_again
from fibers.models import Fiber, FiberQuerySet, FiberStep
from thinkproject.kernel.filling import filled
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size
from thinkproject.kernel.phrases import Phrase

MAX_TEXT: Final = 128
MAX_PAYLOAD_BYTES: Final = 1024 * 1024
MAX_METADATA_BYTES: Final = 16 * 1024
MAX_RETRIES: Final = 100
MAX_STEPS: Final = 200
"""How many steps a journal shows."""
RESOLUTIONS: Final = (FiberStatus.COMPLETED.value, FiberStatus.FAILED.value, FiberStatus.CANCELLED.value)
KEEP_ALIVE: Final = "keep_alive"
"""The name of the fiber that shows that an instance is at work."""
_MAX_NAME: Final = 180  # of a route, a dot and a method: the fiber's name has 200


def methods_of(agent_class: type[Agent]) -> list[str]:
    """The methods that may run in the background: public, async, and not one that every agent has."""
    return [name for name in dir(agent_class) if _is_method(agent_class, name)]


def _is_method(agent_class: type[Agent], name: str) -> bool:
    if name.startswith("_") or is_inherited(agent_class, name):
        return False
    return inspect.iscoroutinefunction(getattr(agent_class, name, None))


def is_inherited(agent_class: type[Any], name: str) -> bool:
    """Whether every agent of this kind has an attribute of this name: those that chat, or all."""
    return hasattr(Think if issubclass(agent_class, Think) else Agent, name)


def members() -> tuple[str, ...]:
    """The parts after `chat.agent_fiber:` of the names that this process can run."""
    return _members(tuple(declared.classes.items()))


def routes() -> tuple[str, ...]:
    """The agents that this process serves."""
    return tuple(declared.classes)


@lru_cache(maxsize=4)
def _members(classes: tuple[tuple[str, type[Any]], ...]) -> tuple[str, ...]:
    return tuple(f"{route}.{method}" for route, each in classes for method in methods_of(each))


def check_method(agent_class: type[Agent], method: str) -> None:
    """Errors: `FiberMethodMissing`."""
    if not _is_method(agent_class, method):
        raise FiberMethodMissing(
            Phrase("{agent} has no async method {method!r} of its own.", agent=agent_class.__name__, method=method)
        )
    if len(agent_class.route_name()) + len(method) > _MAX_NAME:
        raise FiberInvalid("The names of the agent and of the method are too long together.")


def check_start(start: FiberStart) -> None:
    """Errors: `FiberInvalid` for a blank or long id or key, a payload or metadata that is too large or no JSON."""
    for text in (start.fiber_id, start.idempotency_key):
        if text is not None and (not text.strip() or len(text) > MAX_TEXT or "\0" in text):
            raise FiberInvalid(
                Phrase("An id and a key of background work have 1 to {limit} characters.", limit=MAX_TEXT)
            )
    if not start.method.strip() or len(start.method) > MAX_TEXT:
        raise FiberInvalid(Phrase("A name of background work has 1 to {limit} characters.", limit=MAX_TEXT))
    if not 0 <= start.max_retries <= MAX_RETRIES:
        raise FiberInvalid(Phrase("Background work has 0 to {limit} retries.", limit=MAX_RETRIES))
    for value, limit in ((start.payload, MAX_PAYLOAD_BYTES), (start.metadata, MAX_METADATA_BYTES)):
        _check_size(value, limit)


def _check_size(value: JSONValue, limit: int) -> None:
    try:
        size = byte_size(value)
    except (TypeError, ValueError) as error:
        raise FiberInvalid(Phrase("What background work is given must be JSON: {error}", error=error)) from error
    if size > limit:
        raise FiberInvalid(Phrase("What background work is given has at most {limit} bytes.", limit=limit))


def own_pk(instance_id: str, fiber_id: str) -> str:
    """The id of a row whose fiber has an id of its developer's, which other instances may use as well."""
    return "fib_" + hashlib.blake2b(f"{instance_id}\0{fiber_id}".encode(), digest_size=20).hexdigest()


def own_key(instance_id: str, idempotency_key: str | None) -> str | None:
    """The key of a row, as `own_pk`."""
    return None if idempotency_key is None else f"{_key_prefix(instance_id)}{idempotency_key}"


def _key_prefix(instance_id: str) -> str:
    return f"{instance_id}:fib:"


def payload_of(instance_id: str, start: FiberStart) -> JSONObject:
    """The payload of a row."""
    return {
        "instance_id": instance_id,
        "method": start.method,
        "payload": start.payload,
        "id": start.fiber_id,
        "is_spawned": start.is_spawned,
    }


def is_spawned(row: Fiber) -> bool:
    """Whether it was made by `spawn_fiber`: lost runs count as retries."""
    return bool(row.payload.get("is_spawned"))


def in_scope(instance_id: str) -> FiberQuerySet:
    """The fibers of an instance."""
    return Fiber.objects.filter(scope=instance_id) if instance_id else Fiber.objects.none()


def own_work(instance_id: str) -> FiberQuerySet:
    """The same without calls of tools, which belong to turns."""
    return in_scope(instance_id).exclude(name__startswith=f"{TOOL_CALL}:")


def find_row(instance_id: str, fiber_id: str | None, key: str | None = None) -> Fiber | None:
    """The fiber of an instance with this id, or with this key."""
    found = in_scope(instance_id)
    if key is not None:
        return found.filter(key=own_key(instance_id, key)).first()
    assert fiber_id is not None
    return found.filter(pk__in=[fiber_id, own_pk(instance_id, fiber_id)]).first()


def id_of(row_id: str, payload: Mapping[str, Any]) -> str:
    """The id by which developers know a fiber."""
    return str(payload.get("id") or row_id)


def key_in(instance_id: str, key: str | None) -> str | None:
    """The idempotency key by which developers know a fiber."""
    return None if key is None else key.removeprefix(_key_prefix(instance_id))


def inspection_of(row: Fiber, *, accepted: bool = True) -> FiberInspection:
    """Describe a fiber."""
    return filled(
        FiberInspection,
        row,
        id=id_of(row.pk, row.payload),
        method=row.payload["method"],
        payload=row.payload["payload"],
        status=FiberStatus(row.status).value,
        snapshot=row.stash,
        retry_count=row.retries,
        attempts=row.attempt,
        idempotency_key=key_in(row.payload["instance_id"], row.key),
        accepted=accepted,
    )


def can_restart(row: Fiber) -> bool:
    """Whether it has ended so that it can run again.

    A function of `run_fiber` has ended with its process, a call with its turn.
    """
    return has_code(row) and may_run_again(row.status, row.reason)


def has_code(row: Fiber) -> bool:
    """Whether a worker could run it: code of `run_fiber` is in its process alone, a call is its turn's."""
    return row.name != AGENT_RUN and not is_call(row)


def is_call(row: Fiber) -> bool:
    """Whether it is a call of a tool that runs in another process."""
    return row.name.startswith(f"{TOOL_CALL}:")


EntryKind = Literal["created", "started", "step", "lost", "stop_requested", "ended"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """Something that happened to a fiber. `step`, `attempt`: of a step. `count`: of losses of its worker."""

    kind: EntryKind
    at: datetime
    step: str = ""
    attempt: int | None = None
    count: int = 1


def journal_of(row: Fiber) -> list[JournalEntry]:
    """Read the journal of a fiber, oldest first, with its newest `MAX_STEPS` steps. One query.

    Values of steps are the agent's own and left out, as the input and the snapshot are.
    """
    steps = FiberStep.objects.filter(fiber=row).order_by("-pk").values_list("step_key", "attempt", "created_at")
    entries = [
        JournalEntry(kind="step", at=at, step=key, attempt=attempt) for key, attempt, at in reversed(steps[:MAX_STEPS])
    ]
    incident = read_incident(row.incident)
    if incident is not None:
        entries.append(JournalEntry(kind="lost", at=incident.lost_at, count=incident.losses))
    moments: list[tuple[EntryKind, datetime | None]] = [
        ("started", row.started_at),
        ("stop_requested", row.cancel_requested_at),
        ("ended", row.finished_at),
    ]
    entries += [JournalEntry(kind=kind, at=at) for kind, at in moments if at is not None]
    entries.sort(key=lambda entry: (entry.at, entry.kind == "ended"))
    return [JournalEntry(kind="created", at=row.created_at), *entries]
