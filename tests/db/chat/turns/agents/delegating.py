"""Agents that have others work for them, and those others. Importing this module serves them."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, ClassVar

import pytest

from chat.agent.base import InstanceKey
from chat.instances.rows import find_instance
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Turn
from chat.models.runs import AgentRun
from chat.think import (
    AgentRunInfo,
    ChatOptions,
    Detached,
    Origin,
    Relaxed,
    Think,
    Tool,
    ToolContext,
    TurnConfig,
    TurnContext,
    tool,
)
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import Room
from thinkproject.kernel.aio import db

ENDED: list[AgentRunInfo] = []
"""What hooks of parents were given, in order."""

WORKED: list[str] = []
"""What tools of children did, in order."""


@tool
async def hold(context: ToolContext) -> str:
    """Wait for an answer from outside."""
    end = await context.wait("question", label="Which colour?")
    return f"{end.answer}"


@tool
async def work(context: ToolContext) -> str:
    """Work."""
    WORKED.append(context.idempotency_key)
    return "done"


@tool(needs_approval=True)
async def pay() -> str:
    """Pay, which a person has to approve."""
    WORKED.append("paid")
    return "paid"


@tool(origin=Origin.WEB, read_only=True)
async def mail() -> str:
    """Read a stranger's mail."""
    return "Dear reader"


class Errand(Think):
    """Does what its task says: the task is a script."""

    workspace_tools = True
    description = "Does errands."

    def get_model(self) -> ScriptedModel:
        return MODELS.setdefault("errand", ScriptedModel())

    def get_tools(self) -> list[Tool]:
        @tool
        async def report(fraction: float) -> str:
            """Report progress and a milestone."""
            self.report_progress(fraction, "half of it")
            self.milestone("half", {"percent": 50})
            return "reported"

        @tool
        def burst() -> str:
            """Report progress far too often, from a thread."""
            for number in range(200):
                self.report_progress(number / 200, f"{number}")
            self.report_progress(1.0, "all of it")
            return "reported"

        @tool
        def note(name: str, data: dict[str, object]) -> str:
            """Note a milestone."""
            self.milestone(name, data)
            return "noted"

        return [hold, work, pay, report, burst, mail, note]


class StructuredErrand(Errand):
    """Gives a structured answer."""

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(output={"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]})


class Speechless(Errand):
    """Says nothing."""

    async def on_chat_message(self, options: ChatOptions) -> Any:
        """Answer with nothing."""

        async def nothing() -> AsyncIterator[Any]:
            parts: list[Any] = []
            for part in parts:
                yield part

        return nothing()


class Middle(Errand):
    """Delegates further."""

    def get_tools(self) -> list[Tool]:
        return [*super().get_tools(), self.agent_tool(Errand), self.agent_tool(Middle, name="again")]


class Chief(Think):
    """Has others work for it."""

    workspace_tools = True
    max_concurrent_agent_tools: ClassVar[int | None] = 3

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        @tool
        async def both(first: str, second: str) -> Any:
            """Have two errands done, one after the other."""
            one = await self.run_agent_tool(Errand, first)
            two = await self.run_agent_tool(Errand, second)
            return [one["summary"], two["summary"]]

        @tool
        async def talk(text: str) -> str:
            """Talk to a helper, and wait for its answer."""
            said = await self.sub_agent(Errand, "helper").chat(text)
            return str(said.status.value)

        return [
            talk,
            self.agent_tool(Errand, description="Run an errand.", display_name="Errands", icon="tool"),
            self.agent_tool(Errand, name="shared", workspace="shared"),
            self.agent_tool(Errand, name="later", detached=Detached(on_end="errand_ended")),
            self.agent_tool(Errand, name="wake", detached=Detached(wakes_parent=True)),
            self.agent_tool(StructuredErrand, name="structured"),
            self.agent_tool(Errand, name="served", mcp="shared"),
            self.agent_tool(Errand, name="asked", needs_approval=True),
            self.agent_tool(Speechless),
            mail,
            self.agent_tool(Middle),
            self.agent_tool(Chief, name="chief"),
            both,
            work,
        ]

    async def errand_ended(self, run: AgentRunInfo) -> None:
        """End of a detached run."""
        ENDED.append(run)


class CodingChief(Chief):
    """Has code call its agents."""

    code_tool: ClassVar[bool | Sequence[str]] = True


class ReadingChief(Chief):
    """Delegates without a question, whatever it has read."""

    injection_guard = Relaxed(reason="Its errands ask a person themselves.", allows=["errand"])


class HookedChief(Chief):
    """Hears of all ends."""

    def on_agent_tool_finish(self, run: AgentRunInfo) -> None:
        ENDED.append(run)


async def runs() -> list[AgentRun]:
    return await db(lambda: list(AgentRun.objects.select_related("child", "turn").order_by("created_at", "pk")))


async def only_run() -> AgentRun:
    [run] = await runs()
    return run


async def turns_of(room: Room, agent: str) -> list[Turn]:
    found = Turn.objects.filter(instance__agent=agent, instance__owner_id=room.key.owner_id)
    return await db(lambda: list(found.select_related("fiber", "instance").order_by("accepted_at")))


def call(name: str, task: str, call_id: str = "one") -> str:
    """A line of a script that gives a task, which is a script itself, to an agent."""
    quoted = task.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'call tool {name} {{"task": "{quoted}"}} id={call_id}'


async def instance_of(key: InstanceKey) -> AgentInstance:
    found = await db(find_instance, key)
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def nothing_delegated() -> None:
    ENDED.clear()
    WORKED.clear()
