"""Reading: the page stays where one reads, older messages come by themselves, eyes and ears are served."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.looks import look
from tests.browser.reading import distance, history

OpenTab = Callable[..., ChatPage]
PLACE = "document.getElementById('scroller').scrollTop"


def test_first_content_needs_no_request(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Stored", history(6))
    tab.hold("**/messages?*")
    tab.page.goto(f"{tab.base_url}/c/{key}", wait_until="domcontentloaded")
    tab.page.wait_for_selector("html[data-ready]", state="attached")
    assert tab.messages.count() == 6


@pytest.mark.smoke
def test_opens_at_the_end_and_follows_the_answer(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Stored", history(40))
    tab.open(f"/c/{key}")
    tab.still()
    assert distance(tab) < 4
    tab.ask("rate 100/s\nstream 300 words")
    tab.still()
    assert distance(tab) < 4
    expect(tab.page.locator("#to-end")).to_be_hidden()


def test_scrolled_up_reader_is_not_moved_and_a_button_leads_back(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Stored", history(40))
    tab.open(f"/c/{key}")
    tab.write("rate 40/s\nstream 200 words")
    expect(tab.page.locator(".message.is-live .md")).to_be_visible()
    tab.page.mouse.move(700, 400)
    tab.page.mouse.wheel(0, -900)
    expect(tab.page.locator("#to-end")).to_be_visible()
    tab.page.wait_for_timeout(300)  # the wheel's motion ends unseen, and the answer goes on growing
    before, words = tab.page.evaluate(PLACE), len(tab.text_of_last().split())
    tab.until(lambda: len(tab.text_of_last().split()) > words + 30)
    assert abs(tab.page.evaluate(PLACE) - before) < 2
    expect(tab.page.locator("#to-end")).to_be_visible()
    tab.page.locator("#to-end").click()
    expect(tab.page.locator("#to-end")).to_be_hidden()
    assert distance(tab) < 60  # a line may have come since
    tab.rest()
    tab.still()
    assert distance(tab) < 4


@pytest.mark.smoke
def test_older_messages_load_above_without_moving_the_reader(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Stored", history(160))
    tab.open(f"/c/{key}")
    expect(tab.messages).to_have_count(50)
    tab.page.mouse.move(700, 400)
    seen = tab.page.evaluate(
        """async () => {
            const scroller = document.getElementById("scroller");
            const frame = () => new Promise((done) => requestAnimationFrame(done));
            scroller.scrollTop = 500;
            for (let i = 0; i < 3; i += 1) await frame(); // what came into sight has its real height
            const top = scroller.getBoundingClientRect().top;
            const all = () => [...document.querySelectorAll(".message")];
            const anchor = all().find((message) => message.getBoundingClientRect().bottom > top + 10);
            const before = anchor.getBoundingClientRect().top;
            const pause = () => new Promise((done) => setTimeout(done, 50));
            for (let i = 0; i < 300 && all().length <= 50; i += 1) await pause();
            for (let i = 0; i < 3; i += 1) await frame();
            return [anchor.dataset.id, before, anchor.getBoundingClientRect().top, all().length];
        }"""
    )
    assert seen[3] > 50
    assert abs(seen[1] - seen[2]) < 4, seen

    def has_all() -> bool:
        tab.page.evaluate("document.getElementById('scroller').scrollTop = 0")
        return tab.messages.count() == 160

    tab.until(has_all)
    expect(tab.page.locator("#older")).to_be_hidden()
    ids = tab.page.eval_on_selector_all(".message", "ms => ms.map(m => m.dataset.id)")
    assert ids == [f"m{number}" for number in range(160)]


def test_screen_readers_get_sentences_not_tokens(tab: ChatPage) -> None:
    tab.page.evaluate(
        """() => {
            window.received = [];
            const hear = (record) => record.addedNodes.forEach((node) => received.push(node.textContent));
            const region = document.getElementById("live");
            new MutationObserver((list) => list.forEach(hear)).observe(region, { childList: true });
        }"""
    )
    tab.ask("rate 15/s\nsay: The first sentence is here. The second **one** follows it now! And a third, which ends.")
    received = tab.page.evaluate("received")
    assert received[-1] == "Answer complete."
    spoken = received[:-1]
    assert " ".join(spoken) == "The first sentence is here. The second one follows it now! And a third, which ends."
    assert 2 <= len(spoken) <= 4
    assert all(text.endswith((".", "!")) for text in spoken)


def choose_theme(tab: ChatPage, name: str) -> None:
    """Choose from the menu with the person's name."""
    tab.page.locator(".sidebar-foot").get_by_role("button").click()
    tab.page.get_by_role("menuitemradio", name=name).click()
    tab.page.keyboard.press("Escape")


@pytest.mark.smoke
def test_theme_follows_the_system_and_can_be_chosen_for_good(open_tab: OpenTab) -> None:
    tab = open_tab(color_scheme="dark")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    dark = tab.page.evaluate(background)
    choose_theme(tab, "Light")
    light = tab.page.evaluate(background)
    assert light != dark
    tab.page.reload()
    assert tab.page.locator("html").get_attribute("data-theme") == "light"
    assert tab.page.evaluate(background) == light
    choose_theme(tab, "Same as system")
    tab.page.reload()
    assert tab.page.locator("html").get_attribute("data-theme") is None
    assert tab.page.evaluate(background) == dark


def test_reduced_motion_stops_animations(open_tab: OpenTab) -> None:
    tab = open_tab(reduced_motion="reduce")
    tab.write("rate 20/s\nreason 60 words")
    expect(tab.page.locator(".fold.is-live")).to_be_visible()
    assert tab.page.evaluate("document.getAnimations().length") == 0
    tab.stop_button.click()
    tab.rest()


