"""The tools by which a model reads and writes its context: memory, documents, search.

Which of them there are depends on the blocks of the session. What they refuse they say as a text that begins with
`Error:`; it is no failed call.
"""

from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Annotated, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from sessions_app.context.history import MODEL
from sessions_app.context.session_context import SessionContext
from sessions_app.context.snapshot import ContextState
from sessions_app.core.context.context_blocks import Declaration, SearchableHistory
from sessions_app.core.context.loaded_skills import LOAD_TOOL, NOT_FOUND, UNLOAD_TOOL, without_unloaded
from sessions_app.core.messages.shapes import Message
from sessions_app.errors import SessionError
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.schema import json_schema
from tools_app.core.tool import Tool, ToolContext
from tools_app.guard.standings import sources_in

SET_TOOL: Final = "set_context"
SEARCH_TOOL: Final = "search_context"
SESSIONS_TOOL: Final = "session_search"
TIMEOUT_SECONDS: Final = 60.0
TITLES: Final = {
    SET_TOOL: "Remember",
    LOAD_TOOL: "Open a document",
    UNLOAD_TOOL: "Put a document away",
    SEARCH_TOOL: "Search notes",
    SESSIONS_TOOL: "Search past conversations",
}
"""The names of these tools for people."""


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Metadata(_Input):
    """The name of an entry."""

    title: str = ""
    description: str = ""


class SetInput(_Input):
    """Input of `set_context`."""

    label: Annotated[str, Field(description="The block to write to.")]
    content: Annotated[str, Field(description="What to write.")]
    action: Annotated[Literal["replace", "append"], Field(description="Replace the whole text, or add to its end.")] = (
        "replace"
    )


class SetEntryInput(SetInput):
    """Input of `set_context` where a block holds entries."""

    metadata: Annotated[Metadata | None, Field(description="Title and description of an entry.")] = None


class KeyInput(_Input):
    """Input of `load_context` and `unload_context`."""

    label: Annotated[str, Field(description="The block.")]
    key: Annotated[str, Field(description="The document, as the block lists it.")]


class SearchInput(_Input):
    """Input of `search_context`."""

    label: Annotated[str, Field(description="The block to search.")]
    query: Annotated[str, Field(description="Words to search for.")]


class QueryInput(_Input):
    """Input of `session_search`."""

    query: Annotated[str, Field(description="Words to search for.")]


def session_tools(context: SessionContext, state: ContextState) -> list[Tool]:
    """Make the tools that the blocks of a session call for; none for a session without such blocks."""
    blocks = list(state.blocks.values())
    tools: list[Tool] = []
    writable = [block for block in blocks if block.kind.writable]
    if writable:
        tools.append(_set_tool(context, writable))
    skills = [block for block in blocks if block.kind.is_skill]
    if skills:
        tools += [_load_tool(context, skills), _unload_tool(context, skills)]
    searchable = [block for block in blocks if block.kind.is_searchable]
    if searchable:
        tools.append(_search_tool(context, searchable))
    if context.setup.searches is not None:
        tools.append(_sessions_tool(context, context.setup.searches))
    return tools


class ReadMessages(Protocol):
    """The history as a model reads it, and the running turn's answer so far."""

    def __call__(self, history: list[Message], said: Sequence[Message] = ()) -> list[Message]:
        """Give them in one list, root first."""


def skill_reader(context: SessionContext, state: ContextState) -> ReadMessages:
    """Make a reader of a session's messages: it replaces unloaded documents by short notes."""
    blocks = [*context.setup.blocks.values(), *state.blocks.values()]
    has_skills = any(block.kind.is_skill for block in blocks)
    loaded = state.rows.loaded

    def read(history: list[Message], said: Sequence[Message] = ()) -> list[Message]:
        return without_unloaded(history, said, loaded) if has_skills else [*history, *said]

    return read


