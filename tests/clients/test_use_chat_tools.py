"""`useChat` with calls that the page answers, and approvals."""

import json
from functools import partial

import pytest

from tests.acceptance.product import wait_for
from tests.clients.room import Room, outline
from tests.clients.tab import Tab, text_of
from tests.clients.ways import USE_CHAT, enter, flat, holds, shows_all

DESK = "desk"
TOOLS = {"clientTools": [{"name": "pick", "description": "Pick.", "parameters": {"type": "object"}}]}
WAITS = "harness.chat.messages.at(-1)?.parts.some(part => part.state === '{}')"
pytestmark = [pytest.mark.room(entry="use-chat", agent=DESK), pytest.mark.usefixtures("observer")]


def arrive(room: Room, transport: str) -> Tab:
    return enter(room, transport, body=json.dumps(TOOLS))


def check_same(room: Room, tab: Tab, transport: str, *, stored: int) -> None:
    """One answer on the page, several in the store: the same parts in the same order; and equal after a reload.

    Over the socket the page shows several too, once it has applied what the server says of the last.
    """
    wait_for(partial(holds, room, stored), seconds=20, what="the continuation")
    tab.wait_rest()
    shown = outline if transport == "socket" else flat
    wait_for(lambda: shown(tab.messages) == shown(room.stored()), seconds=5, what="the same here and there")
    assert not tab.errors
    tab.reload()
    tab.wait(f"harness.chat.messages.length === {stored}")
    room.tabs.append(tab)
    for each in room.tabs:
        wait_for(partial(shows_all, room, each), seconds=20, what=f"the whole conversation in {each.label}")
        assert not each.errors


@pytest.mark.smoke("sdk7-http")
@USE_CHAT
def test_a_call_that_the_page_answers(room: Room, transport: str) -> None:
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    room.ask(tab, 'call tool pick {"from": "hats"} id=c1\nsay: You picked {result}.')
    tab.wait(WAITS.format("input-available") + " && harness.chat.status === 'ready'")
    tab.do("harness.chat.addToolOutput({tool: 'pick', toolCallId: 'c1', output: 'a red hat'})")
    wait_for(partial(holds, room, 3), seconds=20, what="the continuation")
    assert "a red hat" in text_of(room.stored()[2])
    check_same(room, tab, transport, stored=3)


@USE_CHAT
def test_two_rounds_of_calls(room: Room, transport: str) -> None:
    """The second answer arrives in the message that the page joined; it must settle the call of the second row."""
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    script = ['call tool pick {"from": "hats"} id=c1', "say: First {result}.", 'call tool pick {"from": "coats"} id=c2']
    room.ask(tab, "\n".join([*script, "say: Then {result}."]))
    for call, output in (("c1", "a red hat"), ("c2", "a blue coat")):
        is_open = f"p => p.toolCallId === '{call}' && p.state === 'input-available'"
        tab.wait(f"harness.chat.messages.at(-1)?.parts.some({is_open}) && harness.chat.status === 'ready'")
        tab.do(f"harness.chat.addToolOutput({{tool: 'pick', toolCallId: '{call}', output: '{output}'}})")
    check_same(room, tab, transport, stored=4)
    states = [part["state"] for message in room.stored()[1:] for part in message["parts"] if "toolCallId" in part]
    assert states == ["output-available", "output-available"]


@USE_CHAT
def test_two_calls_at_once_are_one_continuation(room: Room, transport: str) -> None:
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    room.ask(tab, 'call tool pick {"from": "hats"} id=c1\ncall tool pick {"from": "coats"} id=c2\nsay: Both {results}.')
    open_calls = "harness.chat.messages.at(-1)?.parts.filter(p => p.state === 'input-available')"
    tab.wait(f"{open_calls}.length === 2 && harness.chat.status === 'ready'")
    tab.do("harness.chat.addToolOutput({tool: 'pick', toolCallId: 'c2', output: 'coat'})")
    tab.do("harness.chat.addToolOutput({tool: 'pick', toolCallId: 'c1', output: 'hat'})")
    check_same(room, tab, transport, stored=3)


