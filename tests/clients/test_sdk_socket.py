"""The AI SDK's own socket with the package as it is published; that it does what the other transports do is tested
beside them (`ways.py`).
"""

from functools import partial

import pytest

from tests.acceptance.product import wait_for
from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.oracle import has_ended, prompts_of
from tests.clients.room import Room, outline
from tests.clients.tab import Json, Tab, text_of
from tests.clients.ways import enter, holds

LONG = "stream 150 words at 60/s"


@pytest.fixture
def sdk_room(make_dom_room: MakeRoom) -> Room:
    """An empty conversation for pages without a browser: sockets are Deno's own."""
    return make_dom_room(entry="use-chat")


def frames_of(tab: Tab, direction: str, kind: str) -> list[Json]:
    """The frames of one type that a page sent (`>`) or received (`<`), over all of its sockets."""
    tab.page.wait_for_timeout(0)  # lets the page say what it has
    frames = [frame for socket in tab.by_socket() for sign, frame in socket if sign == direction]
    return [frame for frame in frames if frame["type"] == kind]


@pytest.mark.smoke
def test_a_conversation_over_one_socket(sdk_room: Room) -> None:
    """Send, a tool of the server's, a new answer, an abort, nothing to resume, and a refusal."""
    tab = enter(sdk_room, "sdk")
    assert frames_of(tab, "<", "no-active")  # as the page opened, it asked for something to resume
    sdk_room.ask_and_rest(tab, 'call tool current_time {"time_zone": "Europe/Berlin"}\nsay: It is {result}.')
    sdk_room.rest()
    sequences = [frame["sequence"] for frame in frames_of(tab, "<", "chunk")]
    assert sequences == list(range(len(sequences)))
    sdk_room.ask_and_rest(tab, "stream 20 words at 60/s")
    before = sdk_room.rest()[3]
    sdk_room.do_and_rest(tab, "harness.chat.regenerate()")
    assert sdk_room.rest()[3]["id"] != before["id"]

    sdk_room.ask(tab, "stream 400 words at 40/s")
    tab.wait_text(40)
    tab.do("harness.chat.stop()")
    tab.wait_rest()
    wait_for(lambda: has_ended(sdk_room.product.provider_log, sdk_room.markers[-1]), seconds=20, what="its stop")
    wait_for(partial(holds, sdk_room, 6), seconds=20, what="the partial answer")
    kept = text_of(sdk_room.stored()[5])
    assert kept.startswith(text_of(tab.messages[5]))
    assert len(kept.split()) < 400

    tab.do("harness.chat.resumeStream()")  # what was stopped is not sent again
    wait_for(lambda: len(frames_of(tab, "<", "no-active")) == 2, seconds=10, what="nothing to resume")
    tab.do("harness.chat.sendMessage({role: 'user', parts: []}, {body: {clientTools: 'none'}})")
    tab.wait("harness.chat.status === 'error'")
    [refused] = frames_of(tab, "<", "error")
    assert tab.error == refused["errorText"]
    assert len(tab.sockets) == 1
    assert len(sdk_room.stored()) == 6


def test_a_line_that_is_cut_in_mid_stream(sdk_room: Room, proxy: CuttingProxy) -> None:
    """Resumed from its first chunk over a new line, and once more when the answer has ended meanwhile."""
    tab = enter(sdk_room, "sdk", port=proxy.port)
    for _ in ("while it streams", "when it has ended"):
        sdk_room.ask(tab, LONG)
        tab.wait_text(60)
        assert proxy.cut() > 0
        tab.wait("harness.chat.status === 'error'")
        if len(sdk_room.markers) == 2:
            sdk_room.wait_turn_settled()
        tab.do("harness.chat.resumeStream()")
        tab.wait("harness.events.filter(event => event.kind === 'turn-end' && !event.isError).length > 0")
        tab.wait_rest()
        answer = sdk_room.rest()[-1]
        assert text_of(answer) == sdk_room.answers()[-1]
    assert len(frames_of(tab, ">", "send")) == 2
    assert [len(prompts_of(sdk_room.product.provider_log, marker)) for marker in sdk_room.markers] == [1, 1]


def test_two_tabs_of_one_conversation(sdk_room: Room) -> None:
    """The second joins what the first has asked for; its stop stops it for both."""
    first, second = enter(sdk_room, "sdk"), enter(sdk_room, "sdk", "second")
    sdk_room.ask(first, "stream 400 words at 40/s")
    first.wait_text(40)
    second.do("harness.chat.resumeStream()")
    second.wait_text(60)
    second.do("harness.chat.stop()")
    for tab in (first, second):
        tab.wait_rest()
    [end] = frames_of(first, "<", "end")
    assert frames_of(first, "<", "chunk")[-1] == {
        "type": "chunk",
        "requestId": end["requestId"],
        "sequence": len(frames_of(first, "<", "chunk")) - 1,
        "chunk": {"type": "abort"},
    }
    wait_for(partial(holds, sdk_room, 2), seconds=20, what="the partial answer")
    assert text_of(sdk_room.stored()[1]) == text_of(first.messages[1])


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_goes_on_in_the_same_message(make_dom_room: MakeRoom, approved: bool) -> None:
    room = make_dom_room(entry="use-chat", agent="desk")
    tab = enter(room, "sdk")
    room.ask(tab, 'call tool pay {"amount": 5} id=c1\nsay: So: {result}.')
    tab.wait("harness.chat.messages.at(-1)?.parts.some(part => part.state === 'approval-requested')")
    tab.wait("harness.chat.status === 'ready'")
    part = "harness.chat.messages.at(-1).parts.find(part => part.approval)"
    tab.do(f"harness.chat.addToolApprovalResponse({{id: {part}.approval.id, approved: {str(approved).lower()}}})")
    tab.wait("harness.chat.messages.at(-1)?.parts.some(part => part.text?.startsWith('So:'))")
    tab.wait_rest()
    assert tab.messages[1]["parts"][1]["state"] == ("output-available" if approved else "output-denied")
    assert len(outline(tab.messages)) == 2  # the page's one message is two in the store
    wait_for(partial(holds, room, 3), seconds=20, what="the continuation")
    assert len(frames_of(tab, ">", "send")) == 2
