"""Agents of one room that ask each other. Importing this module serves them."""

from typing import Any, ClassVar

from pydantic import BaseModel

from chat.agent.base import InstanceKey
from chat.instances.rows import find_instance
from chat.llm.scripted import ScriptedModel
from chat.models import AgentMessage, Turn
from chat.think import AgentReference, Think, Tool, ToolContext, tool
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import Room
from thinkproject.kernel.aio import db


class Talker(Think, abstract=True):
    """Does what the last message says: it is a script. Names of senders stand before it."""

    workspace_tools = False
    tells_time = False
    title_model = "none"

    def get_model(self) -> Any:
        return MODELS.setdefault(type(self).route_name(), ScriptedModel())

    def get_tools(self) -> list[Tool]:
        @tool
        async def linger(context: ToolContext) -> str:
            """Wait for an answer from outside."""
            end = await context.wait("question")
            return str(end.answer)

        @tool
        async def tell(agent: str, text: str) -> str:
            """Send a message, and go on."""
            await self.send_message(agent, text)
            return "sent"

        return [linger, tell]


class Sum(BaseModel):
    """A reply in a form of its own."""

    sum: int


class Reader(Talker):
    """Reads a lot."""

    agents: ClassVar[Any] = ["librarian"]


class Librarian(Talker):
    """Asks back."""

    agents: ClassVar[Any] = ["reader", "lead"]


class Lead(Talker):
    """Leads the others."""

    agents: ClassVar[Any] = [
        AgentReference(agent=Reader, description="Ask the reader."),
        AgentReference(agent="librarian", timeout_seconds=5.0, late="inbox"),
        AgentReference(agent="counter", output_schema=Sum),
    ]


class Confused(Talker):
    """Has a tool and an agent of one name."""

    agents: ClassVar[Any] = [AgentReference(agent="reader", name="linger")]


class Counter(Talker):
    """Counts."""


def ask(agent: str, script: str, call_id: str = "one") -> str:
    """A line of a script that asks an agent; what it is asked is a script itself."""
    quoted = script.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'call tool {agent} {{"message": "{quoted}"}} id={call_id}'


async def letters(room: Room) -> list[AgentMessage]:
    """All messages of the room, in order."""
    return await db(lambda: list(AgentMessage.objects.filter(room__name=room.key.name).order_by("seq")))


async def turns_in(room: Room, agent: str) -> list[Turn]:
    """The turns of an agent of the room."""
    key = room.key if agent == room.key.agent else room.key.below(agent, "inbox")
    found = await db(find_instance, key)
    if found is None:
        return []
    turns = Turn.objects.filter(instance=found).select_related("fiber", "instance").order_by("position")
    return await db(lambda: list(turns))


def member(room: Room, agent: str) -> InstanceKey:
    """The address of an agent of the room."""
    return room.key.below(agent, "inbox")
