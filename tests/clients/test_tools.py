"""Calls that the page runs and that people approve, with the published hooks, and a tab that looks on."""

from typing import Any

import pytest
from playwright.sync_api import WebSocketRoute

from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.room import Room
from tests.clients.tab import REST, Tab, text_of
from tests.clients.ways import LINES

LOCATE = "call tool locate {}\nsay: You are at {result}."
BOTH = 'call tool locate {"n": 1}\ncall tool locate {"n": 2}\nparallel calls\nsay: Both: {results}.'
PAY = 'call tool pay {"amount": 5}\nsay: The bank says {result}.'


def calls(tab: Tab) -> list[dict[str, Any]]:
    return [part for message in tab.messages for part in message["parts"] if "toolCallId" in part]


def open_calls(room: Room, tab: Tab, script: str, state: str, count: int = 1) -> list[dict[str, Any]]:
    """Ask, and wait until the calls are for this tab to answer."""
    room.ask(tab, script)
    tab.wait(
        "harness.chat.status === 'ready' && harness.chat.messages.flatMap(m => m.parts)"
        f".filter(p => p.state === '{state}').length === {count}",
        what=f"{count} calls in {state}",
    )
    return calls(tab)


def answer(tab: Tab, call_id: str, output: str = "here") -> None:
    tab.do(f"harness.chat.addToolOutput({{toolCallId: '{call_id}', output: '{output}'}})")


def decide(tab: Tab, part: dict[str, Any], *, approved: bool) -> None:
    value = "true" if approved else "false"
    tab.do(f"harness.chat.addToolApprovalResponse({{id: '{part['approval']['id']}', approved: {value}}})")


def wait_answer(room: Room, *tabs: Tab, messages: int = 3) -> None:
    for tab in tabs:
        tab.wait(f"harness.chat.messages.length === {messages} && harness.chat.messages.at(-1).parts.some(p => p.text)")


