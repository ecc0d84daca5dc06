"""Searching: messages are found, open at their place, and reading goes on from there in both directions."""

import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.accessibility import check
from tests.browser.branches import TREES, ids, text
from tests.browser.chat_page import ChatPage, choose_more
from tests.browser.looks import SIZES, look
from tests.browser.reading import history

OpenTab = Callable[..., ChatPage]
IN_SIGHT = """element => {
    const [box, frame] = [element, document.getElementById("scroller")].map((item) => item.getBoundingClientRect());
    return box.top >= frame.top && box.bottom <= frame.bottom;
}"""


def orchard(live_product: Any) -> str:
    """A conversation of 300 messages; the 41st and a version of the 21st tell of blueberries."""
    messages = history(300)
    messages[41]["parts"][0]["text"] = "The harvest of wild blueberries was late, and <b>nobody</b> knew why."
    key: str = live_product.seed("The orchard", messages)
    other = [text("b1", "assistant", "A blueberry in another version."), text("b2", "user", "The end of that version.")]
    live_product.hand.call(f"{TREES}:branch", key, "m20", other)
    return key


def search(page: Page, words: str) -> None:
    """Type into the list's search and wait for the answer."""
    with page.expect_response("**/search?*"):
        page.locator("#search").fill(words)


@pytest.mark.smoke
def test_hit_opens_its_conversation_at_the_message_and_reading_goes_on_both_ways(
    tab: ChatPage, live_product: Any
) -> None:
    key = orchard(live_product)
    live_product.seed("Jam", [text("j1", "user", "How is jam made?"), text("j2", "assistant", "Slowly.")])
    tab.open("/")
    search(tab.page, "blueberries")
    hits = tab.page.locator("#hits .hit")
    expect(hits).to_have_count(2)
    expect(hits.locator("mark")).to_have_text(["blueberry", "blueberries"])
    expect(hits.nth(0)).to_contain_text("in another version")
    expect(hits.nth(1)).to_contain_text("<b>nobody</b>")  # what was written is text
    check(tab.page)
    look(tab, "hits")
    tab.page.locator("#search").press("ArrowDown")
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    found = tab.page.locator(".is-found")
    expect(found).to_have_attribute("data-id", "m41")
    expect(found).to_be_focused()
    assert found.evaluate(IN_SIGHT)
    expect(tab.page).to_have_url(f"{tab.base_url}/c/{key}?at=m41")
    tab.page.reload()
    expect(found).to_be_focused()
    assert found.evaluate(IN_SIGHT)
    look(tab, "opened-at-a-hit")
    scroller = "document.getElementById('scroller')"
    for edge in ("0", f"{scroller}.scrollHeight"):

        def is_reached(edge: str = edge) -> bool:
            shown = ids(tab)
            tab.page.evaluate(f"{scroller}.scrollTop = {edge}")
            return (edge == "0" and shown[0] == "m0") or shown[-1] == "m299"

        tab.until(is_reached)
    assert ids(tab) == [f"m{number}" for number in range(300)]
    expect(tab.page.locator("#newer")).to_be_hidden()
    expect(tab.page).to_have_url(f"{tab.base_url}/c/{key}")
    tab.ask("say: And here it ends.")
    assert tab.text_of_last() == "And here it ends."


def test_hit_in_another_version_is_looked_at_and_gone_on_from(tab: ChatPage, live_product: Any) -> None:
    key = orchard(live_product)
    tab.open(f"/c/{key}?at=b1")
    bar = tab.page.locator("#place")
    expect(bar).to_contain_text("You’re reading another version")
    expect(tab.page.locator('[data-id="b1"] .sibling-count')).to_have_text("2 / 2")
    assert ids(tab)[-2:] == ["b1", "b2"]
    check(tab.page)
    look(tab, "another-version")
    bar.get_by_role("button", name="Back").click()
    expect(bar).to_be_hidden()
    expect(tab.messages.last).to_have_attribute("data-id", "m299")
    tab.open(f"/c/{key}?at=b1")
    expect(bar).to_be_visible()
    tab.ask("say: It goes on here.")  # what one writes, one writes to what one reads
    expect(bar).to_be_hidden()
    assert ids(tab)[-4:-2] == ["b1", "b2"]
    tab.page.reload()
    expect(tab.messages.nth(-3)).to_have_attribute("data-id", "b2")


def test_nothing_found_gives_the_reason(tab: ChatPage, live_product: Any) -> None:
    live_product.seed("Jam", [text("j1", "user", "How is jam made?"), text("j2", "assistant", "Slowly.")])
    note, empty = tab.page.locator("#hits-note"), tab.page.locator("#no-conversations")
    search(tab.page, "jam OR")
    expect(note).to_have_text("OR stands between two words.")
    expect(note).to_be_visible()
    search(tab.page, "marmalade")
    expect(note).to_be_hidden()
    expect(empty).to_have_text("Nothing matches.")
    search(tab.page, "slowly")
    expect(tab.page.locator("#hits .hit-group h3")).to_have_text("Jam")
    expect(empty).to_be_hidden()

    def partly(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "is_partial": True})

    tab.page.route("**/search?*", partly)
    search(tab.page, "jam")
    expect(note).to_have_text("Only the newest 5,000 matching messages were searched.")
    tab.page.locator("#search").press("Escape")
    expect(note).to_be_hidden()
    expect(tab.page.locator("#hits .hit")).to_have_count(0)


