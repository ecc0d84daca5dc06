"""The page in made-up languages: all that it says comes from a catalogue, and it holds together right to left."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.parts import call, message

OpenTab = Callable[..., ChatPage]
TEXTS = """() => {
    const theirs = ".md, .plain, .row-title, .value, .block-text, .hit-text, .history-title, #title, .file-name, "
        + "[dir=auto], .context-block, .tool-call .fold-label, .fold-hint, code, kbd, time, .sibling-count, .brand, "
        + ".agent-name, #model-name, #user-menu, .context-tokens, textarea, script, style, noscript, template";
    const said = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (!node.parentElement.closest(theirs)) said.push(node.data.trim());
    }
    for (const element of document.querySelectorAll("[aria-label], [placeholder], [title]")) {
        if (element.closest("#title, #model-name, #user-menu, .row, .agent-name, time, .context-block")) continue;
        for (const name of ["aria-label", "placeholder", "title"]) said.push(element.getAttribute(name) ?? "");
    }
    return said.filter((text) => /[A-Za-z]{3}/.test(text));
}"""


def english(tab: ChatPage) -> list[str]:
    """Texts of the page itself that no catalogue has given."""
    return [said for said in tab.page.evaluate(TEXTS) if not (said.startswith("[") or "[" in said)]


@pytest.fixture(params=["en-XA", "ar-XB"])
def language(request: pytest.FixtureRequest) -> str:
    """A made-up language: longer, or from right to left."""
    return str(request.param)


@pytest.mark.smoke("ar-XB")
def test_every_text_is_from_a_catalogue(open_tab: OpenTab, live_product: LiveProduct, language: str) -> None:
    tab = open_tab("/c/new", locale=language)
    expect(tab.page.locator("html")).to_have_attribute("dir", "rtl" if language == "ar-XB" else "ltr")
    assert english(tab) == []
    key = live_product.seed(
        "Calls",
        [message("u", "user", "Go"), {**message("a", "assistant", "Done."), "parts": [call(n) for n in range(6)]}],
    )
    tab.open(f"/c/{key}?panel=context")
    expect(tab.page.locator(".context-bar")).to_be_visible()
    for summary in tab.page.locator("#messages summary").all():
        summary.click()
    assert english(tab) == []
    for name in ("memory", "overview"):
        tab.open(f"/c/{key}?panel={name}")
        expect(tab.page.locator(f"#panel-{name} h2").first).to_be_visible()
        assert english(tab) == []
    tab.page.locator("#user-menu").click()
    assert english(tab) == []
    tab.page.keyboard.press("Escape")
    tab.open("/approvals")
    assert english(tab) == []


def test_a_page_of_an_error_is_from_a_catalogue_too(open_tab: OpenTab, language: str) -> None:
    tab = open_tab("/c/new", locale=language)
    tab.page.goto(f"{tab.base_url}/there-is-no-such-page/")
    switch = tab.page.locator("#theme")
    for theme in ("system", "light", "dark"):
        expect(switch).to_have_attribute("data-theme", theme)
        expect(switch).to_have_attribute("title", re.compile("~~"))
        assert all("~~" in said for said in tab.page.evaluate(TEXTS))  # as the server's catalogues have it
        switch.click()
    tab.errors.clear()  # the browser's note of the 404


@pytest.mark.parametrize("shape", [None, PHONE], ids=["desktop", "phone"])
def test_it_holds_together(open_tab: OpenTab, live_product: LiveProduct, language: str, shape: object) -> None:
    tab = open_tab("/c/new", locale=language, **({"shape": shape} if shape else {}))
    look(tab, f"language-{language}-new")
    check(tab.page)
    key = live_product.seed(
        "Calls", [message("u", "user", "Go"), {**message("a", "assistant", ""), "parts": [call(1)]}]
    )
    tab.open(f"/c/{key}")
    look(tab, f"language-{language}-answer")
    tab.open(f"/c/{key}?panel=context")
    expect(tab.page.locator(".context-bar")).to_be_visible()
    look(tab, f"language-{language}-panel")
    tab.open("/approvals")
    look(tab, f"language-{language}-approvals")
    check(tab.page)
