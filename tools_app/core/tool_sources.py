"""The sources of a turn's tools and their order: the one place where names of tools meet.

A later source wins over an earlier one, except that what a client runs never takes the place of a tool of the server:
the model would see a declaration that is not ours. `docs/adr/0018-order-of-tools.md` has the reasons.
"""

from collections.abc import Iterator
from dataclasses import replace

from tools_app.core.source import OF_CLIENTS, Source
from tools_app.core.tool import Tool
from tools_app.core.toolset import Toolset, ToolSource, named_tools


class ToolSources:
    """The tools of one turn by their source. A source that gave none is empty."""

    def __init__(self) -> None:
        self._tools: dict[Source, list[Tool]] = {}

    def add(self, source: Source, tools: ToolSource) -> None:
        """Add tools of a source, after what it gave before. Errors: `ToolDeclarationInvalid` for what is no tool."""
        given = named_tools(tools)
        marked = [item if item.source is source else replace(item, source=source) for item in given]
        self._tools.setdefault(source, []).extend(marked)

    def __iter__(self) -> Iterator[tuple[Source, list[Tool]]]:
        return ((source, self._tools.get(source, [])) for source in Source)

    def of_server(self) -> Toolset:
        """The tools that run in the server, in order, each name once."""
        return Toolset(*(tools for source, tools in self if source not in OF_CLIENTS))

    def merged(self) -> Toolset:
        """All of them, in order, each name once."""
        ours = self.of_server()
        theirs = Toolset(*(tools for source, tools in self if source in OF_CLIENTS))
        return Toolset(ours, [item for item in theirs if item.name not in ours])
