"""The tools of one turn: merged in a documented order, looked up by name, declared to the model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from thinkproject.kernel.described import described
from tools_app.core.tool import Tool, with_name
from tools_app.core.tool_names import check_patterns, excludes, grants, repaired, selects, unknown_tool_text
from tools_app.errors import ToolDeclarationInvalid, ToolNotFound

ToolSource: TypeAlias = Iterable[Tool] | Mapping[str, Tool]
"""Tools, or a mapping whose keys name them."""


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
        """Find a tool. Errors: `ToolNotFound`, which names near ones and what there is, for the model to choose."""
        if name in self._tools:
            return self._tools[name]
        raise ToolNotFound(unknown_tool_text(name, self._tools))

    def repaired(self, name: str) -> str:
        """The name that a model meant, where it differs from one tool's in case alone; else the name as it is."""
        return repaired(name, self._tools)

    def only(self, patterns: Sequence[str] | None) -> "Toolset":
        """Limit to the names that patterns keep; `None` means all. Errors: `ToolDeclarationInvalid`."""
        if patterns is None:
            return self
        checked = check_patterns(patterns)
        return Toolset([item for item in self if selects(checked, item.name, item.source)])

    def granted(self, patterns: Sequence[str]) -> "Toolset":
        """Limit to the tools that patterns grant something to (`tool_names.grants`). Errors: as above."""
        checked = check_patterns(patterns)
        return Toolset([item for item in self if grants(checked, item.name, item.source)])

    def without(self, denied: Iterable[Sequence[str]]) -> "Toolset":
        """Leave out what any of these lists of patterns takes away by name."""
        lists = list(denied)
        if not lists:
            return self
        return Toolset([item for item in self if not any(excludes(each, item.name, item.source) for each in lists)])


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
    return with_name(item, name)


def _require_tool(item: object) -> None:
    if not isinstance(item, Tool):
        raise ToolDeclarationInvalid(f"it must give tools made by @tool, not {described(item)}")
    if item.takes_self:
        raise ToolDeclarationInvalid(f"tool {item.name!r} is a method without its object: give it as self.{item.name}")
