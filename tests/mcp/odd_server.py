"""A server of the tests, for what the servers of others do not do: be wrong, ask, be slow, change, die.

Run it as `python odd_server.py stdio MARKS`, or `http PORT MARKS`. `MARKS` is a folder in which it notes what happened.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged

MARKS = Path(sys.argv[-1])
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
HINTS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
TOOLS: dict[str, types.Tool] = {
    tool.name: tool
    for tool in (
        types.Tool(
            name="echo",
            title="Echo",
            description="Say it again.",
            input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            annotations=HINTS,
        ),
        types.Tool(
            name="bad",
            description="Cannot be offered.",
            input_schema={"type": "object", "properties": {"x": {"type": 7}}},
        ),
        types.Tool(name="name", description="Ask for a name.", input_schema=OBJECT),
        types.Tool(name="slow", description="Take its time.", input_schema=OBJECT),
        types.Tool(name="environment", description="Names of variables.", input_schema=OBJECT),
        types.Tool(name="grow", description="Offer one more tool.", input_schema=OBJECT),
        types.Tool(name="die", description="Die.", input_schema=OBJECT),
        types.Tool(name="fail", description="Fail.", input_schema=OBJECT),
    )
}
for number in range(int(os.environ.get("ODD_MANY", "0"))):
    COUNTED: dict[str, Any] = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
    WORDS = ("ship", "refund", "pack", "invoice", "weigh")[number % 5]
    TOOLS[f"{WORDS}_{number}"] = types.Tool(
        name=f"{WORDS}_{number}",
        description=f"Have depot {number} {WORDS} an order. " + "Orders of other depots are refused. " * 5,
        input_schema=COUNTED,
    )
GROWN = types.Tool(name="grown", description="New.", input_schema=OBJECT)
BUS = InMemorySubscriptionBus()
NAME = {"type": "object", "properties": {"name": {"type": "string", "title": "Name"}}, "required": ["name"]}


WISHES = {
    "type": "object",
    "properties": {
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "speed": {"type": "string", "enum": ["f", "n"], "enumNames": ["Fast", "Normal"], "default": "n"},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "extras": {
            "type": "array",
            "items": {"anyOf": [{"const": "n", "title": "Nuts"}, {"const": "m", "title": "Milk"}]},
            "maxItems": 1,
        },
        "days": {"type": "array", "items": {"type": "string", "enum": ["mo", "tu"]}, "minItems": 1},
    },
    "required": ["size", "days"],
}


def mark(name: str) -> None:
    """Note that something happened, once more."""
    with (MARKS / name).open("a") as out:
        out.write("x")


async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    mark("listed")
    return types.ListToolsResult(tools=list(TOOLS.values()))


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    mark(params.name)
    match params.name:
        case "echo":
            return _text(str((params.arguments or {}).get("text")))
        case "name":
            return _name(params)
        case "slow":
            return await _slow(context)
        case "environment":
            return _text(" ".join(sorted(os.environ)))
        case "grow":
            TOOLS["grown"] = GROWN
            await BUS.publish(ToolsListChanged())
            return _text("grown")
        case "die":
            os._exit(3)
        case "fail":
            return types.CallToolResult(content=[types.TextContent(text="it broke")], is_error=True)
        case name:
            return _text(name)


def _name(params: types.CallToolRequestParams) -> Any:
    answers = params.input_responses or {}
    if "name" not in answers:
        wanted = WISHES if (params.arguments or {}).get("kind") == "wishes" else NAME
        question = types.ElicitRequestFormParams(message="What is your {name}?", requested_schema=wanted)
        return types.InputRequiredResult(input_requests={"name": types.ElicitRequest(params=question)})
    answer: Any = answers["name"]
    return _text(f"{answer.action} {answer.content}")


async def _slow(context: Any) -> types.CallToolResult:
    try:
        for step in range(300):
            await context.session.report_progress(step, 300, f"step {step}")
            await asyncio.sleep(0.1)  # a tool that takes half a minute
    except asyncio.CancelledError:
        mark("cancelled")
        raise
    return _text("slept")


def _text(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


server = Server(
    "odd",
    instructions="Handle with care.",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_subscriptions_listen=ListenHandler(BUS),
)


async def main() -> None:
    """Serve."""
    mark("started")
    if (MARKS / "has-grown").exists():  # while it was down
        TOOLS["grown"] = GROWN
    if sys.argv[1] == "http":
        app = server.streamable_http_app()
        await uvicorn.Server(uvicorn.Config(app, port=int(sys.argv[2]), log_level="error")).serve()
        return
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main())
