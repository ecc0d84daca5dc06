"""The code examples of the Think documentation on recovery and stability, translated; each under its heading's name.

The flag of "Chat recovery" turns nothing on here: turns are durable always, and `chat_recovery = False` means that a
cut one does not go on. A turn that goes on does so in its own request and message, and keeps what was shown: `persist`
is for one that does not. Nothing is left for later.
"""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from chat.instance.instance import make_agent
from chat.models import Turn
from chat.testing import worker
from chat.think import RecoveryContext, RecoveryDecision, Think, Tool, TurnContext, client_tool
from fibers.context import stash
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.gated import until
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of, text_of
from .recovering import mortal

logger = logging.getLogger(__name__)
LONG = "stream 12 words"


class Recovered(Think, abstract=True):
    """What the examples share: the model of the test."""

    def get_model(self) -> Any:
        return MODELS["current"]


# Chat recovery


class RecoveryDoc(Recovered):
    chat_recovery = True


class NoRecoveryDoc(Recovered):
    chat_recovery = False


WHERE = {"name": "where", "description": "", "parameters": {}}
BEFORE = {
    "auto-continuation": f"call tool where {{}} id=asked\n{LONG}",
    "continue_last_turn": f"{LONG}\nerror in stream after 4 code context_length_exceeded",
}


@pytest.mark.parametrize("path", ["socket", "auto-continuation", "save_messages", "continue_last_turn"])
async def test_chat_recovery(make_room: MakeRoom, path: str) -> None:
    """All four ways a turn begins: the worker dies in mid-answer, and the answer is whole."""
    room = make_room("recovery-doc")
    if path in BEFORE:
        await room.say(BEFORE[path], client_tools=[WHERE])
    with mortal(room, 3):
        await start(room, path)
    said = "".join(text for role, text in await room.texts() if role == "assistant")
    assert len(said.split()) == 12
    assert await db(lambda: Turn.objects.filter(fiber__attempt=2).count()) == 1


async def start(room: Room, path: str) -> None:
    agent = make_agent(room.key)
    assert isinstance(agent, RecoveryDoc)
    if path == "socket":
        await room.say(LONG, via="socket")
    elif path == "auto-continuation":
        await Desk(room).reply("asked", output="here")
    else:
        turn = agent.save_messages(LONG) if path == "save_messages" else agent.continue_last_turn()
        running = asyncio.create_task(turn)

        async def is_over() -> bool:
            await run_until_idle(skip_delays=True)
            return running.done()

        await until(is_over)
        assert (await running).status == "completed"


async def test_chat_recovery_turned_off(make_room: MakeRoom) -> None:
    room = make_room("no-recovery-doc")
    with mortal(room, 3):
        turn = await room.say(LONG)
    assert status_of(turn) == "error"
    [_user, answer] = await room.transcript()
    assert 0 < len(text_of(answer).split()) < 12


# onChatRecovery


class OnChatRecoveryDoc(Recovered):
    chat_recovery = True

    def on_chat_recovery(self, context: RecoveryContext) -> RecoveryDecision:
        logger.info("Recovering turn %s, partial: %s chars", context.request_id, len(context.partial_text))
        return RecoveryDecision(persist=True, continue_turn=True)


async def test_on_chat_recovery(make_room: MakeRoom, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=__name__)
    room = make_room("on-chat-recovery-doc")
    with mortal(room, 3):
        turn = await room.say(LONG)
    [sent] = [record.getMessage() for record in caplog.records if record.name == __name__]
    [_user, answer] = await room.transcript()
    shown = len(" ".join(text_of(answer).split()[:3])) + 1
    assert sent == f"Recovering turn {turn.request_id}, partial: {shown} chars"
    assert (status_of(turn), len(text_of(answer).split())) == ("completed", 12)


# ChatRecoveryContext


class RecoveryContextDoc(Recovered):
    async def before_turn(self, context: TurnContext) -> None:
        await stash({"mark": context.body.get("mark")})

    def on_chat_recovery(self, context: RecoveryContext) -> None:
        SEEN.append(("context", context))