def test_search_within_the_conversation(tab: ChatPage, open_tab: OpenTab, live_product: Any) -> None:
    key = orchard(live_product)
    live_product.seed("Blueberries", [text("j1", "user", "Blueberries elsewhere.")])
    tab.open(f"/c/{key}")
    tab.page.get_by_role("button", name="Search in this conversation").click()
    field = tab.page.get_by_role("searchbox", name="Search in this conversation")
    expect(field).to_be_focused()
    tab.page.keyboard.type("blueberries -version")
    hits = tab.page.locator("#find-hits .hit")
    expect(hits).to_have_count(1)  # neither the other conversation nor what was left out
    expect(tab.page.locator("#find-count")).to_have_text("1 found")
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".is-found")).to_have_attribute("data-id", "m41")
    expect(hits.locator("a")).to_be_focused()  # the next one is a key away
    check(tab.page)
    look(tab, "search-within")
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("#find-bar")).to_be_hidden()
    phone = open_tab(f"/c/{key}", context=tab.page.context)
    phone.page.set_viewport_size(SIZES["phone"])
    phone.page.get_by_role("button", name="More for this conversation").click()
    phone.page.get_by_role("menuitem", name="Search in this conversation").click()
    expect(phone.page.get_by_role("searchbox", name="Search in this conversation")).to_be_focused()
    phone.page.keyboard.type("blueberries")
    phone.page.locator("#find-hits a", has_text="harvest").click()
    expect(phone.page.locator("#find-bar")).to_be_hidden()  # there is no room for both
    expect(phone.page.locator(".is-found")).to_be_focused()


class Watch:
    """Times of what a person waits for, as the driver sees them: its own round trips are part of each."""

    def __init__(self) -> None:
        self._laps: dict[str, list[float]] = {}
        self.start()

    def start(self) -> None:
        """The next lap begins."""
        self._at = time.perf_counter()

    def lap(self, what: str) -> None:
        """It is there."""
        self._laps.setdefault(what, []).append(time.perf_counter() - self._at)

    def report(self) -> str:
        """A line for each: median and longest in ms."""
        rows = self._laps.items()
        return "".join(f"{what}: {median(t) * 1000:.0f} ms, at most {max(t) * 1000:.0f}\n" for what, t in rows)


def scroll_back(tab: ChatPage, watch: Watch) -> None:
    """Go to the top and wait for what comes before."""
    first = ids(tab)[0]
    watch.start()
    tab.page.evaluate("document.getElementById('scroller').scrollTop = 0")
    expect(tab.messages.first).not_to_have_attribute("data-id", first)
    watch.lap("scroll back a page")


def test_hundred_thousand_messages_with_two_hundred_branches(tab: ChatPage, live_product: Any) -> None:
    """Each step costs a bounded number of requests and bytes, and the page never holds more than it has to.

    How long a person waits for each is printed, and not asserted.
    """
    job = {"user": live_product.user_id, "title": "Very long", "count": 100_000, "branches": 200}
    key = live_product.hand.call(f"{TREES}:seed_large", job)
    sizes: list[tuple[str, int]] = []

    def note(request: Request) -> None:
        response = request.response()
        if "/api/" in request.url and response:
            sizes.append((request.url.rpartition("/api/v1")[2], len(response.body())))

    tab.page.on("requestfinished", note)

    def reads() -> list[tuple[str, int]]:
        """Requests for messages, searches and forks since the last call."""
        tab.page.wait_for_timeout(150)  # requests that nothing waits for count as well
        found = [
            (path, size) for path, size in sizes if any(word in path for word in ("/messages", "/search", "/fork"))
        ]
        sizes.clear()
        assert all(size < 40_000 for _, size in found), found
        return found

    watch = Watch()
    tab.open(f"/c/{key}")
    expect(tab.messages).to_have_count(50)
    watch.lap("open")
    assert len(reads()) <= 1  # the first page came with the document; the line asks once more
    for _ in range(14):
        scroll_back(tab, watch)
        assert tab.messages.count() <= 650
    assert len(reads()) <= 16
    watch.start()
    search(tab.page, "marmalade")
    expect(tab.page.locator("#hits .hit")).to_have_count(20)
    watch.lap("search, from the first key")
    assert len(reads()) == 1
    search(tab.page, "zucchini 7")
    expect(tab.page.locator("#hits .hit").first).to_contain_text("Version 7 tells")
    watch.start()
    tab.page.locator("#hits .hit a").first.click()
    expect(tab.page.locator(".is-found")).to_have_attribute("data-id", "b7")
    watch.lap("open a hit in another branch")
    expect(tab.page.locator('[data-id="b7"] .sibling-count')).to_have_text("2 / 2")
    assert len(reads()) <= 6
    tab.page.locator('[data-id="b7"]').get_by_role("button", name="Previous version").click()
    expect(tab.page.locator('[data-id="p3503"]')).to_be_visible()
    reads()
    tab.open(f"/c/{key}?at=b7")
    watch.start()
    choose_more(tab, tab.page.locator('[data-id="b7"]'), "Fork from here")
    expect(tab.page.locator("#place")).to_contain_text("Forked from")
    expect(tab.messages.last).to_have_attribute("data-id", "b7")
    watch.lap("fork and open the fork")
    sys.stdout.write(watch.report())
    assert tab.messages.count() <= 150
    assert len([path for path, _ in reads() if path.endswith("/fork")]) == 1