@USE_CHAT
def test_an_error_of_the_page(room: Room, transport: str) -> None:
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    room.ask(tab, 'call tool pick {"from": "hats"} id=c1\nsay: Well: {result}.')
    tab.wait(WAITS.format("input-available") + " && harness.chat.status === 'ready'")
    tab.do("harness.chat.addToolOutput({tool: 'pick', toolCallId: 'c1', state: 'output-error', errorText: 'no hats'})")
    check_same(room, tab, transport, stored=3)
    assert room.stored()[1]["parts"][-1]["errorText"] == "no hats"


@USE_CHAT
def test_a_reload_before_the_answer(room: Room, transport: str) -> None:
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    room.ask(tab, 'call tool pick {"from": "hats"} id=c1\nsay: You picked {result}.')
    tab.wait(WAITS.format("input-available") + " && harness.chat.status === 'ready'")
    tab.reload()
    tab.wait("harness.chat.messages.length === 2")
    tab.do("harness.chat.addToolOutput({tool: 'pick', toolCallId: 'c1', output: 'a red hat'})")
    check_same(room, tab, transport, stored=3)


@pytest.mark.smoke("True-sdk7-http")
@USE_CHAT
@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_continues_the_answer(room: Room, observer: Tab, transport: str, approved: bool) -> None:
    """Approved: the tool's result comes as `tool-output-available` in the page's message. Refused: `output-denied`."""
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    room.ask(tab, 'call tool pay {"amount": 5} id=c1\nsay: So: {result}.')
    tab.wait(WAITS.format("approval-requested") + " && harness.chat.status === 'ready'")
    word = "true" if approved else "false"
    tab.do(
        "harness.chat.addToolApprovalResponse({approved: " + word + ", "
        "id: harness.chat.messages.at(-1)?.parts.find(p => p.approval).approval.id})"
    )
    state = "output-available" if approved else "output-denied"
    tab.wait(f"harness.chat.messages.flatMap(message => message.parts).some(part => part.state === '{state}')")
    tab.wait("harness.chat.messages.at(-1)?.parts.some(part => part.text?.startsWith('So:'))")
    tab.wait_rest()
    wait_for(partial(shows_all, room, observer), seconds=20, what="the whole conversation in the other tab")
    assert text_of(tab.messages[-1]).startswith("So:")


@USE_CHAT
def test_coming_back_in_the_middle_of_the_continuation(room: Room, transport: str) -> None:
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    room.ask(tab, 'call tool pick {"from": "hats"} id=c1\nstream 120 words at 40/s')
    tab.wait(WAITS.format("input-available") + " && harness.chat.status === 'ready'")
    tab.do("harness.chat.addToolOutput({tool: 'pick', toolCallId: 'c1', output: 'a red hat'})")
    tab.wait("harness.chat.status === 'streaming'")
    tab.reload()
    tab.wait("harness.chat.status === 'streaming'")
    wait_for(partial(holds, room, 3), seconds=20, what="the continuation")
    tab.wait_rest()
    assert outline(tab.messages) == outline(room.stored())


@USE_CHAT
def test_a_new_message_while_a_call_waits(room: Room, transport: str) -> None:
    tab = arrive(room, transport)
    room.tabs.remove(tab)
    room.ask(tab, 'call tool pick {"from": "hats"} id=c1\nsay: You picked {result}.')
    tab.wait(WAITS.format("input-available") + " && harness.chat.status === 'ready'")
    room.ask(tab, "say: Never mind.")
    wait_for(partial(holds, room, 4), seconds=20, what="the second answer")
    tab.wait_rest()
    assert room.stored()[1]["parts"][-1]["state"] in {"output-error", "output-denied"}
