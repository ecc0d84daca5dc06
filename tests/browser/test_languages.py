"""The page in real and in made-up languages: all that it says comes from a catalogue, and it holds right to left."""

import os
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.parts import call, message
from thinkproject.catalogues import page_files

OpenTab = Callable[..., ChatPage]
TEXTS = """() => {
    const theirs = ".md, .plain, .row-title, .value, .block-text, .hit-text, .history-title, #title, .file-name, "
        + "[dir=auto], bdi, .context-block, .tool-call .fold-label, .fold-hint, code, kbd, time, .sibling-count, "
        + ".brand, .agent-name, #model-name, #user-menu, .context-tokens, textarea, script, style, noscript, template";
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


SHAPES: dict[str, ViewportSize] = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
PICTURES = os.environ.get("SHOTS")
SEEN = {
    "de": {"sign": "Anmelden", "write": "Nachricht schreiben", "list": "Unterhaltungen", "memory": "Über dich"},
    "ar": {"sign": "تسجيل الدخول", "write": "اكتب رسالة", "list": "المحادثات", "memory": "عنك"},
}


def picture(tab: ChatPage, name: str) -> None:
    """A picture wide and narrow, when asked. Nothing is wider than the page."""
    for size, shape in SHAPES.items():
        tab.page.set_viewport_size(shape)
        if PICTURES:
            tab.page.wait_for_timeout(150)  # what moves with the size has moved; only pictures need it
            tab.page.screenshot(path=f"{PICTURES}/{name}-{size}.png")
        assert tab.page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0, f"{name} {size}"
    tab.page.set_viewport_size(SHAPES["wide"])


@pytest.mark.parametrize(
    ("code", "own_name", "direction"), [("de", "Deutsch", "ltr"), ("ar", "العربيّة", "rtl")], ids=["german", "arabic"]
)
def test_a_language_is_chosen_at_sign_in_and_spoken_by_the_page(
    open_tab: OpenTab, live_product: LiveProduct, code: str, own_name: str, direction: str
) -> None:
    words = SEEN[code]
    tab = open_tab("/c/new")
    session = [cookie for cookie in tab.page.context.cookies() if "language" not in cookie["name"]]
    tab.page.context.clear_cookies()
    tab.page.goto(f"{tab.base_url}/sign-in/")
    tab.page.locator(".language-menu summary").click()
    tab.page.get_by_role("button", name=own_name, exact=True).click()
    expect(tab.page.locator("html")).to_have_attribute("lang", code)
    expect(tab.page.locator("html")).to_have_attribute("dir", direction)
    expect(tab.page.locator("h1")).to_have_text(words["sign"])
    picture(tab, f"{code}-sign-in")
    check(tab.page)
    tab.page.context.add_cookies(session)  # type: ignore[arg-type]  # as the driver gave them
    key = live_product.seed(
        "Calls",
        [message("u", "user", "Go"), {**message("a", "assistant", "Done."), "parts": [call(n) for n in range(6)]}],
    )
    tab.open("/c/new")
    expect(tab.page.locator("html")).to_have_attribute("dir", direction)
    expect(tab.page.locator("textarea")).to_have_attribute("placeholder", words["write"])
    expect(tab.page.locator(".sidebar")).to_contain_text(words["list"])
    edge = "title => getComputedStyle(title).textAlign"  # of a title that is read from left to right
    assert tab.page.locator(".row-title").first.evaluate(edge) == {"ltr": "left", "rtl": "right"}[direction]
    picture(tab, f"{code}-new")
    check(tab.page)
    field, key_name = (tab.page.locator(name).bounding_box() for name in (".search", ".search kbd"))
    assert field is not None
    assert key_name is not None
    is_left = key_name["x"] - field["x"] < field["width"] / 2
    assert is_left == (direction == "rtl")  # at the end of the field, not over its words
    tab.open(f"/c/{key}?panel=memory")
    expect(tab.page.locator("#panel-memory")).to_contain_text(words["memory"])
    assert [text for text in tab.page.evaluate(TEXTS) if text in set(english_texts())] == []
    picture(tab, f"{code}-memory")
    check(tab.page)
    tab.open(f"/c/{key}")
    for summary in tab.page.locator("#messages summary").all():
        summary.click()
    picture(tab, f"{code}-calls")
    check(tab.page)
    for view in ("approvals", "work", "settings/you", "settings/usage", "settings/tokens"):
        tab.open(f"/{view}")
        picture(tab, f"{code}-{view.replace('/', '-')}")
        check(tab.page)


def english_texts() -> list[str]:
    """What the page says in English, without texts that other languages share, such as names and units."""
    english = page_files.read(page_files.FOLDER, "en")
    areas = [area for name in SEEN for area in page_files.read(page_files.FOLDER, name).values()]
    shared = {str(text) for area in areas for text in area.values()}
    return [text for area in english.values() for text in area.values() if isinstance(text, str) and text not in shared]


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
