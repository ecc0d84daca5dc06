"""The providers of a turn's tools: one for each source, asked in the order of the sources.

An app adds one with `register`; a source without a provider is empty.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Final, Protocol, TypeAlias

from chat.agent.think import Think
from sessions_app.context.session_context import SessionContext
from sessions_app.context.snapshot import ContextState
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.workspace import Workspace
from tools_app.core.guard.rules import SeenText
from tools_app.core.mcp.sampling import Sampler
from tools_app.core.source import Source
from tools_app.core.tool_sources import ToolSources
from tools_app.core.toolset import ToolSource
from tools_app.skills.library import SkillLibrary


class SeesTexts(Protocol):
    """The injection guard of a turn, for providers whose descriptions of tools were written by others."""

    async def see(self, texts: Iterable[SeenText], *, name: str) -> None:
        """Say that these texts are in the context from the start of the turn.

        `name` differs whenever a text does, as a fingerprint. No statement for what was seen before.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """The facts for a provider: the agent, its conversation's context, and what client and caller declare.

    `workspace`: what the agent works in, where it has tools for files. `project_files`: those of its project, to read.
    `has_mcp_servers`: whether there may be MCP servers for the conversation; `sampler`: asks the agent's model for one
    of them. `taken`: names of the sources before this one.
    """

    agent: Think
    context: SessionContext
    state: ContextState
    client_tools: tuple[JSONObject, ...]
    caller_tools: tuple[JSONObject, ...] = ()
    workspace: Workspace | None = None
    project_files: Workspace | None = None
    skills: SkillLibrary = field(default_factory=SkillLibrary)
    has_mcp_servers: bool = False
    sampler: Sampler | None = None
    taken: frozenset[str] = frozenset()
    guard: SeesTexts | None = None  # of a turn; none for a preview


ToolProvider: TypeAlias = Callable[[ToolRequest], Awaitable[ToolSource]]
"""Gives the tools of a source. Runs once an attempt, also for a preview; does nothing but answer."""

_providers: Final[dict[Source, ToolProvider]] = {}


def register(source: Source, provider: ToolProvider) -> None:
    """Let this provider give the tools of a source. Errors: `ValueError` for a source that has one."""
    if source in _providers:
        raise ValueError(f"The source {source.value!r} has a provider already.")
    _providers[source] = provider


def unregister(source: Source) -> None:
    """Take a provider away again, for tests."""
    del _providers[source]


async def gather_tools(request: ToolRequest) -> ToolSources:
    """Ask every provider, in order. Errors: those of the providers."""
    sources = ToolSources()
    for source in Source:
        if source in _providers:
            asked = replace(request, taken=frozenset(tool.name for _, tools in sources for tool in tools))
            sources.add(source, await _providers[source](asked))
    return sources