@pytest.mark.smoke
def test_offline_is_reported_and_writing_goes_on(tab: ChatPage, page_line: CuttingProxy) -> None:
    tab.ask("say: Begin.")
    page_line.go_offline()
    expect(tab.page.locator("#connection")).to_contain_text("Trying again in", timeout=20_000)
    tab.input.fill("a draft")
    page_line.go_online()
    with suppress(PlaywrightTimeout):  # it may have come back by itself in between
        tab.page.get_by_role("button", name="Try now").click(timeout=2_000)
    expect(tab.page.locator("#connection")).to_be_hidden(timeout=20_000)
    expect(tab.input).to_have_value("a draft")


@pytest.mark.smoke
def test_whole_page_works_from_the_keyboard(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.locator("body").press("Tab")
    reached = set()
    for _ in range(40):
        reached.add(
            tab.page.evaluate(
                "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim()"
            )
        )
        tab.page.keyboard.press("Tab")
    for name in (
        "Search conversations",
        "Alpha, Assistant",
        "More for “Alpha”",
        "Copy this message",
        "Edit this message",
        "Answer again",
        "Message",
        "Attach files",
    ):
        assert name in reached, (name, reached)


def test_focus_is_never_lost(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.answers.last.get_by_role("button", name="Answer again").press("Enter")
    expect(tab.input).to_be_focused()  # the button went away with the answer
    expect(tab.page.locator(".sibling-count")).to_have_text("2 / 2", timeout=20_000)
    tab.rest()
    tab.page.get_by_role("button", name="Previous version").press("Enter")
    expect(tab.page.locator(".sibling-count")).to_have_text("1 / 2")
    expect(tab.page.get_by_role("button", name="Next version")).to_be_focused()  # the first has no former one
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".sibling-count")).to_have_text("2 / 2")
    expect(tab.page.get_by_role("button", name="Previous version")).to_be_focused()


def test_forced_colours_leave_focus_and_marks_visible(open_tab: OpenTab) -> None:
    tab = open_tab(forced_colors="active")
    tab.ask("Alpha\nsay: a.")
    tab.input.focus()
    box = tab.page.locator(".composer-box")
    assert box.evaluate("box => getComputedStyle(box).outlineStyle") == "solid"
    assert tab.page.locator("#send").evaluate("button => getComputedStyle(button).borderTopWidth") == "1px"
    current = tab.page.locator(".row:has([aria-current])")
    assert current.evaluate("row => getComputedStyle(row).outlineStyle") == "solid"
    look(tab, "forced-colours")


def test_what_an_answer_took_opens_without_a_mouse(tab: ChatPage) -> None:
    answer = tab.ask("say: Hello.")
    facts = answer.locator(".facts")
    expect(answer.locator(".facts-more")).to_be_hidden()
    facts.press("Enter")
    expect(facts).to_have_attribute("aria-expanded", "true")
    expect(answer.locator(".facts-more")).to_contain_text("tokens read")
    look(tab, "facts")


def test_no_way_to_the_end_where_there_is_nothing_to_scroll(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Short", history(4))
    down = tab.page.locator("#to-end")
    tab.open(f"/c/{key}?at=m1")
    expect(tab.page.locator(".message.is-found")).to_be_visible()
    tab.still()
    expect(down).to_be_hidden()
    tab.page.set_viewport_size({"width": 1280, "height": 420})
    tab.page.mouse.move(700, 200)
    tab.page.mouse.wheel(0, -2000)
    expect(down).to_be_visible()
    tab.page.set_viewport_size({"width": 1280, "height": 1400})
    expect(down).to_be_hidden()


def test_opening_at_the_last_message_is_at_the_end(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Long", history(40))
    tab.open(f"/c/{key}?at=m39")
    expect(tab.page.locator(".message.is-found")).to_be_visible()
    expect(tab.page.locator("#to-end")).to_be_hidden()
    tab.open(f"/c/{key}?at=m3")
    expect(tab.page.locator("#to-end")).to_be_visible()


ROOM = """(selector) => {
    const part = document.querySelector(selector);
    const inner = part.getBoundingClientRect(), outer = part.closest('.message').getBoundingClientRect();
    return [inner.left - outer.left, outer.right - inner.right, inner.top - outer.top, outer.bottom - inner.bottom];
}"""


@pytest.mark.parametrize("shape", ["desktop", "phone"])
def test_rings_of_a_message_are_not_cut_off(open_tab: OpenTab, live_product: Any, shape: str) -> None:
    """A message that may be skipped while it is out of sight draws nothing beyond its box."""
    key = live_product.seed("Stored", history(6))
    tab = open_tab(f"/c/{key}", shape=PHONE if shape == "phone" else DESKTOP)
    first = tab.messages.first
    if shape == "phone":
        first.get_by_role("button", name="More for this message").click()
        tab.page.get_by_role("menuitem", name="Edit this message").click()
    else:
        first.get_by_role("button", name="Edit this message").click()
    edited = '.message[data-id="m0"].is-edited .message-body'
    expect(tab.page.locator(edited)).to_be_visible()
    for selector in (
        edited,
        '.message[data-id="m1"] .message-foot button',
        '.message[data-id="m0"] .message-foot button:last-of-type',
    ):
        assert min(tab.page.evaluate(ROOM, selector)) >= 4, selector  # 2 px wide, 2 px away
    assert tab.page.evaluate("(s => s.scrollWidth - s.clientWidth)(document.getElementById('scroller'))") == 0
