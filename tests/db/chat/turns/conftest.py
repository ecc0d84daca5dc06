"""Alice, agents of several kinds with the scripted model, and a way to run their turns to the end in this process."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agent.base import InstanceKey
from chat.instance.handle import AgentHandle
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.reads.snapshots import current_transcript
from chat.turns.admission.admit import Admission, TurnRequest, admit
from chat.turns.admission.intake import Intake, Submit
from chat.turns.state.status import turn_status
from fibers.testing import run_until_idle
from sessions_app.core.messages.shapes import Message
from tests.db.chat.turns.agents.everyday import CALLS, MODELS, SEEN
from thinkproject.kernel.aio import db
from tools_app.code_tool.tool import shared_sandbox


@dataclass
class Room:
    """One conversation and what tests do in it."""

    key: InstanceKey
    model: ScriptedModel = field(default_factory=ScriptedModel)

    async def admit(self, intake: Intake | str, **options: Any) -> Admission:
        if isinstance(intake, str):
            intake = Submit(message={"role": "user", "parts": [{"type": "text", "text": intake}]})
        return await db(admit, self.key, TurnRequest(intake=intake, **options))

    async def say(self, intake: Intake | str, **options: Any) -> Turn:
        admission = await self.admit(intake, **options)
        await run_until_idle(skip_delays=True)
        return await self.turn(admission.turn.pk)

    @property
    def handle(self) -> AgentHandle:
        return AgentHandle(self.key)

    async def turn(self, turn_id: str) -> Turn:
        return await db(lambda: Turn.objects.select_related("fiber").get(pk=turn_id))

    async def transcript(self) -> list[Message]:
        return await db(current_transcript, self.key)

    async def texts(self) -> list[tuple[str, str]]:
        return [(m["role"], text_of(m)) for m in await self.transcript()]


def text_of(message: Message) -> str:
    return "".join(part["text"] for part in message["parts"] if part["type"] == "text")


def status_of(turn: Turn) -> str:
    return turn_status(turn.fiber.status, turn.fiber.reason).value


MakeRoom = Callable[..., Room]


@pytest.fixture(autouse=True)
def _fresh_memory() -> None:
    CALLS.clear()
    SEEN.clear()


@pytest.fixture
def make_room(transactional_db: None) -> MakeRoom:
    """Rooms of Alice's with a named agent of `tests/db/chat/turns`."""
    user = User.objects.create_user("alice", password="alice-password")

    def make(agent: str = "plain", name: str = "room") -> Room:
        room = Room(InstanceKey(owner_id=user.pk, agent=agent, name=name))
        MODELS["current"] = room.model
        return room

    return make


@pytest.fixture
def busy_room(make_room: MakeRoom) -> Room:
    """A room with the agent of `fibering`."""
    return make_room("busy")


@pytest.fixture
def planner_room(make_room: MakeRoom) -> Room:
    """A room with the agent of `planning`."""
    return make_room("planner")


@pytest.fixture
def flexible_room(make_room: MakeRoom) -> Room:
    """A room with the agent of `hook_agents`."""
    return make_room("flexible")


@pytest.fixture
async def shared_sandbox_closes() -> AsyncIterator[None]:
    """What code left in the sandbox of this process ends with the test."""
    yield
    await shared_sandbox().close()
