"""The code examples of the Think documentation on client tools, translated; each under its heading's name.

Of the examples that run in a browser this is the server's half; the hook's half is in `tests/clients/test_tools.py`.
Two headings have a text and no code: their sentences are tested. Nothing is left for later.
"""

from typing import Any

import pytest

from chat.reads.snapshots import current_transcript
from chat.testing import worker
from chat.think import ChatResponse, Think, TurnConfig, TurnContext, tool
from tests.db.chat.turns.agents.answering import Desk
from tests.db.chat.turns.agents.everyday import MODELS, SEEN
from tests.db.chat.turns.agents.gated import GATES, gate, reached
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

from .conftest import MakeRoom, status_of, text_of

TIME_ZONE = {"name": "getUserTimezone", "description": "Get the user's timezone from their browser", "parameters": {}}
CLIPBOARD = {"name": "getClipboard", "description": "Read text from the user's clipboard", "parameters": {}}


class Browsed(Think, abstract=True):
    """What the examples share: the model of the test."""

    workspace_tools = False

    def get_model(self) -> Any:
        return MODELS["current"]


def names(request: JSONObject) -> list[str]:
    return [found["name"] for found in request["tools"]]


async def answer_text(desk: Desk) -> str:
    return text_of((await desk.room.transcript())[-1])


# Tool approval


@tool(name="deleteFile", needs_approval=lambda arguments, _context: arguments["path"].startswith("/important/"))
async def delete_file(path: str) -> JSONObject:
    """Delete a file from the system."""
    SEEN.append(("deleted", path))
    return {"deleted": path}


class ApprovalDoc(Browsed):
    def get_tools(self) -> Any:
        return [delete_file]


async def test_tool_approval(make_room: MakeRoom) -> None:
    desk = Desk(make_room("approval-doc"))
    await desk.room.say('call tool deleteFile {"path": "/tmp/a"}\nsay: Gone: {result}')
    assert SEEN == [("deleted", "/tmp/a")]
    await desk.room.say('call tool deleteFile {"path": "/important/b"} id=asked\nsay: Gone: {result}')
    assert (await desk.part("asked"))["state"] == "approval-requested"
    assert len(SEEN) == 1
    await desk.reply("asked", is_approved=True)
    assert SEEN[1:] == [("deleted", "/important/b")]
    assert (await desk.part("asked"))["output"] == {"deleted": "/important/b"}
    assert await answer_text(desk) == 'Gone: {"deleted":"/important/b"}'


async def test_tool_approval_that_is_refused(make_room: MakeRoom) -> None:
    desk = Desk(make_room("approval-doc"))
    await desk.room.say('call tool deleteFile {"path": "/important/b"} id=asked\nsay: {result}')
    await desk.reply("asked", is_approved=False)
    assert SEEN == []
    assert (await desk.part("asked"))["state"] == "output-denied"


# Defining client tools


class ClientToolsDoc(Browsed):
    def get_tools(self) -> Any:
        return [delete_file]


async def test_defining_client_tools(make_room: MakeRoom) -> None:
    desk = Desk(make_room("client-tools-doc"))
    script = "call tool getUserTimezone {} id=zone\nsay: You are in {result}."
    await desk.room.say(script, client_tools=[TIME_ZONE, CLIPBOARD])
    assert sorted(names(desk.room.model.requests[0])) == ["deleteFile", "getClipboard", "getUserTimezone"]
    assert (await desk.part("zone"))["state"] == "input-available"
    await desk.reply("zone", output="Europe/Brussels")
    assert await answer_text(desk) == "You are in Europe/Brussels."


# Approval flow


async def test_approval_flow(make_room: MakeRoom) -> None:
    """`onToolCall` of the browser gives the result of the one tool that it knows; the other call stays open."""
    desk = Desk(make_room("client-tools-doc"))
    tools: list[JSONObject] = [{"name": name, "description": "", "parameters": {}} for name in ("read", "other")]
    script = 'call tool read {"path": "notes.txt"} id=known\ncall tool other {} id=unknown\nsay: {results}'
    await desk.room.say(script, client_tools=tools)
    for call_id in await desk.calls():
        part = await desk.part(call_id)
        if part["type"] == "tool-read":
            replied = await desk.reply(call_id, output=f"read from the browser: {part['input']['path']}")
            assert replied.turn is None
    assert (await desk.part("known"))["output"] == "read from the browser: notes.txt"
    assert (await desk.part("unknown"))["state"] == "input-available"
    await desk.reply("unknown", output="nothing")
    assert "read from the browser: notes.txt" in await answer_text(desk)


# Auto-continuation


class AutoContinuationDoc(Browsed):
    def before_turn(self, context: TurnContext) -> TurnConfig | None:
        SEEN.append(("continuation", context.continuation))
        return TurnConfig(active_tools=[]) if context.continuation else None


async def test_auto_continuation(make_room: MakeRoom) -> None:
    desk = Desk(make_room("auto-continuation-doc"))
    await desk.room.say("call tool getClipboard {} id=board\nsay: It says {result}.", client_tools=[CLIPBOARD])
    replied = await desk.reply("board", output="hello")
    assert replied.turn is not None
    assert SEEN == [("continuation", False), ("continuation", True)]
    assert [names(request) for request in desk.room.model.requests] == [["getClipboard"], []]
    assert [role for role, _ in await desk.room.texts()].count("user") == 1
    assert await answer_text(desk) == "It says hello."


# Message concurrency


class Overlapped(Browsed, abstract=True):
    async def before_turn(self, context: TurnContext) -> None:
        if "open" in GATES:
            GATES["reached"].set()
            await GATES["open"].wait()


class SearchDoc(Overlapped):
    message_concurrency = "latest"


async def test_message_concurrency(make_room: MakeRoom) -> None:
    room = make_room("search-doc")
    async with worker(), gate() as opened:
        turns = [(await room.admit("say: one")).turn.pk]
        await reached()
        turns += [(await room.admit(text)).turn.pk for text in ("say: two", "say: three")]
        opened.set()
        assert await room.handle.wait_until_stable(20)
    assert [status_of(await room.turn(turn)) for turn in turns] == ["completed", "skipped", "completed"]
    texts = await room.texts()
    assert [text for role, text in texts if role == "user"] == ["say: one", "say: two", "say: three"]
    assert [role for role, _ in texts].count("assistant") == 2


# Multi-tab broadcast


class TabsDoc(Browsed):
    def on_chat_response(self, response: ChatResponse) -> None:
        SEEN.append(("stored", response.message["id"]))


@pytest.mark.parametrize("state", ["pending", "answered"])
async def test_multi_tab_broadcast(make_room: MakeRoom, state: str) -> None:
    """What a tab reads that comes later is what the first one has; the streams are in `tests/acceptance/wire`."""
    desk = Desk(make_room("tabs-doc"))
    await desk.room.say("call tool getClipboard {} id=board", client_tools=[CLIPBOARD])
    if state == "answered":
        await desk.reply("board", output="hello", continues=False)
    [_user, answer] = await db(current_transcript, desk.room.key)
    [part] = [part for part in answer["parts"] if part.get("toolCallId") == "board"]
    assert part["state"] == ("output-available" if state == "answered" else "input-available")
    assert [value for name, value in SEEN if name == "stored"] == [answer["id"]]
