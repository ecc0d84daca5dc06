"""System check chat.E011: a plugin that cannot be had, or whose hooks cannot be called."""

import inspect
from typing import Any

from django.core import checks

from chat.agent.plugin import Plugin
from chat.user_code.conf import user_code_settings
from chat.user_code.plugins import HOOKS, load


def check_plugins(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Report entries of `THINK_PLUGINS` with which no turn could run."""
    return [
        checks.Error(f"THINK_PLUGINS: {problem}", id="chat.E011")
        for path in user_code_settings.plugins
        for problem in _problems(path)
    ]


def _problems(path: str) -> list[str]:
    try:
        (plugin,) = load((path,))
    except (ImportError, TypeError, ValueError) as error:
        return [f"{path} cannot be used: {error}."]
    return [f"{path}: {problem}" for name in sorted(HOOKS) if (problem := _hook_problem(plugin, name))]


def _hook_problem(plugin: Plugin, name: str) -> str:
    method = getattr(plugin, name)
    count = len(inspect.signature(getattr(Plugin, name)).parameters) - 1
    if not callable(method):
        return f"{name} must be a method, not {method!r}."
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        return f"{name}() yields; it must return what it has to say."
    try:
        inspect.signature(method).bind(*[None] * count)
    except TypeError:
        return f"{name}() is called with {count} arguments after self, the agent first, which it does not take."
    return ""
