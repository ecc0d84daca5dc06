"""An agent whose tools run elsewhere, and the executor that has their functions. `serving` says who is there."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from typing_extensions import TypedDict

from chat.think import Think, Tool, ToolCall, ToolContext, client_tool, tool
from chat.tools.durable import (
    check_async_job_status,
    create_tool_execution_effect,
    make_async_tool,
    make_durable_tool,
    make_durable_tools,
)
from fibers.registry import serve_queues
from tests.db.chat.turns.agents.everyday import MODELS

DONE: list[str] = []
"""What executors did, in order."""

TENANTS: list[Any] = []
"""What `transform` has added, as executors were given it."""


class Found(TypedDict):
    hits: int


@tool
def search(query: str) -> dict[str, Any]:
    """Search the archive.

    Args:
        query: Words.
    """
    raise AssertionError("this is the declaration: its function is in the executor")


@tool(title="Slow count")
async def count(to: int, context: ToolContext) -> AsyncIterator[str]:
    """Count, telling how far it is."""
    DONE.append(f"count {context.idempotency_key.rpartition(':')[2]} {context.attempt}")
    yield f"at {to}"
    yield f"counted to {to}"


@tool(reruns=False)
def print_out(text: str) -> str:
    """Print once, or say that it was cut."""
    DONE.append(f"print {text}")
    return "printed"


@tool
def break_down(text: str) -> str:
    """Fail."""
    DONE.append(f"break {text}")
    raise ValueError(f"no such {text}")


@tool
async def linger(text: str) -> str:
    """Go on until it is stopped."""
    DONE.append(f"linger {text}")
    try:
        await asyncio.sleep(60)  # longer than any test
    finally:
        DONE.append("left")
    return text


photo = client_tool(
    "photo", "Take a photo.", {"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}
)


def search_here(query: str, context: ToolContext) -> dict[str, Any]:
    """Search, in the executor."""
    DONE.append(f"search {query} {context.attempt}")
    TENANTS.append(context.shared)
    return {"hits": "many"} if query == "wrong" else {"hits": len(query)}


def photo_here(of: str) -> str:
    """Take the photo, in the executor."""
    DONE.append(f"photo {of}")
    return f"a picture of {of}"


def note(call: Any, _context: ToolContext) -> None:
    """Refuse what is forbidden, when it was claimed."""
    if call.input.get("query") == "forbidden":
        raise PermissionError("not here")


IMPLEMENTATIONS: dict[str, Callable[..., Any]] = {"search": search_here, "photo": photo_here}
create_tool_execution_effect([search, photo], IMPLEMENTATIONS, executor="lab", on_executing=note)
create_tool_execution_effect([count, print_out, break_down, linger], executor="lab")


def tenant(call: ToolCall, _context: ToolContext) -> dict[str, Any]:
    """Add the tenant for whom the executor works."""
    return {"tenant": f"of {call.tool_name}"}


def framed(picture: str) -> str:
    """Frame what the executor gave."""
    return f"[{picture}]"


class DurableDesk(Think):
    """Has its tools run in the lab."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [
            make_durable_tool(search, executor="lab", timeout_seconds=60, output=Found, transform=tenant),
            make_durable_tool(photo, executor="lab", timeout_seconds=60, late="keep", get_result=framed),
            *make_durable_tools([print_out, break_down, linger], executor="lab"),
            make_async_tool(count, executor="lab", notify=self.key.name.startswith("notified")),
            check_async_job_status,
        ]


@contextmanager
def serving(*queues: str) -> Iterator[None]:
    """Let the worker of the block listen to these queues alone; that of all workers is the empty name."""
    serve_queues(queues)
    try:
        yield
    finally:
        serve_queues(None)
