"""The private configuration of an instance: one JSON value, typed by its class, cached in each process.

The cache holds what was read and checked, with its version; the row's version is looked at in each read, so another
process's change is seen at once. Every writer uses `save_config`: a hook, a parent, server code, the
API.
"""

import copy
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.db.models import F
from pydantic import BaseModel, ValidationError

from chat.agent.base import Agent, InstanceKey
from chat.agent.registry import get_agent_class
from chat.errors import AgentNotFound, ConfigChanged, ConfigInvalid
from chat.instances.rows import ensure_instance, lookup_of
from chat.models import AgentInstance
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load
from thinkproject.kernel.phrases import Phrase

CONFIG_BYTES: Final = 256 * 1024
MAX_CACHED: Final = 1_000
_MAX_PROBLEMS: Final = 10
_cache: "OrderedDict[str, tuple[int, type[BaseModel] | None, Any]]" = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigView:
    """A configuration as clients get it. `version` 0: it was never set, and `config` is `None`."""

    config: JSONValue
    version: int
    config_schema: JSONObject | None


def load_config(key: InstanceKey) -> Any:
    """The configuration as its class types it, a copy of the caller's own; `None` when it was never set.

    One narrow query; the value itself is read and checked only when its version is new here. Errors: `ConfigInvalid`
    when what is stored does not fit the class.
    """
    rows = AgentInstance.objects.filter(**lookup_of(key))
    found = rows.values_list("pk", "config_version").first()
    if found is None or not found[1]:
        return None
    kind = config_model_of(key.agent)
    with _lock:
        known = _cache.get(found[0])
        if known is not None and known[:2] == (found[1], kind):
            _cache.move_to_end(found[0])
            return copy.deepcopy(known[2])
    stored = AgentInstance.objects.filter(pk=found[0]).values_list("config_version", "config").first()
    if stored is None:
        return None
    value = _typed(stored[1], kind, key.agent, is_stored=True)
    if not transaction.get_connection().in_atomic_block:  # a rolled back version may be taken by another writer
        _remember(found[0], stored[0], kind, value)
    return copy.deepcopy(value)


def save_config(key: InstanceKey, value: Any, *, version: int | None = None) -> int:
    """Check a configuration and store it as a whole; returns its version. The instance's row is made where it is none.

    With `version` only over the version that the caller has read. Errors: `ConfigInvalid`, `ConfigChanged`; then
    nothing has changed.
    """
    plain = checked(key.agent, value)
    with transaction.atomic():
        instance = ensure_instance(key)
        rows = AgentInstance.objects.filter(pk=instance.pk)
        if version is not None:
            rows = rows.filter(config_version=version)
        if not rows.update(config=plain, config_version=F("config_version") + 1):
            raise ConfigChanged
        stored = AgentInstance.objects.values_list("config_version", flat=True).get(pk=instance.pk)
    return int(stored)


def view_config(instance: AgentInstance) -> ConfigView:
    """The configuration as it is stored, whether it fits the class or not. Needs a fresh row."""
    kind = config_model_of(instance.agent)
    return ConfigView(
        config=instance.config if instance.config_version else None,
        version=instance.config_version,
        config_schema=None if kind is None else kind.model_json_schema(),
    )


def config_model_of(agent: str) -> type[BaseModel] | None:
    """The pydantic class of an agent's configuration; `None` without one, and for an agent that is gone."""
    try:
        served: type[Agent] = get_agent_class(agent)
    except AgentNotFound:
        return None
    return served.config_model


def checked(agent: str, value: Any) -> JSONValue:
    """A configuration as it is stored: plain JSON that fits the agent's class. Errors: `ConfigInvalid`."""
    kind = config_model_of(agent)
    if isinstance(value, BaseModel):
        value = _dumped(value, agent)
    typed = _typed(value, kind, agent)
    plain = _dumped(typed, agent) if isinstance(typed, BaseModel) else typed
    try:
        text = dump(plain)
        load(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigInvalid(
            Phrase("The configuration of {agent!r} must be JSON: {error}.", agent=agent, error=error)
        ) from error
    size, limit = len(text.encode()), CONFIG_BYTES
    if size > limit:
        raise ConfigInvalid(
            Phrase(
                "The configuration of {agent!r} is too large: {size} bytes, at most {limit}.",
                agent=agent,
                size=size,
                limit=limit,
            ),
            size=size,
            limit=limit,
        )
    return plain


def _typed(value: JSONValue, kind: type[BaseModel] | None, agent: str, *, is_stored: bool = False) -> Any:
    if kind is None:
        return value
    try:
        # JSON's rules, whatever the caller holds: what is stored must be read back by them.
        return kind.model_validate_json(dump(value))
    except ValidationError as error:
        problems = _problems(error)
        listed = "; ".join(f"{each['at'] or 'the whole'}: {each['expected']}" for each in problems)
        values = {"agent": agent, "form": kind.__name__, "listed": listed}
        if is_stored:
            text = Phrase("The stored configuration of {agent!r} does not fit {form}: {listed}.", **values)
        else:
            text = Phrase("The configuration of {agent!r} does not fit {form}: {listed}.", **values)
        raise ConfigInvalid(text, problems=problems) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigInvalid(
            Phrase(
                "The configuration of {agent!r} must be JSON that fits {form}: {error}.",
                agent=agent,
                form=kind.__name__,
                error=error,
            )
        ) from error


def _dumped(value: BaseModel, agent: str) -> JSONValue:
    try:
        return value.model_dump(mode="json")
    except (TypeError, ValueError) as error:
        raise ConfigInvalid(
            Phrase("The configuration of {agent!r} cannot be written as JSON: {error}.", agent=agent, error=error)
        ) from error


def _problems(error: ValidationError) -> list[JSONObject]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [{"at": ".".join(map(str, each["loc"])), "expected": each["msg"]} for each in found[:_MAX_PROBLEMS]]


def _remember(instance_id: str, version: int, kind: type[BaseModel] | None, value: Any) -> None:
    with _lock:
        _cache[instance_id] = (version, kind, value)
        _cache.move_to_end(instance_id)
        while len(_cache) > MAX_CACHED:
            _cache.popitem(last=False)
