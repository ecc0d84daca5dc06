"""What goes wrong for good: the model's errors, and connections that are refused."""

import pytest

from tests.acceptance.product import wait_for
from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.room import Room
from tests.clients.tab import Tab, text_of
from tests.clients.ways import BROKEN, LINES


@pytest.mark.smoke("sdk7")
@LINES
def test_error_before_anything(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "error 400 times 1")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user"]
    assert tab.statuses() == ["ready", "submitted", "error"]
    assert "400" in (tab.error or "")
    assert observer.statuses() == ["ready"]
    room.ask_and_rest(tab, "say: Better now.")
    assert text_of(room.rest()[-1]) == "Better now."
    assert tab.status == "ready"
    assert tab.error is None


@LINES
def test_error_in_the_middle_keeps_the_partial(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask_and_rest(tab, BROKEN)
    [_, partial] = room.rest()
    assert 0 < len(text_of(partial).split()) <= 30
    assert tab.statuses() == ["ready", "submitted", "streaming", "error"]
    assert tab.error
    assert observer.statuses("isServerStreaming") == [False, True, False]
    assert [end["outcome"] for end in observer.events("turn-end")] == ["error"]
    # This person has seen it: a fresh tab says nothing (docs/wire-amendments.md, failure-seen).
    fresh = room.open("fresh")
    room.rest()
    assert fresh.status == "ready"


@LINES
def test_failure_that_no_client_saw_is_sent_once(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab = room.open("first")
    room.ask(tab, BROKEN)
    tab.wait_text(20)
    room.close(tab)
    back = room.open_after_the_turn("back")
    back.wait("harness.chat.status === 'error'")
    assert back.error
    assert len(room.rest()) == 2
    room.ask_and_rest(back, "say: On we go.")
    assert back.status == "ready"
    fresh = room.open("fresh")
    room.rest()
    assert fresh.status == "ready"
    assert fresh.error is None


@LINES
def test_failure_while_the_network_is_gone_is_sent_on_the_way_back(
    room_of: MakeRoom, proxy: CuttingProxy, line: str
) -> None:
    room = room_of(line=line)
    tab = room.open("first", port=proxy.port)
    room.ask(tab, BROKEN)
    tab.wait_text(20)
    proxy.go_offline()
    room.wait_turn_settled()
    proxy.go_online()
    tab.wait("harness.events.filter(event => event.kind === 'open').length === 2")
    wait_for(lambda: "cf_agent_stream_resuming" in tab.kinds(), seconds=20, what="the failed turn being offered")
    [_, partial] = room.rest()
    assert 0 < len(text_of(partial).split()) <= 30
    assert tab.status == "error"
    [end] = [frame for frame in tab.received("cf_agent_use_chat_response") if frame["done"]]
    assert end["error"]
    assert tab.error == end["body"]
    room.ask_and_rest(tab, "say: On we go.")
    assert tab.status == "ready"
    assert text_of(room.rest()[-1]) == "On we go."


def assert_refused(tab: Tab, code: int) -> None:
    tab.wait("harness.events.some(event => event.kind === 'connection-error')")
    tab.wait(f"harness.chat?.connectionError?.code === {code}")
    tab.page.wait_for_timeout(3500)  # the first reconnect would come after 3 s
    assert len(tab.sockets) == 1
    assert tab.events("crash") == []
    [error] = tab.events("connection-error")
    assert error["reason"]


def test_unknown_agent_ends_retries(room: Room) -> None:
    assert_refused(room.open("lost", is_waiting=False, agent="nobody"), 4404)


@pytest.mark.smoke("wrong")
@pytest.mark.parametrize("token", ["wrong", "tk_" + "0" * 40])
def test_wrong_token_ends_retries(room: Room, token: str) -> None:
    assert_refused(room.open("stranger", is_waiting=False, token=token), 4401)
