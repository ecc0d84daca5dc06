"""System checks: of the agents that developers wrote, and of how the site signs users in and stores files.

Agents: chat.E002 a reserved or impossible route name · chat.E003 a value the product cannot serve · chat.E004 a hook
that cannot be called as it is · chat.E005 a price that cannot be read · chat.E007 an invalid setting for long
conversations · chat.E008 a title, icon or suggestion that cannot be shown · chat.E009 a model that cannot be offered,
or facts of one that cannot be read · chat.W001 a method in camel case, which nothing calls · chat.E010 a missing or
wrong implementation of a tool · chat.W002 a tool that another process has to run (both in
`chat/durable_tools/checks.py`) · chat.E011 a plugin that cannot be used (`chat/user_code/checks.py`).

Site: chat.E101 an entry of THINK_ALLOWED_ORIGINS that is not an origin · chat.E102 middleware that sign-in needs is
missing · chat.E103 a setting that was removed · chat.E104 a limit that is no number from 0, or limits that cannot be
read or kept together · chat.W101 an allowed origin without TLS on a production server · chat.W102 sessions that the
server cannot end · chat.W103 attached files where the web server may serve them · chat.W104 `ninja` is not installed as
an app · chat.W105 a cache that processes do not share.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

from django.apps import apps
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from pydantic import BaseModel

from chat.access.conf import access_settings
from chat.access.origins import parse_origin
from chat.agent import declared, registry
from chat.agent.appearance import is_symbol, problems_of
from chat.agent.base import Agent, ConfigAccess
from chat.agent.contracts import value_problems
from chat.agent.think import Think
from chat.agent.values.messages import AgentReference
from chat.conf import chat_settings
from chat.core.context.compaction_policy import compaction_policy
from chat.core.context.context_policy import context_policy
from chat.core.loop.concurrency import Strategy, to_policy
from chat.core.model.chosen_model import MAX_NAME
from chat.durable_streams.conf import StreamLimits, durable_stream_settings
from chat.errors import InputInvalid, TurnConfigInvalid
from chat.instances.addresses import is_root_name
from chat.llm.catalogue import facts_problem
from chat.llm.conf import llm_settings
from chat.llm.prices import price_table
from chat.llm.registry import DEFAULT
from thinkproject.kernel import conf
from thinkproject.kernel.object_storage import object_storage
from thinkproject.kernel.removed_settings import removed
from tools_app.core.tool_names import check_patterns
from tools_app.errors import ToolDeclarationInvalid

MAX_ROUTE_CHARS = 200  # as the column holds
_CAMEL_CASE = (
    "getModel",
    "getSystemPrompt",
    "getTools",
    "getMaxSteps",
    "beforeTurn",
    "beforeStep",
    "beforeToolCall",
    "afterToolCall",
    "onChunk",
    "onStepFinish",
    "onStepEnd",
    "onChatResponse",
    "onChatError",
    "onChatRecovery",
    "shouldKeepRecovering",
    "onExhausted",
    "onChatMessage",
    "configureSession",
    "onConnect",
    "onMessage",
    "onClose",
    "onStart",
)


_HOOKS = {
    "on_start": 0,
    "on_connect": 1,
    "on_message": 2,
    "on_close": 2,
    "on_before_sub_agent": 2,
    "is_read_only": 1,
    "validate_state_change": 2,
    "on_state_changed": 2,
    "on_fiber_complete": 1,
    "on_fibers_recovered": 1,
    "on_fiber_recovered": 1,
    "get_extensions": 0,
    "get_skills": 0,
    "get_mcp_servers": 0,
    "get_scheduled_tasks": 0,
    "get_workspace": 0,
    "authorize_turn": 1,
    "authorize_action": 1,
    "get_model": 0,
    "get_system_prompt": 0,
    "get_tools": 0,
    "get_max_steps": 0,
    "configure_session": 1,
    "assemble_context": 1,
    "on_chat_message": 1,
    "get_message_metadata": 1,
    "before_turn": 1,
    "before_step": 1,
    "before_tool_call": 1,
    "after_tool_call": 1,
    "on_chunk": 1,
    "on_step_finish": 1,
    "on_chat_response": 1,
    "on_agent_tool_finish": 1,
    "on_chat_error": 2,
    "on_chat_recovery": 1,
    "should_keep_recovering": 1,
    "on_recovery_exhausted": 1,
    "on_model_switch": 1,
}
"""How many arguments each hook is called with."""


def _name(agent_class: type[Agent]) -> str:
    return f"{agent_class.__module__}.{agent_class.__qualname__}"


@register("chat")
def check_names(**_kwargs: Any) -> list[CheckMessage]:
    """Report names that cannot be routed."""
    return [
        Error(
            f"{_name(each)} is served at /agents/{each.route_name()}/…, which is no address of an agent.",
            hint="Rename the class: in kebab case it has 1 to 200 characters and is not `sub`, as sub-agents' paths.",
            id="chat.E002",
        )
        for each in registry.registered_classes()
        if not is_root_name(each.route_name()) or len(each.route_name()) > MAX_ROUTE_CHARS
    ]


@register("chat")
def check_values(**_kwargs: Any) -> list[CheckMessage]:
    """Report class attributes with values that the product cannot serve."""
    found: list[CheckMessage] = []
    for agent_class in registry.registered_classes():
        problems = [*value_problems(agent_class), *_policies_of(agent_class)]
        found += [Error(f"{_name(agent_class)}: {problem}", id="chat.E003") for problem in problems]
    return found


@register("chat")
def check_named_agents(**_kwargs: Any) -> list[CheckMessage]:
    """Report names of other agents that no class is served by: a turn or a run with them would fail."""
    served = {each.route_name() for each in registry.registered_classes()}
    return [
        Error(
            f"{_name(agent_class)}: {attribute} names {name!r}, which no agent is served by.",
            hint="Name the class, or the route name that it is served by.",
            id="chat.E003",
        )
        for agent_class in registry.registered_classes()
        for attribute, names in _named_agents(agent_class)
        for name in names
        if name not in served
    ]


def _named_agents(agent_class: Any) -> Iterator[tuple[str, list[str]]]:
    """The names that a class gives in place of classes, by attribute. `check_values` names other wrong values."""
    for attribute in ("agents", "sub_agents", "thread_agent"):
        value = getattr(agent_class, attribute, None)
        given = value if isinstance(value, list | tuple) else [value]
        inner = (one.agent if isinstance(one, AgentReference) else one for one in given)
        yield attribute, [one for one in inner if isinstance(one, str) and one]


def problems_of_class(agent_class: type[Agent]) -> list[str]:
    """Sentences about values and hooks of a class that no turn could go well with."""
    return [*value_problems(agent_class), *_policies_of(agent_class), *_hook_problems(agent_class)]


@register("chat")
def check_configs(**_kwargs: Any) -> list[CheckMessage]:
    """Report a `config_model` that is no pydantic class, and an unknown `config_access`."""
    found: list[CheckMessage] = []
    for agent_class in registry.registered_classes():
        kind: Any = agent_class.config_model
        access = agent_class.config_access
        if kind is not None and not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            found.append(
                Error(f"{_name(agent_class)}: config_model must be a pydantic class, not {kind!r}.", id="chat.E003")
            )
        if access not in get_args(ConfigAccess):
            known = ", ".join(map(repr, get_args(ConfigAccess)))
            found.append(
                Error(f"{_name(agent_class)}: config_access must be one of {known}, not {access!r}.", id="chat.E003")
            )
    return found


@register("chat")
def check_prices(**_kwargs: Any) -> list[CheckMessage]:
    """Report prices that cannot be read."""
    try:
        price_table()
    except ValueError as error:
        return [Error(f"THINK_PRICES: {error}.", id="chat.E005")]
    return []


@register("chat")
def check_appearance(**_kwargs: Any) -> list[CheckMessage]:
    """Report titles, icons and suggestions that the page cannot show."""
    return [
        Error(f"{_name(agent_class)}: {problem}", id="chat.E008")
        for agent_class in registry.registered_classes()
        for problem in [*problems_of(agent_class), *_icon_problems(agent_class)]
    ]


def _icon_problems(agent_class: type[Agent]) -> list[str]:
    icon: Any = agent_class.icon
    is_file = isinstance(icon, str) and icon and not is_symbol(icon)
    if is_file and not problems_of(agent_class) and not _has_static_file(icon):
        return [f"icon names the static file {icon!r}, which no app and no folder of static files has."]
    return []


def _has_static_file(path: str) -> bool:
    """Whether the finders know it. Without the app for static files a site serves them by means of its own."""
    return not apps.is_installed("django.contrib.staticfiles") or finders.find(path) is not None


@register("chat")
def check_models(**_kwargs: Any) -> list[CheckMessage]:
    """Report models that people could choose and nothing could answer for, and facts that cannot be read."""
    problems = [f"THINK_MODELS: {problem}" for problem in _model_problems(llm_settings.models)]
    for agent_class in registry.registered_classes():
        if issubclass(agent_class, Think) and agent_class.models is not None:
            problems += [f"{_name(agent_class)}: models: {each}" for each in _model_problems(agent_class.models)]
    problems += [
        f"THINK_MODEL_FACTS: {name!r}: {problem}."
        for name, entry in llm_settings.model_facts.items()
        if (problem := facts_problem(entry))
    ]
    return [Error(problem, id="chat.E009") for problem in problems]


def _model_problems(given: Any) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        return [f"a list of names is expected, not {given!r}."]
    return [f"{name!r} is not provider/model." for name in given if not _is_model_name(name)]


def _is_model_name(name: Any) -> bool:
    provider, _, model = name.partition("/") if isinstance(name, str) else ("", "", "")
    return name == DEFAULT or bool(provider and model and name == name.strip() and len(name) <= MAX_NAME)


def _policies_of(agent_class: type[Agent]) -> list[str]:
    """Problems of values that are read by a function of their own."""
    if not issubclass(agent_class, Think):
        return []
    problems = _concurrency_problems(agent_class.message_concurrency)
    problems += _policy_problems(context_policy, agent_class.context_policy)
    if agent_class.compaction_policy is not None:
        problems += _policy_problems(compaction_policy, agent_class.compaction_policy)
    for name in ("enabled_tools", "searched_tools", "code_tool", "mcp_server"):
        given: Any = getattr(agent_class, name)
        if (given is None) if name == "enabled_tools" else isinstance(given, bool):
            continue
        problems += [f"{name}: {problem}" for problem in _policy_problems(check_patterns, given)]
    return problems


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _policy_problems(policy: Callable[[Any], object], value: Any) -> list[str]:
    try:
        policy(value)
    except (TurnConfigInvalid, ToolDeclarationInvalid, TypeError) as error:
        return [str(error)]
    return []


def _concurrency_problems(value: Any) -> list[str]:
    """Report an unknown strategy, an unused setting and an invalid time."""
    settings = {"strategy": value} if isinstance(value, str) else value
    try:
        policy = to_policy(settings)
    except (InputInvalid, AttributeError):
        known = ", ".join(repr(str(word)) for word in Strategy)
        return [f"message_concurrency must be one of {known}, or a mapping that names one, not {value!r}."]
    times = [settings[name] for name in ("debounceMs", "debounce_ms") if name in settings]
    unknown = set(settings) - {"strategy", "debounceMs", "debounce_ms"}
    problems = [f"message_concurrency has no setting {name!r}." for name in sorted(unknown)]
    if times and (policy.strategy is not Strategy.DEBOUNCE or policy.debounce_ms != times[0]):
        problems.append(f"debounceMs is a number of milliseconds, for the strategy 'debounce' alone, not {times[0]!r}.")
    return problems


@register("chat")
def check_hooks(**_kwargs: Any) -> list[CheckMessage]:
    """Report hooks that every turn would fail at: with other parameters than they are called with, or that yield."""
    return [
        Error(f"{_name(agent_class)}: {problem}", id="chat.E004")
        for agent_class in registry.registered_classes()
        for problem in _hook_problems(agent_class)
    ]


def _hook_problems(agent_class: type[Agent]) -> list[str]:
    named = [(name, count) for name, count in _HOOKS.items() if hasattr(agent_class, name)]
    return [problem for name, count in named if (problem := _hook_problem(agent_class, name, count))]


def _hook_problem(agent_class: type[Agent], name: str, count: int) -> str:
    method = getattr(agent_class, name)
    if not callable(method):
        return f"{name} must be a method, not {method!r}."
    if inspect.isgeneratorfunction(method) or (inspect.isasyncgenfunction(method) and name != "on_chat_message"):
        return f"{name}() yields; it must return what it has to say."
    try:
        inspect.signature(getattr(agent_class.__new__(agent_class), name)).bind(*[None] * count)
    except (TypeError, ValueError):  # the latter when there is not even a self
        takes = ["no argument", "one argument", "two arguments"][count]
        return f"{name}() is called with {takes} after self, which its parameters do not take."
    return ""


@register("chat")
def check_overflow(**_kwargs: Any) -> list[CheckMessage]:
    """Report settings about long conversations that no turn could use."""
    named = partial(compaction_policy, source="THINK_OVERFLOW_FORMULA")
    problems = _policy_problems(named, chat_settings.overflow_formula)
    problems += [
        f"THINK_MODEL_LIMITS: {name!r} needs an object with context, output and input in tokens, not {given!r}."
        for name, given in llm_settings.model_limits.items()
        if not _is_limits(given)
    ]
    return [Error(problem, id="chat.E007") for problem in problems]


def _is_limits(given: Any) -> bool:
    return isinstance(given, dict) and not set(given) - {"context", "output", "input"}


@register("chat")
def check_camel_case(**_kwargs: Any) -> list[CheckMessage]:
    """Report methods that follow the names of another language: nothing would ever call them."""
    return [
        checks.Warning(
            f"{_name(agent_class)} defines {name}(), which nothing calls.",
            hint=f"Name it {declared.kebab(name).replace('-', '_')}().",
            id="chat.W001",
        )
        for agent_class in registry.registered_classes()
        for name in _CAMEL_CASE
        if hasattr(agent_class, name)
    ]


_MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
)
_CACHES_OF_ONE_PROCESS = {
    "django.core.cache.backends.locmem.LocMemCache",
    "django.core.cache.backends.dummy.DummyCache",
}
_LAYERS_OF_ONE_PROCESS = {"", "channels.layers.InMemoryChannelLayer"}
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@register("chat")
def check_numbers(**_: object) -> list[CheckMessage]:
    """Report limits that are no number from 0, wherever they are declared."""
    found: list[CheckMessage] = []
    for name, setting in conf.registry.items():
        kind, value = type(setting.default), getattr(settings, name, setting.default)
        if kind in (int, float) and (type(value) not in {int, kind} or value < 0):
            words = "whole number" if kind is int else "number"
            found.append(Error(f"{name} must be a {words} from 0, not {value!r}.", id="chat.E104"))
        elif is_dataclass(setting.default) and type(value) is not type(setting.default):
            problem = _problem_of_limits(name, setting.default, value)
            found += [Error(problem, id="chat.E104")] if problem else []
    return found or _check_durable_streams()


def _problem_of_limits(name: str, default: Any, value: object) -> str:
    if not isinstance(value, Mapping):
        return (
            f"{name} must be an object with some of {', '.join(each.name for each in fields(default))}, not {value!r}."
        )
    try:
        conf.with_fields(name, default, value)
    except ValueError as error:
        return str(error)
    return ""


def _check_durable_streams() -> list[CheckMessage]:
    """Limits of which one makes another one useless."""
    limits = durable_stream_settings.limits
    largest, found = durable_stream_settings.append_bytes, []
    if (
        limits.append_bytes > largest and limits.append_bytes != StreamLimits().append_bytes
    ):  # which gives way by itself
        found.append(f"'append_bytes' of {limits.append_bytes}, and no request may have more than {largest} bytes.")
    if limits.append_bytes > limits.bytes:
        found.append(f"'append_bytes' of {limits.append_bytes}, and no room for more than {limits.bytes} bytes.")
    return [Error(f"THINK_DURABLE_STREAMS has {problem}", id="chat.E104") for problem in found]


@register("chat")
def check_removed_settings(**_: object) -> list[CheckMessage]:
    """Report Django settings that no code reads any more (the environment is checked when it is read)."""
    return [Error(problem, id="chat.E103") for problem in removed(dir(settings))]


@register(Tags.security)
def check_origins(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report origins that match no page, or more pages than intended."""
    found: list[CheckMessage] = []
    for entry in access_settings.allowed_origins:
        origin = parse_origin(entry)
        if origin is None:
            hint = "Write scheme, host and port, such as https://app.example.com; there is no wildcard."
            found.append(Error(f"THINK_ALLOWED_ORIGINS: {entry!r} is not an origin.", hint=hint, id="chat.E101"))
        elif origin.scheme == "http" and origin.host not in _LOOPBACK and getattr(settings, "IS_PRODUCTION", False):
            hint = "Anybody on the way can write that page; serve it over HTTPS."
            found.append(checks.Warning(f"THINK_ALLOWED_ORIGINS: {entry!r} has no TLS.", hint=hint, id="chat.W101"))
    return found


