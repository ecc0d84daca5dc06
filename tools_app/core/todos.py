"""The to-do list of a conversation, as models write it and clients show it. Pure.

The list is the output of the last call of `todo_write` on the shown path, and is stored nowhere else: an undo, a redo
and another branch each bring back the list that was there.
"""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

TODO_WRITE: Final = "todo_write"
TODO_READ: Final = "todo_read"
MAX_TODOS: Final = 50
MAX_TODO_CHARS: Final = 300


class Todo(BaseModel):
    """One thing to do."""

    model_config = ConfigDict(extra="forbid")

    content: Annotated[str, Field(min_length=1, max_length=MAX_TODO_CHARS, description="What is to be done.")]
    status: Annotated[
        Literal["pending", "in_progress", "completed", "cancelled"],
        Field(description="At most one is in_progress: that which you work on."),
    ] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


def todos_in(output: JSONValue) -> list[JSONObject]:
    """The list that an output of `todo_write` has; empty for any other value."""
    found = output.get("todos") if isinstance(output, dict) else None
    return [todo for todo in found if isinstance(todo, dict)] if isinstance(found, list) else []


def as_output(todos: Iterable[JSONObject]) -> JSONObject:
    """The output of both tools."""
    return {"todos": list(todos)}
