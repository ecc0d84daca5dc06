"""The tools of one turn: merged in a documented order, looked up by name, declared to the model."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from tools_app.core.tool import Tool
from tools_app.errors import ToolDeclarationInvalid, ToolNotFound

ToolSource: TypeAlias = "Iterable[Tool] | Mapping[str, Tool]"


class Toolset:
    """An immutable collection of tools with distinct names. Later sources win over earlier ones of the same name."""

    def __init__(self, *sources: ToolSource) -> None:
        self._tools: dict[str, Tool] = {}
        for source in sources:
            for item in named_tools(source):
                self._tools.pop(item.name, None)
                self._tools[item.name] = item

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def get(self, name: str) -> Tool:
        """Find a tool. Errors: `ToolNotFound`, which names what there is, for the model to choose again."""
        if name in self._tools:
            return self._tools[name]
        known = ", ".join(repr(known) for known in self._tools) or "none"
        raise ToolNotFound(f"There is no tool {name!r}. Available tools: {known}.")

    def only(self, names: Iterable[str] | None) -> "Toolset":
        """Limit to the given names; `None` means all."""
        if names is None:
            return self
        wanted = set(names)
        return Toolset([item for item in self if item.name in wanted])


def named_tools(source: ToolSource) -> list[Tool]:
    """Read what `get_tools()` returned: an iterable of tools, or a mapping whose keys rename them."""
    if isinstance(source, Mapping):
        return [_renamed(item, name) for name, item in source.items()]
    tools = list(source)
    for item in tools:
        _require_tool(item)
    return tools


def _renamed(item: Tool, name: str) -> Tool:
    _require_tool(item)
    return item if item.name == name else replace(item, name=name)


def _require_tool(item: object) -> None:
    if not isinstance(item, Tool):
        raise ToolDeclarationInvalid(f"get_tools() must give tools made by @tool, not {item!r}")
