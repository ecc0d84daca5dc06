"""The plugins of the site, and what the answers of several hooks come to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, Final

from django.utils.module_loading import import_string

from chat.agent.plugin import Plugin
from chat.core.loop.hooks import Allow, Block, Substitute
from chat.errors import TurnConfigInvalid
from chat.user_code.conf import user_code_settings
from thinkproject.kernel.described import described

HOOKS: Final = frozenset(name for name in vars(Plugin) if not name.startswith("_"))
_ADDED: Final = frozenset({"tools", "stop_when"})


def with_hook(name: str) -> list[Plugin]:
    """The plugins that have this hook, in their order. Errors: those of `load`."""
    if name not in HOOKS:
        return []
    return [each for each in load(tuple(user_code_settings.plugins)) if _has(each, name)]


def _has(plugin: Plugin, name: str) -> bool:
    return getattr(type(plugin), name) is not getattr(Plugin, name)


@lru_cache(maxsize=8)
def load(paths: tuple[str, ...]) -> tuple[Plugin, ...]:
    """The objects at these paths; classes are instantiated. Errors: `ImportError`, `TypeError` for another object."""
    found = [import_string(path) for path in paths]
    made = [each() if isinstance(each, type) else each for each in found]
    for path, each in zip(paths, made, strict=True):
        if not isinstance(each, Plugin):
            raise TypeError(f"{path} is {described(each)}; a plugin is a subclass of chat.think.Plugin, or one object")
    return tuple(made)


def is_last(answer: Any) -> bool:
    """Whether no further hook is asked after this answer."""
    return isinstance(answer, Block | Substitute)


def both(first: Any, second: Any) -> Any:
    """The answer that two hooks come to. Errors: `TurnConfigInvalid` for tools that cannot be put together."""
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, Allow) and isinstance(second, Allow):
        return second if second.input is not None else first
    if not is_dataclass(first) or type(first) is not type(second) or isinstance(first, Allow):
        return second
    said = dict(_said(second))
    for name in _ADDED & said.keys():
        if getattr(first, name):
            said[name] = _together(name, getattr(first, name), said[name])
    return replace(first, **said)  # type: ignore[type-var]


def seen_after(context: Any, answer: Any) -> Any:
    """The context as the next hook sees it."""
    if not is_dataclass(context):
        return context
    changes: dict[str, Any] = {name: getattr(answer, name, None) for name in ("system", "messages", "input")}
    changes["system"] = changes["system"] or getattr(answer, "instructions", None)
    wanted = {name: value for name, value in changes.items() if value is not None and hasattr(context, name)}
    return replace(context, **wanted) if wanted else context  # type: ignore[type-var]


def _said(config: Any) -> Iterator[tuple[str, Any]]:
    """The fields that differ from what they are by themselves."""
    for field in fields(config):
        value = getattr(config, field.name)
        default = field.default if field.default is not MISSING else None
        if value is not default and not (isinstance(default, tuple) and value == default):
            yield field.name, value


def _together(name: str, first: Any, second: Any) -> Any:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {**first, **second}
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        raise TurnConfigInvalid(f"{name} of two hooks are a list and a mapping; give both in one form.")
    return [*_listed(first), *_listed(second)]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, Sequence) else [value]
