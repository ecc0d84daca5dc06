"""The tools `todo_write` and `todo_read`: a model's list of what is to be done in a conversation."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from sessions_app.messages.tool_outputs import newest_output
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.calls.selectors import newest_output_of
from tools_app.core.schema import json_schema
from tools_app.core.todos import MAX_TODOS, TODO_READ, TODO_WRITE, Todo, as_output, todos_in
from tools_app.core.tool import Tool, ToolContext


class TodoWriteInput(BaseModel):
    """Write your to-do list for this conversation: the whole list each time, in order. People see it.

    Use it for work of three steps or more. Mark an item in_progress as you begin it and completed as soon as it is
    done, not several at the end; cancel what is no longer needed.
    """

    model_config = ConfigDict(extra="forbid")

    todos: Annotated[list[Todo], Field(max_length=MAX_TODOS)]


class TodoReadInput(BaseModel):
    """Read your to-do list, for instance after earlier messages were summarised."""

    model_config = ConfigDict(extra="forbid")


def current_todos(session_id: str, turn_id: str | None) -> list[JSONObject]:
    """The to-do list of a conversation as it is shown, with what a running turn has written. At most two queries."""
    written = newest_output_of(turn_id, TODO_WRITE) if turn_id else None
    return todos_in(newest_output(session_id, TODO_WRITE) if written is None else written)


async def _write(todos: list[Todo]) -> JSONObject:
    return as_output(todo.model_dump() for todo in todos)


async def _read(call: ToolContext) -> JSONObject:
    assert call.guard is not None, "the product runs tools in turns"
    return as_output(await db(current_todos, call.guard.session_id, call.turn_id))


def create_todo_tools() -> list[Tool]:
    """Make both tools. They change nothing but the list, so plan mode and the injection guard let them run."""
    written, read = json_schema(TodoWriteInput), json_schema(TodoReadInput)
    return [
        Tool(
            name=TODO_WRITE,
            description=written.pop("description"),
            input_schema=written,
            function=_write,
            arguments=TodoWriteInput,
            read_only=True,
            title="To-do list",
        ),
        Tool(
            name=TODO_READ,
            description=read.pop("description"),
            input_schema=read,
            function=_read,
            arguments=TodoReadInput,
            read_only=True,
            context_parameter="call",
            title="To-do list",
        ),
    ]


todo_tools: Final = tuple(create_todo_tools())
"""Both, for `get_tools()`."""
