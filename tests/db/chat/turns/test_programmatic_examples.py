"""The code examples of the Think documentation on turns that code starts, translated; each under its heading's name.

"Chaining from onChatResponse" is in `test_hook_examples.py`.
"""

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from chat.agent.values.turns import SKIPPED
from chat.instance.handle import AgentHandle
from chat.instance.instance import make_agent
from chat.llm.scripted import ScriptedModel
from chat.models import AgentRun, Turn
from chat.streams.reader import read
from chat.testing import worker
from chat.think import Think, Tool, tool
from fibers.core.states import FiberStatus
from fibers.execution.worker import Sweeper
from fibers.models import Schedule, ScheduleRun
from sessions_app.core.messages.shapes import Message, NewMessage
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.gated import Endless, gate, reached, settled, until
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, load

from .conftest import MakeRoom, Room, text_of
from .methods_support import count_turns, said, texts, user
from .working import call, outputs

logger = logging.getLogger(__name__)


class Programmed(Think, abstract=True):
    """What the examples share: the model of the test."""

    def get_model(self) -> Any:
        return MODELS["current"]


# Agent tools


class ResearcherDoc(Programmed):
    """The child, with a tool of its own."""

    description = "Researches a topic."

    def get_tools(self) -> list[Tool]:
        @tool
        async def look_up(topic: str) -> str:
            """Look a topic up."""
            return f"three papers on {topic}"

        return [look_up]


class PrincipalDoc(Programmed):
    """The parent, with the child as a tool, and with a tool that has it work by code."""

    def get_tools(self) -> list[Tool]:
        @tool
        async def compare(one: str, other: str) -> list[str]:
            """Have two topics researched."""
            runs = [await self.run_agent_tool(ResearcherDoc, f"say: On {topic}.") for topic in (one, other)]
            return [str(run["summary"]) for run in runs]

        return [self.agent_tool(ResearcherDoc, name="research"), compare]


async def test_agent_tools(make_room: MakeRoom) -> None:
    room = make_room("principal-doc")
    task = "\n".join(
        [
            call("look_up", topic="tea"),
            call("write", path="/notes.md", content="on tea"),
            "say: I found {results}.",
        ]
    )
    [run] = await outputs(room, call("research", task=task))
    child = room.handle.sub_agent(ResearcherDoc, run["runId"])
    question, answer = await child.messages()
    assert (text_of(question), run["ok"], run["summary"]) == (task, True, text_of(answer))  # messages of its own
    assert "three papers on tea" in text_of(answer)  # and tools
    parents, childs = (
        {found["name"] for found in request["tools"]} for request in (room.model.requests[0], room.model.requests[1])
    )
    assert ("look_up" in parents, "research" in childs) == (False, False)
    assert await child.workspace.read_file("/notes.md") == "on tea"  # and storage
    assert not await room.handle.workspace.exists("/notes.md")
    kept = await db(lambda: AgentRun.objects.get(run_id=run["runId"]))
    assert kept.turn_id is not None
    streamed = [load(record.text) for record in await read(kept.turn_id, 0)]  # and a stream that can be read again
    assert "".join(chunk["delta"] for chunk in streamed if chunk["type"] == "text-delta") == text_of(answer)


async def test_agent_tools_that_code_runs(make_room: MakeRoom) -> None:
    room = make_room("principal-doc")
    assert await outputs(room, call("compare", one="tea", other="milk")) == [["On tea.", "On milk."]]
    assert len(await room.handle.list_sub_agents(ResearcherDoc)) == 2


# Example: parent calling a child


class ChildDoc(Programmed):
    def get_system_prompt(self) -> str:
        return "You are a research assistant. Analyze data and report findings."


class Callback:
    """What the parent does with what its child streams."""

    def __init__(self) -> None:
        self.chunks: list[str] = []
        self.ends: list[str] = []

    def on_event(self, text: str) -> None:
        self.chunks.append(text)

    def on_done(self) -> None:
        self.ends.append("done")
        logger.info("Child completed")

    def on_error(self, error: str) -> None:
        self.ends.append("error")
        logger.error("Child failed: %s", error)


async def delegate_to_child(child: AgentHandle, task: str) -> list[str]:
    callback = Callback()
    await child.chat(task, callback)
    return callback.chunks


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == __name__]


async def test_example_parent_calling_a_child(make_room: MakeRoom, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=__name__)
    room = make_room()  # the parent
    child = room.handle.sub_agent(ChildDoc, "child-1")
    async with worker():
        chunks = [load(text) for text in await delegate_to_child(child, "say: I found nothing.")]
        assert "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta") == "I found nothing."
        assert (chunks[0]["type"], chunks[-1]["type"]) == ("start", "finish")
        assert logged(caplog) == ["Child completed"]
        await delegate_to_child(child, "error 400")
        again = room.handle.sub_agent(ChildDoc, "child-1")  # the same one, with what it was asked and said before
        assert [message["role"] for message in await again.messages()] == ["user", "assistant", "user"]
    [failed] = logged(caplog)[1:]
    assert failed.startswith("Child failed: ")
    system = room.model.requests[0]["messages"][0]
    assert (system["role"], system["content"]) == ("system", ChildDoc.get_system_prompt(make_child(child)))
    assert await room.transcript() == []  # what the child says is the child's


