"""Sub-agents and identities with the published hook: `sub`, refusals for good, `onIdentityChange`."""

import json
import urllib.request
import uuid
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.proxy import CuttingProxy
from tests.clients.calls import call
from tests.clients.conftest import MakeRoom
from tests.clients.room import Room
from tests.clients.tab import text_of

LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])


@pytest.mark.smoke("child-sdk7")
@LINES
@pytest.mark.parametrize("sub", [(("note", "one"),), (("note", "a b/ü"), ("note", "sub"))], ids=["child", "nested"])
def test_a_sub_agent_chats_and_its_parent_receives_nothing(
    room_of: MakeRoom, line: str, sub: tuple[tuple[str, str], ...]
) -> None:
    room = room_of(line=line, agent="board", sub=sub)
    parent = room_of(room.name, line=line, agent="board").open("parent")
    tab, observer = room.open_two()
    [identity] = tab.events("identity")
    assert (identity["agent"], identity["name"]) == sub[-1]
    assert call(tab, "path") == [room.name, *(name for _agent, name in sub)]
    room.ask_and_rest(tab, "stream 30 words at 60/s")
    assert [message["role"] for message in room.rest()] == ["user", "assistant"]
    assert observer.statuses("isServerStreaming") == [False, True, False]
    assert parent.messages == []
    assert len(parent.received("cf_agent_chat_messages")) == 1


def test_the_page_opens_a_sub_agent_and_follows_it(room_of: MakeRoom) -> None:
    """The web UI at a child's id: its own transcript, its own socket."""
    room = room_of(agent="board", sub=(("note", "one"),))
    tab = room.open("first")
    room.ask_and_rest(tab, "say: From before.")
    [root] = api(room, f"instances?agent=board&search={room.name}")["items"]
    [child] = api(room, f"instances?parent={root['id']}")["items"]
    assert child["path"] == f"board/{room.name}/sub/note/one"
    name, _, value = room.product.sign_in("alice").partition("=")
    assert isinstance(tab.page, Page)
    page = tab.page.context.new_page()
    sockets: list[str] = []
    page.on("websocket", lambda socket: sockets.append(socket.url))
    page.context.add_cookies([{"name": name, "value": value, "url": room.product.url("/")}])
    page.goto(room.product.url(f"/c/{child['id']}"))
    answers = page.locator(".message .md")
    expect(answers.last).to_have_text("From before.")
    room.ask_and_rest(tab, "say: From now on.")
    expect(answers.last).to_have_text("From now on.")
    assert [f"/agents/{child['path']}?" in url for url in sockets] == [True]


def api(room: Room, path: str) -> Any:
    """Ask the API as Alice."""
    headers = {"Authorization": f"Bearer {room.product.token('alice')}"}
    request = urllib.request.Request(room.product.url(f"/api/v1/{path}"), headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def test_a_sub_agent_over_a_reload_and_a_cut_line(room_of: MakeRoom, proxy: CuttingProxy) -> None:
    room = room_of(agent="board", sub=(("note", "one"),))
    tab, observer = room.open("first", port=proxy.port), room.open("observer")
    room.ask(tab, "stream 60 words at 30/s")
    tab.wait_text(20)
    proxy.cut()
    tab.wait("harness.events.filter(e => e.kind === 'open').length === 2", what="the next line")
    observer.reload()
    assert [message["role"] for message in room.rest()] == ["user", "assistant"]
    assert tab.events("identity-change") == []


@pytest.mark.parametrize(
    "sub", [[("note", "closed")], [("desk", "x")], [("nobody", "x")], [("note", "one"), ("board", "x")]]
)
def test_a_refused_sub_agent_is_refused_for_good(room_of: MakeRoom, sub: list[tuple[str, str]]) -> None:
    room = room_of(agent="board")
    chain = json.dumps([{"agent": agent, "name": name} for agent, name in sub])
    tab = room.open("refused", is_waiting=False, sub=chain)
    tab.wait("harness.events.some(e => e.kind === 'connection-error')", what="a connection error")
    assert [event["code"] for event in tab.events("connection-error")] == [4404]
    tab.page.wait_for_timeout(4000)  # the first retry would come after 3 seconds
    assert len(tab.sockets) == 1


@LINES
def test_identity_change(room_of: MakeRoom, line: str, proxy: CuttingProxy) -> None:
    """The server answers under another name from the next connection on: the client shows that conversation."""
    first, second = f"first-{uuid.uuid4().hex[:8]}", f"second-{uuid.uuid4().hex[:8]}"
    room = room_of(line=line, agent="board")
    tab = room_of(first, line=line, agent="board").open("direct")
    call(tab, "point", room.name, first)
    tab.page.close()
    tab = room.open("first", port=proxy.port)
    assert tab.page.evaluate("() => harness.agent.name") == first
    room.ask_and_rest(tab, "say: In the first.")
    assert call(tab, "add", "milk") == 1
    call(tab, "point", room.name, second)
    assert tab.events("identity-change") == []
    proxy.cut()
    tab.wait("harness.events.some(e => e.kind === 'identity-change')", what="the change of identity")
    assert [event["names"] for event in tab.events("identity-change")] == [[first, second, "board", "board"]]
    tab.wait("harness.agent.identified && harness.agent.state.items.length === 0", what="the other state")
    assert tab.page.evaluate("() => harness.agent.name") == second
    tab.wait("harness.chat.messages.length === 0", what="the other conversation")
    room.ask_and_rest(tab, "say: In the second.")
    assert [text_of(message) for message in room.rest()][1:] == ["In the second."]
