"""What tests of file tools in turns share: scripts of calls, and what the calls gave."""

import json
from typing import Any

from sessions_app.core.messages.shapes import Part

from .conftest import Room


def call(name: str, /, **arguments: Any) -> str:
    """A line of a script."""
    return f"call tool {name} {json.dumps(arguments)}"


def one_after_another(*calls: str) -> str:
    """A script in which the model asks for each call when it has read the result of the one before."""
    return "\nsay: .\n".join([*calls, "say: Done."]).replace("say: .\nsay: Done.", "say: Done.")


async def parts_of_calls(room: Room) -> list[Part]:
    """The calls of the last answer."""
    return [part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part]


async def outputs(room: Room, *calls: str) -> list[Any]:
    """Have the model make these calls one after another, and give their outputs, or the texts of their errors."""
    await room.say(one_after_another(*calls))
    return [part.get("output", part.get("errorText")) for part in await parts_of_calls(room)]


def offered(room: Room) -> list[str]:
    """Names of the tools that the last request declared."""
    return [item["name"] for item in room.model.requests[-1].get("tools", [])]