@register(Tags.security)
def check_sign_in(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report what signing in needs and does not find."""
    found: list[CheckMessage] = [
        Error(f"MIDDLEWARE lacks {name!r}, which the API's sign-in needs.", id="chat.E102")
        for name in _MIDDLEWARE
        if name not in settings.MIDDLEWARE
    ]
    if settings.SESSION_ENGINE.endswith("signed_cookies"):
        hint = "Use database or cache sessions: a session in a cookie cannot be ended by the server."
        found.append(checks.Warning("Signing out does not end live connections.", hint=hint, id="chat.W102"))
    if not apps.is_installed("ninja"):
        hint = 'Add "ninja" to INSTALLED_APPS; else the API\'s documentation loads scripts from elsewhere.'
        found.append(checks.Warning('"ninja" is not installed as an app.', hint=hint, id="chat.W104"))
    return found


@register(Tags.security)
def check_files(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report attached files that could be fetched past the access rules."""
    location = getattr(object_storage(), "location", None)
    static = getattr(settings, "STATIC_ROOT", None)
    if location is None or not static or not Path(location).is_relative_to(Path(static)):
        return []
    hint = "Give STORAGES an entry `think` (or the default) outside of STATIC_ROOT."
    return [checks.Warning("Attached files lie below STATIC_ROOT.", hint=hint, id="chat.W103")]


@register(Tags.caches)
def check_shared_cache(_app_configs: Sequence[Any] | None = None, **_options: Any) -> list[CheckMessage]:
    """Report a per-process cache in an installation whose channel layer spans several processes."""
    cache = settings.CACHES.get("default", {}).get("BACKEND", "")
    layer = getattr(settings, "CHANNEL_LAYERS", {}).get("default", {}).get("BACKEND", "")
    if cache not in _CACHES_OF_ONE_PROCESS or layer in _LAYERS_OF_ONE_PROCESS:
        return []
    hint = (
        "Use a shared one, such as django.core.cache.backends.redis.RedisCache. It holds which answers a client was "
        "being sent when its connection was lost: a client that reconnects to another process may keep half an answer."
    )
    return [checks.Warning(f"CACHES['default'] is {cache}, which processes do not share.", hint=hint, id="chat.W105")]