def make_child(handle: Room | AgentHandle) -> ChildDoc:
    child = make_agent(handle.key)
    assert isinstance(child, ChildDoc)
    return child


# Passing extra tools


class ReportingDoc(Programmed):
    """The parent: it has the report, and a child that sums it up."""

    def get_tools(self) -> list[Tool]:
        @tool
        async def ask_child() -> str:
            """Have the child sum the report up."""
            child = AgentHandle(self.key).sub_agent(ChildDoc, "child-1")
            result = await child.chat(SUMMARIZE, Callback(), tools={"fetchReport": fetch_report})
            assert result.message is not None
            return text_of(result.message)

        @tool(description="Fetch the report data")
        async def fetch_report() -> JSONObject:
            return self.get_report_data()

        return [ask_child]

    def get_report_data(self) -> JSONObject:
        return {"sold": 12, "of": self.key.name}


SUMMARIZE = "call tool fetchReport {} id=report\nsay: The report says {result}."


async def test_passing_extra_tools(make_room: MakeRoom) -> None:
    room = make_room("reporting-doc")
    async with worker(), asyncio.timeout(30):
        await room.handle.chat("call tool ask_child {} id=ask\nsay: My child says: {result}")
        child = room.handle.sub_agent(ChildDoc, "child-1")
        [_question, answer] = await child.messages()
        await child.chat("say: Nothing more.")
    assert text_of(answer) == 'The report says {"sold":12,"of":"room"}.'
    assert (await room.texts())[-1] == ("assistant", f"My child says: {text_of(answer)}")
    prompt = ChildDoc.get_system_prompt(make_child(child))
    of_child = [request for request in room.model.requests if request["messages"][0]["content"] == prompt]
    offered = ["fetchReport" in [found["name"] for found in request["tools"]] for request in of_child]
    assert offered == [True, True, False]  # for this turn only


async def test_passing_extra_tools_with_the_highest_priority(make_room: MakeRoom) -> None:
    """With us a tool of the agent wins (ADR 0018): what runs elsewhere never takes the place of what runs here."""
    room = make_room("reporting-doc")

    @tool(name="ask_child")
    async def other() -> str:
        """Answer in the place of the agent's tool."""
        return "in its place"

    async with worker(), asyncio.timeout(30):
        result = await room.handle.chat("call tool ask_child {} id=ask\nsay: {result}", tools=[other])
    assert result.message is not None
    assert text_of(result.message) == 'The report says {"sold":12,"of":"room"}.'


# Aborting a sub-agent turn


async def test_aborting_a_sub_agent_turn(make_room: MakeRoom) -> None:
    room = make_room()  # the parent
    child = room.handle.sub_agent(ChildDoc, "child-1")
    signal, callback = asyncio.Event(), Callback()
    MODELS["current"] = Endless(signal)  # as the example's timer: it is set in mid-answer
    async with worker(), asyncio.timeout(30):
        result = await child.chat("Long analysis task", callback, signal=signal)
        [_user, answer] = await child.messages()
        assert (result.status, result.message) == ("aborted", answer)
        assert 0 < len(text_of(answer).split()) <= 3
        assert [load(text)["type"] for text in callback.chunks].count("text-delta") > 0
        assert callback.ends == []  # a stopped turn is neither done nor failed
        MODELS["current"] = ScriptedModel("say: Short.")
        again = await child.chat("Short analysis task", callback)
    assert (again.status, callback.ends) == ("completed", ["done"])
    assert [message["role"] for message in await child.messages()] == ["user", "assistant"] * 2
    assert await room.transcript() == []  # the parent's conversation has no part in it


async def test_aborting_all_turns_of_a_sub_agent(make_room: MakeRoom) -> None:
    """The parent stops what its child does by the child's handle, without the call that it waits in."""
    room = make_room()
    child = room.handle.sub_agent(ChildDoc, "child-1")
    spoke = asyncio.Event()
    MODELS["current"] = Endless(spoke)
    async with worker(), asyncio.timeout(30):
        waiting = asyncio.create_task(child.chat("Long analysis task", Callback()))
        await spoke.wait()
        assert await room.handle.abort_all_requests() is False  # the parent itself does nothing
        assert await child.abort_all_requests() is True
        assert (await waiting).status == "aborted"


# Static messages


async def test_static_messages(make_room: MakeRoom) -> None:
    room = make_room("child-doc")
    MODELS["current"] = ScriptedModel("say: All is well.")
    async with worker():
        result = await make_child(room).save_messages(
            [{"id": "daily-1", "role": "user", "parts": [{"type": "text", "text": "Time for your daily summary."}]}]
        )
    assert (result.status, bool(result.request_id)) == ("completed", True)
    assert await texts(room) == ["Time for your daily summary.", "All is well."]
    assert (await room.transcript())[0]["id"] == "daily-1"


