"""The order of the sources: for each pair of neighbours, who wins a name."""

from itertools import pairwise

import pytest

from tools_app.core.source import OF_CLIENTS, Source
from tools_app.core.tool import Tool, client_tool, tool
from tools_app.core.tool_sources import ToolSources


def made_by(source: Source) -> Tool:
    if source in OF_CLIENTS:
        return client_tool("shared", source.value)

    @tool(name="shared", description=source.value)
    def run() -> str:
        return source.value

    return run


def winner(*sources: Source) -> str:
    merged = ToolSources()
    for source in sources:
        merged.add(source, [made_by(source)])
    (won,) = merged.merged()
    return won.description


SERVER = [source for source in Source if source not in OF_CLIENTS]


@pytest.mark.parametrize(("earlier", "later"), list(pairwise(SERVER)))
def test_of_two_neighbours_the_later_source_wins(earlier: Source, later: Source) -> None:
    assert winner(earlier, later) == winner(later, earlier) == later.value


def test_the_callers_tools_win_over_the_clients() -> None:
    assert winner(Source.CALLER, Source.CLIENT) == "caller"


@pytest.mark.parametrize("server", SERVER)
@pytest.mark.parametrize("outside", sorted(OF_CLIENTS))
def test_what_a_client_runs_never_shadows_the_servers(server: Source, outside: Source) -> None:
    assert winner(server, outside) == server.value


def test_the_order_is_the_documented_one() -> None:
    assert " ".join(Source) == "workspace schedules agent extensions session skills mcp client caller"


def test_tools_are_listed_in_the_order_of_their_sources() -> None:
    sources = ToolSources()
    sources.add(Source.CLIENT, [client_tool("c")])
    sources.add(Source.MCP, [client_tool("m")])
    sources.add(Source.AGENT, {"a": client_tool("x")})
    assert [item.name for item in sources.merged()] == ["a", "m", "c"]
    assert [tools for source, tools in sources if source is Source.WORKSPACE] == [[]]
