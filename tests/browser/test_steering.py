"""Messages that are sent while an answer is written: they steer it, wait behind it, or stop it."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]
WORK = (
    'Wait a moment while I read.\nrate 4/s\nstream 40 words\ncall tool linger {"seconds": 0}\nsay: Done as first asked.'
)


def send_as(tab: ChatPage, text: str, way: str) -> None:
    tab.page.locator("#composer-input").fill(text)
    tab.page.get_by_role("button", name="Other ways to send").click()
    tab.page.get_by_role("menuitem", name=way).click()


@pytest.mark.smoke
def test_an_answer_is_steered_in_the_middle_of_its_work(open_tab: OpenTab) -> None:
    """Its agent has Enter do that; the menu has the two other ways."""
    tab = open_tab("/c/new?agent=led")
    tab.write(WORK)
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(re.compile(r"\S+ \S+"))
    tab.input.fill("Say it shorter.\nsay: Shorter.")
    tab.page.get_by_role("button", name="Other ways to send").click()
    expect(tab.page.get_by_role("menuitem")).to_have_text(["Send after this answer", "Stop this answer and send"])
    tab.page.keyboard.press("Escape")
    tab.input.press("Enter")
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Joins the answer at its next step")
    look(tab, "steering-waits")
    steered = tab.answers.last.locator(".steered")
    expect(steered).to_contain_text("Say it shorter.")
    expect(tab.answers.last).to_contain_text("Shorter.")
    expect(tab.page.locator(".message.is-pending")).to_have_count(0)
    expect(tab.page.get_by_text("Done as first asked.")).to_have_count(1)  # in the question alone
    assert tab.kinds() == ["user", "answer"]
    tab.page.reload()
    expect(tab.answers.last.locator(".steered")).to_contain_text("Say it shorter.")
    look(tab, "steered")


def test_waiting_messages_are_moved_and_edited_and_one_stops_the_answer(tab: ChatPage) -> None:
    tab.write("rate 4/s\nstream 400 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(re.compile(r"\S+ \S+"))
    for name in ("one", "two", "three"):
        tab.write(f"say: {name}")
    waiting = tab.page.locator(".message.is-pending")
    expect(waiting).to_have_count(3)
    expect(waiting.locator(".grip")).to_have_count(3)
    look(tab, "waiting-messages")
    tab.page.locator("#composer-input").fill("say: now")
    tab.page.get_by_role("button", name="Other ways to send").click()
    look(tab, "steering-menu")
    tab.page.keyboard.press("Escape")
    with tab.page.expect_response("**/queue"):
        waiting.nth(2).locator(".grip").press("ArrowUp")
    expect(waiting.nth(1)).to_contain_text("say: three")
    expect(waiting.nth(1).locator(".grip")).to_be_focused()
    source, target = waiting.nth(2).locator(".grip"), waiting.nth(0)
    with tab.page.expect_response("**/queue"):
        source.hover()
        tab.page.mouse.down()
        box = target.bounding_box()
        assert box is not None
        tab.page.mouse.move(box["x"] + 20, box["y"] + 2, steps=5)
        tab.page.mouse.up()
    expect(waiting.nth(0)).to_contain_text("say: two")
    waiting.nth(1).get_by_role("button", name="Edit").click()
    expect(tab.page.locator("#composer-input")).to_have_value("say: one")
    tab.page.locator("#composer-input").fill("say: uno")
    with tab.page.expect_response("**/message"):
        tab.page.locator("#composer-input").press("Enter")
    expect(waiting.nth(1)).to_contain_text("say: uno")
    send_as(tab, "say: now", "Stop this answer and send")
    expect(tab.answers).to_have_count(5)
    texts = [tab.answers.nth(at).locator(".md").inner_text().strip() for at in range(1, 5)]
    assert texts == ["now", "two", "uno", "three"]
