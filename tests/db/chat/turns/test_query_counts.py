"""What an answer asks of the database is a short fixed list, whatever was said before (`docs/design/turns.md`)."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from django.db import connection

from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.llm.scripted import ScriptedModel
from chat.people.preferences import change_preferences
from chat.turns.admission.intake import ClientArray
from fibers.execution.runner import run_fiber
from sessions_app.context import store
from sessions_app.context.history import ContextOwner
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.statements import statements
from thinkproject.kernel.aio import db

from .conftest import Room
from .statement_kinds import ANSWERED, ASKED, kinds

ADMISSION = [
    "UPDATE agentinstance",  # locks it, counts the position, looks for open calls and for the message
    "SELECT fiber",  # the user's turns of the last minute
    "INSERT fiber",
    "UPDATE session",  # its next change
    "INSERT message",  # queued
    "INSERT turn",
]
CLAIM = [
    "UPDATE fiber",  # the claim
    "SELECT turn",  # with its instance, and whether calls are open
    "SELECT session",  # locks it; with the end of the shown path and the queue
    "UPDATE message",  # its place
    "INSERT messagewords",  # for the search
    "UPDATE session",  # the shown path
    "SELECT session",  # what was written to it since the turn before: the rest of the history stays in the worker
    "UPDATE turn",  # it has begun
]
ASSEMBLY = ["SELECT session"]  # with its context blocks and its budget
END = [
    "UPDATE fiber",  # completed, if the lease still holds
    "INSERT fiberstep",  # the model call
    "INSERT streamsegment",  # the rest of the log
    "UPDATE turn",  # ended, with its costs
    "SELECT session",  # locks it
    "INSERT message",  # the answer
    "INSERT messagewords",
    "UPDATE session",  # the shown path and the costs
    "SELECT fiber",  # the next one in the lane
]

pytestmark = pytest.mark.django_db(transaction=True)


class Noting(ScriptedModel):
    """The scripted model, which notes when it is asked and when it has answered."""

    def __init__(self, found: list[str]) -> None:
        super().__init__()
        self._found = found

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer."""
        self._found.append(ASKED)
        try:
            async for event in super().stream(request):
                yield event
        finally:  # who has read the end does not ask for more
            self._found.append(ANSWERED)


async def say(room: Room, text: str) -> list[str]:
    """The statements of one turn that a client asks for, from its admission to its end."""
    message: Any = {"id": f"id of {text}", "role": "user", "parts": [{"type": "text", "text": text}]}
    with statements() as found:
        MODELS["current"] = Noting(found)
        admission = await room.admit(ClientArray(messages=[message]), request_id=f"request of {text}")
        found.append("BEGIN")
        await run_fiber(admission.turn.fiber_id)
    turn = await room.turn(admission.turn.pk)
    assert turn.finished_at is not None
    return kinds(found)


async def test_a_turn_asks_what_its_page_says_and_nothing_else(make_room: Callable[..., Room]) -> None:
    room = make_room()
    await room.say("say: warm up")
    admission = list(ADMISSION)
    if connection.vendor == "postgresql":
        admission.insert(1, "SELECT user")  # locked where turns are counted
    wanted = [*admission, *CLAIM, *ASSEMBLY, ASKED, ANSWERED, *END]
    assert await say(room, "say: early") == wanted
    for number in range(6):
        await room.say(f"say: more {number}")
    assert await say(room, "say: late") == wanted


async def test_instructions_of_its_owner_cost_a_turn_no_statement(make_room: Callable[..., Room]) -> None:
    room = make_room()
    await room.say("say: warm up")
    before = await say(room, "say: without")
    await db(change_preferences, room.key.owner_id, {"about_me": "I bake bread."})
    assert await say(room, "say: with") == before
    assert "I bake bread." in str(MODELS["current"].requests[-1])


async def test_what_its_user_has_it_remember_costs_a_turn_no_statement(make_room: Callable[..., Room]) -> None:
    plain, room = make_room(name="without"), make_room("remembering")
    for each in (plain, room):
        await each.say("say: warm up")
        await each.say("say: once more")
    await db(write_memory, room.key.owner_id, "Likes tea.")
    assert await say(room, "say: with") == await say(plain, "say: without")
    await db(write_memory, room.key.owner_id, "Likes coffee.")
    assert await say(room, "say: again") == await say(plain, "say: again without")
    await say(room, "say: and again")
    assert "Likes coffee." in str(MODELS["current"].requests[-1])


def write_memory(owner_id: int | None, text: str) -> None:
    """Write the block as another process does."""
    owner = ContextOwner(owner_id=owner_id)
    store.write_text(owner, "memory", lambda _held: text, action="set", shape=store.Shape())


async def test_a_turn_has_three_transactions(make_room: Callable[..., Room]) -> None:
    room = make_room()
    await room.say("say: warm up")
    message: Any = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "say: hi"}]}
    with statements() as found:
        admission = await room.admit(ClientArray(messages=[message]), request_id="r")
        await run_fiber(admission.turn.fiber_id)
    if connection.vendor == "sqlite":  # PostgreSQL's driver begins them without a statement of ours
        assert len([sql for sql in found if sql.startswith("BEGIN")]) == 3
    assert (await room.turn(admission.turn.pk)).fiber.attempt == 1


async def test_a_turn_without_a_limit_of_turns_counts_none(make_room: Callable[..., Room], settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 0
    room = make_room()
    await room.say("say: warm up")
    found = await say(room, "say: free")
    assert found[:2] == [ADMISSION[0], ADMISSION[2]]
