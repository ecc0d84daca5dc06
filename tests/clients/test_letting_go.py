"""Pages that let go of an answer, to send something else or because they close, with `cancelOnClientAbort`."""

import pytest
from playwright.sync_api import BrowserContext

from tests.acceptance.product import wait_for
from tests.clients.given import give, js
from tests.clients.room import Room
from tests.clients.tab import text_of


@pytest.mark.parametrize("cancels", [True, False])
def test_an_answer_that_the_page_lets_go_of_is_stopped_if_configured(
    room: Room, context: BrowserContext, *, cancels: bool
) -> None:
    """It lets go when something else is to be sent at once; `stop` stops the turn either way."""
    give(context, chat=js({"cancelOnClientAbort": cancels, "experimental_queue": True}))
    tab = room.open("first")
    room.ask(tab, "stream 120 words at 60/s")
    tab.wait_text(20)
    room.ask(tab, "say: now")
    tab.wait("harness.chat.experimental_queuedMessages.length === 1")
    tab.do("harness.chat.experimental_sendQueuedMessageNow(harness.chat.experimental_queuedMessages[0].id)")
    wait_for(lambda: [text_of(message) for message in room.stored()][3:] == ["now"], seconds=20, what="both answers")
    assert (len(text_of(room.stored()[1]).split()) < 120) is cancels


def test_a_page_that_closes_stops_nothing(room: Room, context: BrowserContext) -> None:
    give(context, chat=js({"cancelOnClientAbort": True}))
    tab = room.open("first")
    room.ask(tab, "stream 120 words at 60/s")
    tab.wait_text(20)
    tab.do("harness.unmount()")
    wait_for(lambda: len(room.stored()) == 2, seconds=20, what="the stored answer")
    assert text_of(room.stored()[1]) == room.answers()[0] != ""