def _set_tool(context: SessionContext, blocks: list[Declaration]) -> Tool:
    keyed = {block.label for block in blocks if block.kind.is_keyed}

    async def set_context(
        call: ToolContext,
        label: str,
        content: str,
        action: str = "replace",
        metadata: Metadata | None = None,
    ) -> str:
        if label in keyed:
            named = metadata or Metadata()
            key = await context.set_entry(label, content, title=named.title, description=named.description, by=MODEL)
            return f'Indexed "{key}" in {label}.'
        if action == "append":
            held = await context.block(label) if call.attempt > 1 else None
            if held is not None and held.content.endswith(content):
                return f"Written to {label}. Usage: {held.usage}"  # the attempt that a crash cut had written it
            block = await context.append(label, content, by=MODEL)
        else:
            block = await context.replace(label, content, by=MODEL)
        return f"Written to {label}. Usage: {block.usage}"

    description = (
        "Remember something: write to a block of your context. It is kept at once; your system prompt may show it "
        f"later. Blocks:\n{_listed(blocks)}"
    )
    return _tool(SET_TOOL, description, SetEntryInput if keyed else SetInput, set_context, blocks)


def _load_tool(context: SessionContext, blocks: list[Declaration]) -> Tool:
    async def load_context(label: str, key: str) -> str:
        document = await context.load(label, key)
        return f"{NOT_FOUND}: {key}" if document is None else document

    description = f"Load a document that a block of your context lists. Blocks:\n{_listed(blocks)}"
    return _tool(LOAD_TOOL, description, KeyInput, load_context, blocks)


def _unload_tool(context: SessionContext, blocks: list[Declaration]) -> Tool:
    async def unload_context(label: str, key: str) -> str:
        was_loaded = await context.unload(label, key)
        return f'Unloaded "{key}" from {label}.' if was_loaded else f"Not loaded: {key}"

    # Not what is loaded now: a declaration that changes costs the provider's cache of all that follows it.
    description = (
        "Make room: take a loaded document that is no longer needed out of what you read. It can be loaded again."
    )
    return _tool(UNLOAD_TOOL, description, KeyInput, unload_context, blocks)


def _search_tool(context: SessionContext, blocks: list[Declaration]) -> Tool:
    async def search_context(call: ToolContext, label: str, query: str) -> str:
        sessions: set[str] = set()
        found = await context.search(label, query, found_in=sessions.update)
        await _note_texts_of(sessions, call)
        return found

    description = f"Search a block of your context; the ten best entries are given. Blocks:\n{_listed(blocks)}"
    return _tool(SEARCH_TOOL, description, SearchInput, search_context, blocks)


def _sessions_tool(context: SessionContext, scope: SearchableHistory) -> Tool:
    async def session_search(call: ToolContext, query: str) -> str:
        sessions: set[str] = set()
        found = await context.search_sessions(query, of=scope, found_in=sessions.update)
        await _note_texts_of(sessions, call)
        return found

    description = "Search what was said in other conversations; the ten best messages are given."
    return _tool(SESSIONS_TOOL, description, QueryInput, session_search, [])


async def _note_texts_of(session_ids: set[str], call: ToolContext) -> None:
    """Note the strangers whose text these conversations have read: what was said there may be theirs."""
    if session_ids:
        for text in await db(sources_in, session_ids):
            call.note_origin(text.origin, text.source)


def _tool(
    name: str,
    description: str,
    arguments: type[BaseModel],
    function: Callable[..., Awaitable[str]],
    blocks: list[Declaration],
) -> Tool:
    takes_call = "call" in function.__annotations__

    async def run(**given: object) -> str:
        try:
            return await function(**given)
        except SessionError as error:
            return f"Error: {error.message}"

    return Tool(
        name=name,
        description=description,
        input_schema=_schema(arguments, [block.label for block in blocks]),
        function=run,
        timeout_seconds=TIMEOUT_SECONDS,
        arguments=arguments,
        context_parameter="call" if takes_call else None,
        title=TITLES[name],
        read_only=name != SET_TOOL,
    )


def _schema(arguments: type[BaseModel], labels: list[str]) -> JSONObject:
    """The input's schema, with the label limited to existing ones."""
    return deepcopy(_shared_schema(arguments, tuple(labels)))


@lru_cache(maxsize=64)
def _shared_schema(arguments: type[BaseModel], labels: tuple[str, ...]) -> JSONObject:
    schema = json_schema(arguments)
    schema.pop("description", None)
    if labels:
        schema["properties"]["label"]["enum"] = list(labels)
    return schema


def _listed(blocks: list[Declaration]) -> str:
    return "\n".join(f"- {block.label}: {block.description}".rstrip(": ") for block in blocks)
