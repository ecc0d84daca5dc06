"""What `docs/howto/keep-an-agent-small.md` says of sizes is what is sent."""

import re
from typing import Any

import pytest

from bench.typical_agents import TYPICAL
from chat.instance.instance import make_agent
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.transport import close_clients
from chat.llm.endpoint import Endpoint
from chat.llm.local_server import MODEL_ALIAS
from chat.models import AgentInstance
from chat.reads.preview import preview
from chat.think import Think, Tool, tool
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS
from tests.house.repository import ROOT
from tests.unit.chat.llm.conftest import local_base_url
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of, text_of

__all__ = ["local_base_url"]  # a fixture


@tool
def order_status(order_number: str) -> str:
    """Look up where an order is.

    Args:
        order_number: As printed on the invoice, for example A-1042.
    """
    return f"Order {order_number} left the warehouse this morning."


class ThreeLines(Think):
    """As the README shows it."""

    def get_model(self) -> Any:
        return MODELS["current"]


class ThreeLinesNoFiles(ThreeLines):
    """Without tools for files."""

    workspace_tools = False


class ThreeLinesReading(ThreeLines):
    """Reads files and changes none."""

    enabled_tools = ("read", "list", "grep")


class Quickstart(ThreeLinesNoFiles):
    """As the quickstart shows it."""

    def get_system_prompt(self) -> str:
        return "You help customers of a small shop. Look up orders before you answer."

    def get_tools(self) -> list[Tool]:
        return [order_status]


class QuickstartFiles(Quickstart):
    """The same with tools for files."""

    workspace_tools = True


PAGE = (ROOT / "docs" / "howto" / "keep-an-agent-small.md").read_text(encoding="utf-8")
FIGURES = [(int(count), int(tokens)) for count, tokens in re.findall(r"^\|.*\| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)]
AGENTS = (
    "three-lines-no-files",
    "quickstart",
    "three-lines-reading",
    "three-lines",
    "quickstart-files",
)


@pytest.mark.parametrize(("agent", "figures"), zip(AGENTS, FIGURES, strict=True))
async def test_the_figures_of_the_page_are_about_what_is_sent(
    make_room: MakeRoom, agent: str, figures: tuple[int, int]
) -> None:
    count, tokens = figures
    room = make_room(agent)
    await room.say("Hello")
    assert len(room.model.requests[0].get("tools", ())) == count
    await room.handle.clear()
    session_id = await db(lambda: str(AgentInstance.objects.values_list("session_id", flat=True).get()))
    shown = await preview(room.key, session_id, make_agent)
    assert len(shown.tools) == count
    assert shown.total_tokens == pytest.approx(tokens, rel=0.2)


@pytest.mark.parametrize("agent", ["quickstart", "three-lines"])
async def test_a_real_small_model_answers_hello_in_one_step(
    make_room: MakeRoom, local_base_url: str, agent: str, settings: Any
) -> None:
    """The one that can be had from package registries: it is sent no tools, as it could call none."""
    endpoint = Endpoint(provider="local", base_url=local_base_url, can_call_tools=False, accepts_images=False)
    room = make_room(agent)
    MODELS["current"] = ChatCompletionsModel(endpoint, MODEL_ALIAS)  # type: ignore[assignment]  # not scripted
    settings.THINK_MODEL_STALL_SECONDS = 300.0  # its words take as long as the machine is busy
    admitted = await room.admit("Hello")
    await run_until_idle(timeout_seconds=300.0, skip_delays=True)
    await close_clients()
    turn = await room.turn(admitted.turn.pk)
    assert (status_of(turn), turn.step_count, turn.error_text) == ("completed", 1, "")
    answer = (await room.transcript())[-1]
    assert text_of(answer).strip()
    assert {part["type"] for part in answer["parts"]} <= {"step-start", "text"}


async def test_code_and_an_agent_with_all_keep_to_their_bounds(make_room: MakeRoom) -> None:
    assert "sized-whole" in TYPICAL
    room = make_room("sized-whole")
    await room.handle.clear()
    session_id = await db(lambda: str(AgentInstance.objects.values_list("session_id", flat=True).get()))
    shown = await preview(room.key, session_id, make_agent)
    sizes = {tool.name: tool.tokens for tool in shown.tools}
    assert {"read", "bash", "execute", "create_schedule", "set_context"} <= set(sizes)
    assert sizes["execute"] < 900
    assert shown.total_tokens < 3_000
    code = next(tool.description for tool in shown.tools if tool.name == "execute")
    assert [name for name in sizes if name != "execute" and name.removesuffix("te") not in code] == []


async def test_three_hundred_tools_cost_less_than_three_declared_ones(make_room: MakeRoom) -> None:
    shown = {}
    for agent in ("sized-three", "sized-thirty", "sized-hundreds"):
        room = make_room(agent)
        await room.handle.clear()
        session_id = await db(AgentInstance.objects.values_list("session_id", flat=True).get, agent=agent)
        shown[agent] = await preview(room.key, str(session_id), make_agent)
    assert shown["sized-thirty"].tools == shown["sized-hundreds"].tools
    assert shown["sized-hundreds"].total_tokens < shown["sized-three"].total_tokens


@pytest.mark.parametrize("page", ["docs/quickstart.md", "docs/howto/keep-an-agent-small.md"])
def test_the_agent_of_a_page_has_no_tools_for_files(page: str) -> None:
    [declared] = re.findall(
        r"^class Support\(Think\):.*?(?=^```)", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert "workspace_tools = False" in declared
