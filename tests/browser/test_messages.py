"""What stands in and under a message: who answers, files, code, sources, seams, actions; all on one grid."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.parts import PIXEL, said, text
from tests.browser.reading import history

OpenTab = Callable[..., ChatPage]
SVG_LIKE = {"mediaType": "image/svg+xml", "url": "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>"}


def top(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"]


@pytest.mark.smoke
def test_the_welcome_names_the_agent_and_goes_on_enter_without_a_jump(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=clerk")
    welcome = tab.page.locator("#welcome")
    expect(welcome).to_contain_text("Returns clerk")
    expect(welcome).to_contain_text("Gives money back, after asking.")
    check(tab.page)
    look(tab, "welcome")
    welcome.get_by_role("button", name="What is your returns policy?").click()
    expect(tab.input).to_have_value("What is your returns policy?")
    held = tab.hold("**/api/v1/instances")
    tab.input.fill("What is it?\nsay: Thirty days.")
    tab.input.press("Enter")
    assert welcome.count() == 0  # at once, before the server knows of it
    before = top(tab.messages.first)
    tab.until(lambda: held)
    held[0].continue_()
    expect(tab.answers.last).to_contain_text("Thirty days.")
    tab.rest()
    assert abs(top(tab.messages.first) - before) < 1


def test_an_answer_says_whose_it_is(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=clerk")
    answer = tab.ask("say: Hello.")
    expect(answer.locator(".message-head")).to_have_text("Returns clerk")
    expect(answer.get_by_role("heading", name="Answer from Returns clerk")).to_be_attached()


@pytest.mark.smoke
def test_actions_are_named_and_a_menu_on_a_phone(tab: ChatPage, open_tab: OpenTab, live_product: LiveProduct) -> None:
    key = live_product.seed("Stored", history(6))
    tab.open(f"/c/{key}")
    copy = tab.messages.nth(1).get_by_role("button", name="Copy this message")
    shown = "button => getComputedStyle(button, '::after').content"
    assert copy.evaluate(shown) == "none"
    copy.hover()
    assert copy.evaluate(shown) == '"Copy this message"'
    phone = open_tab(f"/c/{key}", context=tab.page.context)
    phone.page.set_viewport_size({"width": 390, "height": 844})
    phone.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    message = phone.messages.nth(1)
    expect(message.locator(".message-foot").get_by_role("button", name="Copy this message")).to_have_count(0)
    message.get_by_role("button", name="More for this message").click()
    items = phone.page.get_by_role("menuitem")
    expect(items).to_have_text(
        [
            *("Copy this message", "Answer again", "Edit this answer", "Fork from here", "Share up to here…"),
            *("Copy a link to this message", "Answer again with another model", "Read aloud, or stop"),
        ]
    )
    check(phone.page)
    phone.page.keyboard.press("Escape")
    expect(phone.page.locator("#share")).to_be_hidden()  # there is room for the title instead
    phone.page.get_by_role("button", name="More for this conversation").click()
    expect(items.filter(has_text="Share with people")).to_be_visible()
    phone.page.keyboard.press("Escape")
    message.get_by_role("button", name="More for this message").click()
    items.filter(has_text="Copy a link").click()
    phone.until(lambda: "at=m1" in phone.page.evaluate("navigator.clipboard.readText()"))
    phone.page.goto(phone.page.evaluate("navigator.clipboard.readText()"))
    expect(phone.page.locator(".is-found")).to_have_attribute("data-id", "m1")


def test_pictures_are_small_and_other_files_have_their_names(tab: ChatPage, live_product: LiveProduct) -> None:
    files: list[dict[str, Any]] = [
        {"type": "file", "url": PIXEL, "mediaType": "image/png", "filename": "dot.png"},
        {"type": "file", "filename": "drawing.svg", **SVG_LIKE},
        {"type": "file", "url": PIXEL, "mediaType": "application/pdf", "filename": "report.pdf", "byteSize": 12_345},
    ]
    tab.open("/c/" + live_product.seed("Files", [said("u", "user", *files, text("Look")), said("a", "assistant")]))
    row = tab.messages.first.get_by_role("list", name="Files")
    picture = row.get_by_role("img", name="Image: dot.png")
    box = picture.bounding_box()
    assert box is not None
    assert (box["width"] <= 256, box["height"] <= 192) == (True, True)
    expect(row.get_by_role("img")).to_have_count(1)  # a picture that could hold scripts is none
    expect(row.locator(".file-chip")).to_have_text(["drawing.svg", "report.pdf12 kB"])


def test_code_in_a_persons_own_message_is_code(tab: ChatPage) -> None:
    tab.ask("Look at **this**:\n```python\nx = 1\n```\nsay: I did.")
    message = tab.messages.first
    expect(message.locator("figure.code .code-language")).to_have_text("python")
    expect(message.locator(".plain")).to_contain_text("Look at **this**:")
    tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    message.locator("figure.code").get_by_role("button", name="Copy").click()
    tab.until(lambda: tab.page.evaluate("navigator.clipboard.readText()") == "x = 1")


def test_citations_lead_to_their_sources(tab: ChatPage, live_product: LiveProduct) -> None:
    answer = said(
        "a",
        "assistant",
        text("It is so [1], says the book [2], and nobody else [3]."),
        {"type": "source-url", "sourceId": "s1", "url": "https://example.com/one", "title": "One"},
        {"type": "source-document", "sourceId": "s2", "title": "A book", "filename": "book.pdf"},
    )
    tab.open("/c/" + live_product.seed("Sources", [said("u", "user", text("Why?")), answer]))
    expect(tab.answers.locator("sup.cite")).to_have_text(["[1]", "[2]"])
    expect(tab.answers.locator("sup.cite a")).to_have_attribute("href", "https://example.com/one")
    expect(tab.answers.get_by_role("list", name="Sources").get_by_role("listitem")).to_have_text(
        ["Oneexample.com", "A book, book.pdf"]
    )
    look(tab, "sources")


def test_thoughts_keep_their_time_and_a_resumed_answer_shows_its_seam(tab: ChatPage, live_product: LiveProduct) -> None:
    answer = said(
        "a",
        "assistant",
        {
            "type": "reasoning",
            "text": "Hm.",
            "state": "done",
            "providerMetadata": {"think": {"durationMs": 3600}},
        },
        text("Before."),
        {"type": "data-think-resumed", "data": {"at": "2026-05-20T14:02:00Z", "offset": 4}},
        text("After."),
    )
    tab.open("/c/" + live_product.seed("Seam", [said("u", "user", text("Go")), answer]))
    expect(tab.answers.locator(".reasoning .fold-label")).to_have_text("Thought for 3.6 s")
    expect(tab.answers.locator(".seam")).to_have_text(re.compile(r"^Interrupted, and resumed at .*14:02$"))
    shown = tab.answers.locator(".message-body > *").evaluate_all("all => all.map(one => one.className)")
    assert shown == ["fold reasoning", "md", "seam", "md"]


def test_a_running_tool_counts_in_its_own_line(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=desk")
    tab.write('call tool linger {"seconds": 6}\nsay: {result}.')
    note = tab.page.locator("details.tool .fold-note")
    expect(note).to_have_text(re.compile(r"^Running [2-5](\.0)? s$"))
    expect(tab.page.locator("details.tool .fold-label")).to_have_text("Linger")
    expect(tab.page.locator("#status")).to_be_hidden()  # what its own line says is not said twice
    tab.rest()
    expect(note).to_have_text(re.compile(r"^Done, 6"))


EDGES = """() => {
    const inner = (element) => {
        const { left, right } = element.getBoundingClientRect(), style = getComputedStyle(element);
        return [left + parseFloat(style.paddingLeft), right - parseFloat(style.paddingRight)];
    };
    const { left, right } = document.querySelector(".composer-box").getBoundingClientRect();
    return [...inner(document.querySelector(".column")), left, right].map(Math.round);
}"""


@pytest.mark.parametrize("width", [1280, 1024, 768, 390])
def test_text_and_field_share_their_edges(tab: ChatPage, live_product: LiveProduct, width: int) -> None:
    tab.open("/c/" + live_product.seed("Stored", history(40)))
    tab.page.set_viewport_size({"width": width, "height": 800})
    tab.still()
    text_left, text_right, left, right = tab.page.evaluate(EDGES)
    assert (abs(text_left - left) <= 1, abs(text_right - right) <= 1) == (True, True)


def test_a_hit_marks_its_words_and_not_the_message(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open("/c/" + live_product.seed("Stored", history(30)))
    tab.page.locator("#search").fill("Message 7")
    tab.page.locator("#hits a").first.click()
    found = tab.page.locator(".message.is-found")
    expect(found).to_have_class(re.compile("has-words"))
    assert tab.page.evaluate("[...CSS.highlights.get('search-hit')].map(String)")[0].lower().startswith("message")
    assert found.evaluate("element => getComputedStyle(element).backgroundColor") == "rgba(0, 0, 0, 0)"