async def test_chat_recovery_context(make_room: MakeRoom) -> None:
    room = make_room("recovery-context-doc")
    tools = [{"name": "where", "description": "Where it is.", "parameters": {}}]
    await room.say("say: before")
    with mortal(room, 3):
        turn = await room.say(LONG, body={"mark": 7}, client_tools=tools)
    [context] = [value for name, value in SEEN if name == "context"]
    assert (context.turn_id, context.request_id) == (turn.pk, turn.request_id)  # a turn's log has the turn's id
    assert context.partial_text.split() == text_of((await room.transcript())[-1]).split()[:3]
    assert [part["type"] for part in context.partial_parts][-1] == "text"
    assert context.recovery_data == {"mark": 7}
    assert [text_of(message) for message in context.messages] == ["say: before", "before", LONG]
    assert (context.body, list(context.client_tools)) == ({"mark": 7}, tools)
    assert context.created_at == turn.accepted_at.isoformat()
    assert status_of(turn) == "completed"  # a hook that returns nothing lets the turn go on


class StaleDoc(Recovered):
    def on_chat_recovery(self, context: RecoveryContext) -> RecoveryDecision:
        age = timezone.now() - datetime.fromisoformat(context.created_at)
        return RecoveryDecision(continue_turn=age < timedelta(minutes=5))


@pytest.mark.parametrize(("minutes", "ending"), [(0, "completed"), (6, "error")])
async def test_created_at_skips_stale_recoveries(make_room: MakeRoom, minutes: int, ending: str) -> None:
    room = make_room("stale-doc")
    admission = await room.admit(LONG)
    accepted = admission.turn.accepted_at - timedelta(minutes=minutes)
    await db(lambda: Turn.objects.filter(pk=admission.turn.pk).update(accepted_at=accepted))
    with mortal(room, 3):
        await run_until_idle(skip_delays=True)
    assert status_of(await room.turn(admission.turn.pk)) == ending
    [_user, answer] = await room.transcript()
    assert (len(text_of(answer).split()) == 12) is (ending == "completed")


# ChatRecoveryOptions


class OptionsDoc(Recovered):
    persist = True

    def on_chat_recovery(self, context: RecoveryContext) -> RecoveryDecision:
        return RecoveryDecision(persist=self.persist, continue_turn=False)


class NotPersistedDoc(OptionsDoc):
    persist = False


@pytest.mark.parametrize(("agent", "roles"), [("options-doc", ["user", "assistant"]), ("not-persisted-doc", ["user"])])
async def test_chat_recovery_options(make_room: MakeRoom, agent: str, roles: list[str]) -> None:
    room = make_room(agent)
    with mortal(room, 3) as model:
        turn = await room.say(LONG)
    assert (status_of(turn), len(model.requests)) == ("error", 1)
    assert [message["role"] for message in await room.transcript()] == roles


# hasPendingInteraction


class StableDoc(Recovered):
    def get_tools(self) -> list[Tool]:
        return [client_tool("where", "Ask the browser where it is.")]


async def test_has_pending_interaction(make_room: MakeRoom) -> None:
    desk = Desk(make_room("stable-doc"))
    agent = make_agent(desk.room.key)
    assert isinstance(agent, StableDoc)
    assert await agent.has_pending_interaction() is False
    await desk.room.say("call tool where {} id=asked")
    assert await agent.has_pending_interaction() is True
    await desk.reply("asked", output="here", continues=False)
    assert await agent.has_pending_interaction() is False


# waitUntilStable


async def test_wait_until_stable(make_room: MakeRoom) -> None:
    desk = Desk(make_room("stable-doc"))
    agent = make_agent(desk.room.key)
    assert isinstance(agent, StableDoc)
    await desk.room.say("call tool where {} id=asked")
    assert await agent.wait_until_stable(timeout=0) is False
    await desk.reply("asked", output="here", continues=False)
    async with worker():
        stable = await agent.wait_until_stable(timeout=30)
        if stable:
            await agent.save_messages("say: In short, here.")
    assert (await desk.room.texts())[-2:] == [("user", "say: In short, here."), ("assistant", "In short, here.")]
