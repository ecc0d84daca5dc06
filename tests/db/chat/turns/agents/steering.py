"""An agent that works in steps while people send messages. Importing this module serves it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from chat.models import Turn
from chat.think import Think, Tool, tool
from chat.turns.admission.intake import Submit
from sessions_app.core.messages.steered import steered_in
from tests.db.chat.turns.agents.answering import pay
from tests.db.chat.turns.agents.everyday import MODELS, add
from tests.db.chat.turns.conftest import Room, text_of
from thinkproject.kernel.aio import db

DESK: dict[str, asyncio.Event] = {}
"""`open` lets the tool go on; `reached` is set when it runs. Made by `at_work`."""

WORK = "call tool toil {} id=t1\nsay: Done as asked."


@asynccontextmanager
async def at_work() -> AsyncIterator[asyncio.Event]:
    """The tool stops until the event that this gives is set."""
    DESK["open"], DESK["reached"] = asyncio.Event(), asyncio.Event()
    try:
        yield DESK["open"]
    finally:
        DESK.pop("open").set()
        DESK.clear()


async def working() -> None:
    async with asyncio.timeout(20):
        await DESK["reached"].wait()


@tool
async def toil() -> str:
    """Work until the test lets go."""
    if "open" in DESK:
        DESK["reached"].set()
        await DESK["open"].wait()
    return "toiled"


class Worker(Think):
    """Works; messages queue."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [toil, add]


class SteeredWorker(Worker):
    """Messages steer, where they say nothing else."""

    message_concurrency = "steer"


class AskingWorker(Worker):
    """Pays with consent, too."""

    def get_tools(self) -> list[Tool]:
        return [*super().get_tools(), pay]


async def story(room: Room) -> list[str]:
    """The conversation as people read it: `role: text`, what an answer took in where it stands."""
    told: list[str] = []
    for message in await room.transcript():
        said = {each["id"]: text_of(each) for each in steered_in(message)}
        texts = [
            f"steer: {said[part['id']]}" if part.get("id") in said else f"{message['role']}: {part['text']}"
            for part in message["parts"]
            if part["type"] == "text" or part.get("id") in said
        ]
        told += texts
    return told


async def turns_in_order(room: Room) -> list[Turn]:
    rows = Turn.objects.select_related("fiber").filter(instance__name=room.key.name).order_by("position")
    return await db(lambda: list(rows))


def says(text: str, message_id: str) -> Submit:
    return Submit(message={"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]})
