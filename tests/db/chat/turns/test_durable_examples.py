"""The examples of the RFC about durable and async tools, translated, each under the name of what it shows."""

from typing import Any

import pytest

from chat.think import Think, Tool, tool
from chat.tools.durable import (
    check_async_job_status,
    create_tool_execution_effect,
    make_async_tool,
    make_durable_tool,
    make_durable_tools,
    wait_for_tool_result,
)
from fibers.models import Fiber
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db

from .conftest import MakeRoom
from .working import call, offered

pytestmark = pytest.mark.django_db(transaction=True)


@tool
def take_screenshot(url: str) -> dict[str, Any]:
    """Take a screenshot of a page."""
    raise NotImplementedError


@tool
def search_web(query: str) -> list[str]:
    """Search the web."""
    raise NotImplementedError


@tool
def generate_report(topic: str) -> str:
    """Write a long report."""
    raise NotImplementedError


def shot(url: str) -> dict[str, Any]:
    return {"image": f"{url}.png"}


create_tool_execution_effect([take_screenshot], {"take_screenshot": shot}, executor="pages")
create_tool_execution_effect(
    [search_web, generate_report],
    {"search_web": lambda query: [query, query], "generate_report": lambda topic: f"All about {topic}."},
)


class RemoteDoc(Think):
    """One declaration of each tool, and its implementation wherever it can run."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [
            make_durable_tool(take_screenshot, executor="pages", timeout_seconds=60),
            *make_durable_tools([search_web], timeout_seconds=60),
            make_async_tool(generate_report, get_immediate_result=lambda job_id: {"jobId": job_id, "status": "queued"}),
            check_async_job_status,
        ]


async def test_make_durable_tool(make_room: MakeRoom) -> None:
    room = make_room("remote-doc")
    await room.say(f"{call('take_screenshot', url='https://example.com')}\nsay: {{result}}")
    assert (await room.texts())[-1][1] == '{"image":"https://example.com.png"}'
    assert offered(room) == ["take_screenshot", "search_web", "generate_report", "check_async_job_status"]


async def test_make_durable_tools(make_room: MakeRoom) -> None:
    room = make_room("remote-doc")
    await room.say(f"{call('search_web', query='tea')}\nsay: {{result}}")
    assert (await room.texts())[-1][1] == '["tea","tea"]'


async def test_make_async_tool_and_check_async_job_status(make_room: MakeRoom) -> None:
    room = make_room("remote-doc")
    await room.say(f"{call('generate_report', topic='tea')}\nsay: {{result}}")
    job = await db(lambda: Fiber.objects.get(name="chat.tool:generate_report"))
    assert (await room.texts())[-1][1] == f'{{"jobId":"{job.pk}","status":"queued"}}'
    await room.say(f"{call('check_async_job_status', job_id=job.pk)}\nsay: {{result}}")
    assert '"status":"completed","result":"All about tea."' in (await room.texts())[-1][1]


async def test_wait_for_tool_result(make_room: MakeRoom) -> None:
    room = make_room("remote-doc")
    await room.say(f"{call('generate_report', topic='tea')}\nsay: On it.")
    job = await db(lambda: Fiber.objects.get(name="chat.tool:generate_report"))
    assert await wait_for_tool_result(job.pk, timeout_seconds=5) == "All about tea."