# Function form


async def test_function_form(make_room: MakeRoom) -> None:
    """Two that queue up: each sees the messages of when its own turn starts."""
    room = make_room("gated")
    received: list[int] = []

    def go_on(current: list[Message]) -> list[NewMessage]:
        received.append(len(current))
        return [*current, user("say: Continue your analysis.")]

    async with worker(), gate() as opened:
        await room.admit("say: first")
        await reached()
        saving = [asyncio.create_task(room.handle.save_messages(go_on)) for _ in range(2)]

        async def have_their_places() -> bool:
            return await count_turns() == 3

        await until(have_their_places)
        opened.set()
        assert [(await settled(each)).status for each in saving] == ["completed", "completed"]
    assert received == [2, 4]
    assert (await texts(room))[2:] == ["say: Continue your analysis.", "Continue your analysis."] * 2


# Scheduled responses


class ScheduledDoc(Programmed):
    async def on_scheduled(self) -> None:
        await self.save_messages([user("say: Generate the daily report.")])


@pytest.fixture
def sweeping(settings: Any) -> Iterator[None]:
    """What each worker process does beside its work: it looks for what is due, by the database's clock."""
    settings.THINK_FIBER_SWEEP_SECONDS = 0.1
    sweeper = Sweeper()
    sweeper.start()
    yield
    sweeper.stop()
    sweeper.join()


async def one_run() -> ScheduleRun:
    """The one occurrence that began, once it has ended."""

    async def has_ended() -> bool:
        return await db(lambda: ScheduleRun.objects.filter(fiber__status=FiberStatus.COMPLETED).exists())

    await until(has_ended)
    return await db(lambda: ScheduleRun.objects.get())


REPORT = ["say: Generate the daily report.", "Generate the daily report."]


async def test_scheduled_responses(make_room: MakeRoom, sweeping: None) -> None:
    room = make_room("scheduled-doc")
    agent = make_agent(room.key)
    assert isinstance(agent, ScheduledDoc)
    made = await agent.schedule("0 9 * * *", "on_scheduled", zone="Europe/Berlin")
    assert made.next_at is not None
    nine = made.next_at
    assert (nine.astimezone(ZoneInfo("Europe/Berlin")).hour, nine > timezone.now()) == (9, True)
    async with worker(), asyncio.timeout(30):
        before = nine - timedelta(days=1)  # nine o'clock has struck, as if the schedule were of the day before
        await db(lambda: Schedule.objects.filter(pk=made.id).update(next_at=before))
        assert (await one_run()).due_at == before
    assert await texts(room) == REPORT
    [armed] = await agent.get_schedules()
    assert (armed.id, armed.last_at, armed.next_at) == (made.id, before, nine)


async def test_scheduled_responses_once_after_a_while(make_room: MakeRoom, sweeping: None) -> None:
    room = make_room("scheduled-doc")
    agent = make_agent(room.key)
    assert isinstance(agent, ScheduledDoc)
    made = await agent.schedule(0.5, agent.on_scheduled)
    async with worker(), asyncio.timeout(30):
        assert (await one_run()).due_at == made.next_at
    assert await texts(room) == REPORT
    turn = await db(Turn.objects.get)
    assert made.next_at is not None
    assert turn.accepted_at >= made.next_at  # not before its time
    assert await agent.get_schedules() == []  # what was due once is over


# The method continueLastTurn


async def test_continue_last_turn(make_room: MakeRoom) -> None:
    room = make_room("child-doc")
    agent = make_child(room)
    assert await agent.continue_last_turn() == SKIPPED
    await room.handle.add_messages([user("How far are you?"), said("Half way,", "half")])
    MODELS["current"] = ScriptedModel("say: Half way, and done.")
    async with worker():
        assert (await agent.continue_last_turn({"reason": "nudge"})).status == "completed"
    _user, first, second = await room.transcript()
    assert (first["id"], text_of(first)) == ("half", "Half way,")
    assert (second["role"], second["id"] != "half") == ("assistant", True)


# The methods abortRequest and abortAllRequests


async def test_abort_request_and_abort_all_requests(make_room: MakeRoom) -> None:
    room = make_room("gated")
    async with worker(), gate() as opened:
        running = await room.admit("say: one")
        await reached()
        waiting = [await room.admit(f"say: {text}") for text in ("two", "three")]
        assert await room.handle.abort_request(waiting[0].turn.request_id, "not needed") is True
        assert await room.handle.abort_request(waiting[0].turn.request_id) is False
        assert await room.handle.abort_all_requests() is True
        assert await room.handle.wait_until_stable(20)
        assert await room.handle.abort_all_requests() is False
        opened.set()
    ended = [(await room.turn(one.turn.pk)).fiber.status for one in (running, *waiting)]
    assert ended == ["cancelled"] * 3
