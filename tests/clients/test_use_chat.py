"""The AI SDK's own `useChat`: over HTTP with its default transport, and over the socket with the published one."""

import json
from functools import partial

import pytest
from playwright.sync_api import Page, Route

from tests.acceptance.product import wait_for
from tests.acceptance.proxy import CuttingProxy
from tests.clients.oracle import has_ended, prompts_of
from tests.clients.room import Room, outline
from tests.clients.tab import Tab, text_of
from tests.clients.ways import HTTP, USE_CHAT, enter, flat, holds

LONG = "stream 150 words at 60/s"
BREAKS = "error in stream after {after} chunks code context_length_exceeded times {times}"
pytestmark = [pytest.mark.room(entry="use-chat"), pytest.mark.usefixtures("observer")]


@pytest.mark.smoke("sdk7-http")
@USE_CHAT
def test_a_question_is_answered_and_stored(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask_and_rest(tab, "stream 40 words at 80/s")
    stored = room.rest()
    assert [message["role"] for message in stored] == ["user", "assistant"]
    assert text_of(stored[1]) == room.answers()[0] != ""
    assert tab.statuses() == ["ready", "submitted", "streaming", "ready"]
    room.ask_and_rest(tab, "say: The second answer.")
    assert text_of(room.rest()[-1]) == "The second answer."
    tab.reload()
    tab.wait("harness.chat.messages.length === 4")
    room.rest()


@USE_CHAT
def test_a_server_tool_shows_its_call_and_result(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    script = 'reason 8 words at 60/s\ncall tool current_time {"time_zone": "Europe/Berlin"}\nsay: It is {result}.'
    room.ask_and_rest(tab, script)
    [_, answer] = room.rest()
    [call] = [part for part in answer["parts"] if part["type"] == "tool-current_time"]
    assert call["state"] == "output-available"
    assert text_of(answer) == f"It is {call['output']}."
    assert [part["type"] for part in tab.messages[1]["parts"]] == [part["type"] for part in answer["parts"]]


@USE_CHAT
def test_an_answer_is_asked_for_again(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask_and_rest(tab, "stream 20 words at 60/s")
    [question, first] = room.rest()
    for before in (first, None):
        room.do_and_rest(tab, "harness.chat.regenerate()")
        [asked, answer] = room.rest()
        assert asked["id"] == question["id"]
        assert answer["id"] != (before or answer | {"id": ""})["id"]


@USE_CHAT
def test_a_question_with_a_file_is_answered_again_and_stays_one(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.markers.append(f"{room.name}-0")
    file = {"type": "file", "mediaType": "text/html", "filename": "n.txt", "url": "data:text/html;base64,aGVsbG8="}
    message = {"text": f"stream 20 words at 60/s\nmarker: {room.markers[0]}", "files": [file]}
    room.do_and_rest(tab, f"harness.chat.sendMessage({json.dumps(message)})")
    [question, _] = room.rest()
    for _ in range(2):
        room.do_and_rest(tab, "harness.chat.regenerate()")
        [asked, _] = room.rest()
        assert (asked["id"], asked["parts"]) == (question["id"], question["parts"])


@USE_CHAT
def test_an_edited_question_is_answered_anew(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask_and_rest(tab, "say: The first answer.")
    [question, _] = room.rest()
    room.tabs.remove(tab)  # the page keeps the id of the message that it edited: compared by hand
    room.ask(tab, "say: The second answer.", question["id"])
    tab.wait("harness.chat.messages.at(-1).role === 'assistant'")
    tab.wait_rest()
    wait_for(lambda: flat(tab.messages) == flat(room.stored()), seconds=20, what="the same here and there")
    assert [text_of(message) for message in tab.messages[1:]] == ["The second answer."]
    # A new answer to the edited message is no second edit.
    room.do_and_rest(tab, "harness.chat.regenerate()")
    wait_for(lambda: flat(tab.messages) == flat(room.stored()), seconds=20, what="the same here and there")
    tab.reload()
    tab.wait("harness.chat.messages.length === 2")
    room.tabs.append(tab)
    room.ask_and_rest(tab, "say: The third answer.")
    assert [text_of(message) for message in room.rest()[1::2]] == ["The second answer.", "The third answer."]


@pytest.mark.smoke("sdk7-http")
@USE_CHAT
def test_a_stopped_answer_keeps_its_text(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask(tab, "stream 400 words at 40/s")
    tab.wait_text(40)
    tab.do("harness.stop()")
    tab.wait_rest()
    wait_for(lambda: has_ended(room.product.provider_log, room.markers[-1]), seconds=20, what="the model's stop")
    wait_for(partial(holds, room, 2), seconds=20, what="the partial answer")
    kept = text_of(room.stored()[1])
    assert room.answers()[0].startswith(kept)
    assert len(kept.split()) < 400
    assert kept.startswith(text_of(tab.messages[1]))
    tab.reload()
    tab.wait("harness.chat.messages.length === 2")
    room.rest()


@HTTP
def test_the_hooks_own_stop_leaves_the_turn_to_the_server(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask(tab, "stream 80 words at 40/s")
    tab.wait_text(40)
    tab.do("harness.chat.stop()")
    tab.wait_rest()
    tab.do("harness.chat.resumeStream()")
    tab.wait("harness.chat.status === 'streaming'")
    tab.wait_rest()
    assert text_of(room.rest()[1]) == room.answers()[0]


@pytest.mark.smoke("sdk7-http")
@USE_CHAT
def test_reload_in_mid_stream(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask(tab, LONG)
    tab.wait_text(60)
    tab.reload()
    tab.wait("harness.chat.status === 'streaming'")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]


@HTTP
def test_an_answer_that_ends_between_the_list_and_the_question_what_runs(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask(tab, LONG)
    tab.wait_text(60)

    def ask_late(route: Route) -> None:
        # No list is asked for here: the server would take it for the page's.
        room.wait_turn_settled()
        route.continue_()

    assert isinstance(tab.page, Page)
    tab.page.route("**/stream", ask_late, times=1)
    tab.reload()
    tab.wait("harness.chat.messages.length === 2 && harness.chat.status === 'ready'")
    [_, answer] = room.rest()
    assert text_of(tab.messages[1]) == text_of(answer) != ""
    tab.do("harness.chat.resumeStream()")
    tab.page.wait_for_timeout(500)  # no client says that nothing more will come
    assert text_of(tab.messages[1]) == text_of(answer)  # asking again says nothing twice


@HTTP
def test_the_line_is_cut_in_mid_stream(room: Room, proxy: CuttingProxy, transport: str) -> None:
    tab = enter(room, transport, port=proxy.port, own="yes")
    room.ask(tab, LONG)
    tab.wait_text(60)
    assert proxy.cut() > 0
    tab.wait("harness.chat.status === 'error'")
    tab.do("harness.chat.resumeStream()")
    tab.wait("harness.chat.status === 'streaming'")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0]
    assert tab.error is None


@USE_CHAT
def test_error_before_the_answer(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask(tab, "error 400 times 1")
    tab.wait("harness.chat.status === 'error'")
    assert "400" in (tab.error or "")
    if transport == "socket":  # this transport learns of no transcript and keeps the message that `start` began
        assert outline(tab.messages)[1][1:] == ("assistant",)
        tab.do("harness.chat.setMessages(messages => messages.slice(0, 1))")
    assert [message["role"] for message in room.rest()] == ["user"]
    room.ask_and_rest(tab, "say: Better now.")
    assert text_of(room.rest()[-1]) == "Better now."


@pytest.mark.smoke("sdk7-http")
@USE_CHAT
def test_error_in_the_middle(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask_and_rest(tab, "stream 60 words at 40/s\nerror in stream after 30 chunks code context_length_exceeded")
    wait_for(partial(holds, room, 2), seconds=20, what="the partial answer")
    room.rest()
    assert tab.status == "error"
    assert tab.error
    tab.reload()  # this person has seen it
    tab.wait("harness.chat.messages.length === 2")
    tab.wait("harness.chat.status === 'ready'")


@HTTP
def test_refused_before_the_stream(room: Room, transport: str) -> None:
    tab = enter(room, transport, token="think_wrong")
    tab.send("hello")
    tab.wait("harness.chat.status === 'error'")
    assert json.loads(tab.error or "")["code"] == "unauthenticated"
    assert room.stored() == []


@HTTP
def test_sent_twice_is_one_turn(room: Room, transport: str) -> None:
    tab = enter(room, transport, twice="yes")
    room.ask_and_rest(tab, "stream 20 words at 60/s")
    assert len(room.rest()) == 2
    room.ask_and_rest(tab, "say: Once.")
    assert len(room.rest()) == 4
    assert len(prompts_of(room.product.provider_log, room.markers[-1])) == 1


@USE_CHAT
def test_one_sends_and_one_looks_on(room: Room, observer: Tab, transport: str) -> None:
    tab = enter(room, transport)
    room.ask_and_rest(tab, "stream 40 words at 60/s")
    room.rest()
    assert observer.statuses("isServerStreaming") == [False, True, False]
    assert [end["outcome"] for end in observer.events("turn-end")] == ["completed"]


@HTTP
def test_a_page_of_the_same_origin_with_a_cookie(room: Room, transport: str) -> None:
    tab = room.open_same_origin("first")
    room.ask_and_rest(tab, "say: With a cookie.")
    assert text_of(room.rest()[1]) == "With a cookie."
    assert tab.sockets == []


@HTTP
def test_a_continuation_is_one_message_on_the_page(room: Room, transport: str) -> None:
    tab = enter(room, transport)
    room.ask_and_rest(tab, "stream 60 words at 60/s\n" + BREAKS.format(after=20, times=2))
    answer_id = tab.messages[1]["id"]
    room.tabs.remove(tab)  # compared by hand: on the page one message, in the store three
    for count in (3, 4):
        tab.do("harness.chat.sendMessage()")
        wait_for(partial(holds, room, count), seconds=20, what="the continuation")
        tab.wait_rest()
        assert flat(tab.messages) == flat(room.stored())
        assert [message["id"] for message in tab.messages] == [room.stored()[0]["id"], answer_id]
    assert "".join(map(text_of, room.stored()[1:])) == room.answers()[0]
    tab.reload()
    tab.wait("harness.chat.messages.length === 4")
    room.tabs.append(tab)
    assert outline(tab.messages) == outline(room.stored())


@HTTP
def test_coming_back_in_the_middle_of_a_continuation(room: Room, proxy: CuttingProxy, transport: str) -> None:
    tab = enter(room, transport, port=proxy.port, own="yes")
    room.ask_and_rest(tab, f"{LONG}\n" + BREAKS.format(after=20, times=1))
    room.tabs.remove(tab)
    tab.do("harness.chat.sendMessage()")
    tab.wait("harness.chat.status === 'streaming'")
    assert proxy.cut() > 0
    tab.wait("harness.chat.status === 'error'")
    tab.do("harness.chat.resumeStream()")
    tab.wait("harness.chat.status === 'streaming'")
    wait_for(partial(holds, room, 3), seconds=20, what="the continuation")
    tab.wait_rest()
    assert outline(tab.messages) == outline(room.stored())
    assert "".join(map(text_of, room.stored()[1:])) == room.answers()[0]
