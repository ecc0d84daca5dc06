"""A parked turn in the page: what it waits for and since when, live and after a reload."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

pytestmark = pytest.mark.smoke

WAITS = re.compile(r"^Waiting for the deployment window, since \d{1,2}:\d\d$")


def test_the_page_shows_what_a_parked_turn_waits_for(
    open_tab: Callable[..., ChatPage], live_product: LiveProduct
) -> None:
    tab = open_tab("/c/new?agent=waiter")
    tab.write("call tool ask_person {} id=one\nsay: It says {result}.")
    status = tab.page.locator(".status")
    expect(status).to_have_text(WAITS)
    told = status.inner_text()
    tab.page.reload()
    expect(status).to_have_text(told)
    look(tab, "parked")
    assert live_product.call("answer_waiting", live_product.user_id, "Friday")
    expect(tab.answers.last).to_contain_text("It says Friday.")
    expect(status).to_be_hidden()