@pytest.mark.smoke("call-sdk7")
@LINES
@pytest.mark.parametrize("how", ["call", "execute"])
def test_client_tool_round_trip(room_of: MakeRoom, line: str, how: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open("first", answers=how), room.open("observer")
    name = "roam" if how == "execute" else "locate"
    room.ask(tab, f"call tool {name} {{}}\nsay: You are at {{result}}.")
    wait_answer(room, tab, observer)
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant", "assistant"]
    [part] = [part for part in stored[1]["parts"] if "toolCallId" in part]
    assert part["state"] == "output-available"
    assert part["output"]["place"] == "home"
    assert "home" in text_of(stored[2])
    assert len(tab.events("locate")) == 1
    assert tab.status == "ready"
    assert observer.statuses() == ["ready"]
    tab.reload()
    wait_answer(room, tab)
    assert room.rest() == stored
    assert tab.events("locate") == []  # what is answered is not run again


@pytest.mark.smoke("sdk7")
@LINES
def test_parallel_batch_is_one_continuation(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open("first", answers="call", wait="50"), room.open("observer")
    room.ask(tab, BOTH)
    wait_answer(room, tab, observer)
    stored = room.rest()
    assert len(stored) == 3
    assert [part["state"] for part in stored[1]["parts"] if "toolCallId" in part] == ["output-available"] * 2


@LINES
def test_a_failing_client_tool_continues_nothing(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open("first", answers="fail"), room.open("observer")
    room.ask(tab, LOCATE)
    for each in (tab, observer):
        each.wait("harness.chat.messages.flatMap(m => m.parts).some(p => p.state === 'output-error')")
    stored = room.rest()
    assert len(stored) == 2
    assert calls(observer)[0]["errorText"] == "no signal"


class Held:
    """A line on which frames of the server stay until they are let through; what the page sends goes on."""

    def __init__(self) -> None:
        self.is_held = False
        self._kept: list[str | bytes] = []
        self._page: WebSocketRoute | None = None

    def route(self, socket: WebSocketRoute) -> None:
        """Stand between a page and the server."""
        self._page, server = socket, socket.connect_to_server()
        socket.on_message(server.send)
        server.on_message(self._pass_on)

    def _pass_on(self, text: str | bytes) -> None:
        assert self._page is not None
        if self.is_held:
            self._kept.append(text)
        else:
            self._page.send(text)

    def let_through(self) -> None:
        """Send what has stayed, in its order."""
        assert self._page is not None
        self.is_held = False
        for text in self._kept:
            self._page.send(text)


def test_two_tabs_answer_and_the_first_result_wins(room_of: MakeRoom) -> None:
    """The other tab does not know of the first result when it sends its own: its line is held."""
    room = room_of(agent="desk")
    line = Held()
    tab, other = room.open("first"), room.open("other", liar=line.route)
    [part] = open_calls(room, tab, LOCATE, "input-available")
    other.wait(REST + " && harness.chat.messages.flatMap(m => m.parts).some(p => p.state === 'input-available')")
    line.is_held = True
    answer(tab, part["toolCallId"], "here")
    wait_answer(room, tab)
    answer(other, part["toolCallId"], "there")
    other.wait_sent("cf_agent_tool_result")
    line.let_through()
    wait_answer(room, tab, other)
    stored = room.rest()
    [call] = [part for part in stored[1]["parts"] if "toolCallId" in part]
    assert call["output"] == "here"
    assert len(stored) == 3


def test_answered_in_the_other_tab(room_of: MakeRoom) -> None:
    room = room_of(agent="desk")
    tab, other = room.open_two()
    [part] = open_calls(room, tab, LOCATE, "input-available")
    other.wait("harness.chat.messages.flatMap(m => m.parts).some(p => p.toolCallId)")
    answer(other, part["toolCallId"], "the other tab")
    wait_answer(room, tab, other)
    assert "the other tab" in text_of(room.rest()[2])


@LINES
def test_reload_between_call_and_result(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open_two()
    [part] = open_calls(room, tab, LOCATE, "input-available")
    tab.reload()
    tab.wait("harness.chat.messages.length === 2")
    answer(tab, part["toolCallId"])
    wait_answer(room, tab, observer)
    assert "here" in text_of(room.rest()[2])


def test_batch_answered_by_two_tabs(room_of: MakeRoom) -> None:
    room = room_of(agent="desk")
    tab, other = room.open_two()
    one, two = open_calls(room, tab, BOTH, "input-available", 2)
    answer(tab, one["toolCallId"], "one")
    tab.wait("harness.chat.status === 'submitted'")
    answer(other, two["toolCallId"], "two")
    wait_answer(room, tab, other)
    stored = room.rest()
    assert len(stored) == 3
    assert tab.status == "ready"


@LINES
def test_the_answering_tab_reloads_at_once(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open_two()
    [part] = open_calls(room, tab, "call tool locate {}\nstream 80 words at 40/s", "input-available")
    answer(tab, part["toolCallId"])
    tab.wait("harness.chat.messages.length === 3")
    tab.reload()
    wait_answer(room, tab, observer)
    assert text_of(room.rest()[2]) == room.answers()[0]


def test_the_answering_tab_closes(room_of: MakeRoom) -> None:
    room = room_of(agent="desk")
    tab, observer = room.open_two()
    [part] = open_calls(room, tab, LOCATE, "input-available")
    answer(tab, part["toolCallId"])
    tab.page.wait_for_timeout(20)
    room.close(tab)
    wait_answer(room, observer)
    assert "here" in text_of(room.rest()[2])


def test_the_network_drops_between_call_and_result(room_of: MakeRoom, proxy: CuttingProxy) -> None:
    room = room_of(agent="desk")
    tab, observer = room.open("first", port=proxy.port), room.open("observer")
    [part] = open_calls(room, tab, LOCATE, "input-available")
    proxy.cut()
    tab.wait("harness.events.some(event => event.kind === 'close')")  # until then the client sends into the dead line
    answer(tab, part["toolCallId"])
    wait_answer(room, tab, observer)
    assert "here" in text_of(room.rest()[2])


@LINES
def test_without_auto_continuation_the_page_asks(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open("first", auto="no"), room.open("observer")
    [part] = open_calls(room, tab, LOCATE, "input-available")
    answer(tab, part["toolCallId"])
    observer.wait("harness.chat.messages.flatMap(m => m.parts).some(p => p.state === 'output-available')")
    assert len(room.stored()) == 2
    tab.do("harness.chat.sendMessage()")
    wait_answer(room, tab, observer)
    assert "here" in text_of(room.rest()[2])


@pytest.mark.smoke("True-sdk7")
@LINES
@pytest.mark.parametrize("approved", [True, False])
def test_approval(room_of: MakeRoom, line: str, approved: bool) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open_two()
    [part] = open_calls(room, tab, PAY, "approval-requested")
    decide(tab, part, approved=approved)
    wait_answer(room, tab, observer)
    stored = room.rest()
    [call] = [part for part in stored[1]["parts"] if "toolCallId" in part]
    assert call["state"] == ("output-available" if approved else "output-denied")
    words = {"title": "Payment", "sentence": "Pay 5?", "mayEdit": True}
    assert call["approval"] == {"id": part["approval"]["id"], "approved": approved, "descriptor": words}
    assert ("paid 5" if approved else "denied") in text_of(stored[2])
    assert tab.status == "ready"


def test_approval_from_the_other_tab_and_after_a_reload(room_of: MakeRoom) -> None:
    room = room_of(agent="desk")
    tab, other = room.open_two()
    [part] = open_calls(room, tab, PAY, "approval-requested")
    other.reload()
    other.wait("harness.chat.messages.flatMap(m => m.parts).some(p => p.state === 'approval-requested')")
    decide(other, part, approved=True)
    wait_answer(room, tab, other)
    assert "paid 5" in text_of(room.rest()[2])


@LINES
def test_several_approvals_continue_once(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open_two()
    script = 'call tool pay {"amount": 1}\ncall tool pay {"amount": 2}\nparallel calls\nsay: {results}.'
    one, two = open_calls(room, tab, script, "approval-requested", 2)
    decide(tab, one, approved=True)
    decide(tab, two, approved=False)
    wait_answer(room, tab, observer)
    stored = room.rest()
    assert [p["state"] for p in stored[1]["parts"] if "toolCallId" in p] == ["output-available", "output-denied"]
    assert len(stored) == 3


def test_approval_without_auto_continuation(room_of: MakeRoom) -> None:
    room = room_of(agent="desk")
    tab, observer = room.open("first", auto="no"), room.open("observer")
    [part] = open_calls(room, tab, PAY, "approval-requested")
    decide(tab, part, approved=True)
    observer.wait("harness.chat.messages.flatMap(m => m.parts).some(p => p.state === 'approval-responded')")
    tab.do("harness.chat.sendMessage()")
    wait_answer(room, tab, observer)
    assert "paid 5" in text_of(room.rest()[2])


def test_approval_after_a_restart_of_everything(room_of: MakeRoom) -> None:
    room = room_of(agent="desk")
    tab, observer = room.open_two()
    [part] = open_calls(room, tab, PAY, "approval-requested")
    for process in (*room.product.workers, *room.product.webs):
        process.restart()
    for each in (tab, observer):
        each.wait("harness.events.filter(event => event.kind === 'open').length === 2", seconds=40)
    decide(tab, part, approved=True)
    for each in (tab, observer):
        each.wait("harness.chat.messages.length === 3", seconds=40)
    assert "paid 5" in text_of(room.rest()[2])


@LINES
def test_a_new_message_passes_the_question_by(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab, observer = room.open_two()
    open_calls(room, tab, PAY, "approval-requested")
    room.ask_and_rest(tab, "say: Let us talk of something else.")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant", "user", "assistant"]
    assert calls(observer)[0]["state"] == "output-denied"
    assert text_of(stored[3]) == "Let us talk of something else."


def test_calls_of_a_continuation_are_answered_too(room_of: MakeRoom) -> None:
    """One continuation follows the other: the model calls the browser again."""
    room = room_of(agent="desk")
    tab, observer = room.open("first", answers="call"), room.open("observer")
    one, two = (f'call tool locate {{"n": {n}}}' for n in (1, 2))
    room.ask(tab, f"{one}\nwait 0.1 s\n{two}\nwait 0.1 s\nsay: At last: {{results}}.")
    wait_answer(room, tab, observer, messages=4)
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant", "assistant", "assistant"]
    assert len(tab.events("locate")) == 2
