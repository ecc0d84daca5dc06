"""The page of all calls that wait for a decision, and the marks that lead to it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.product import wait_for
from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


def cards(page: Page) -> Locator:
    """The calls that are shown."""
    return page.locator("[data-call]")


def count(page: Page) -> Locator:
    """How many wait, in the list."""
    return page.locator("#approvals-link .count")


def ask_to_pay(tab: ChatPage, title: str, *amounts: int) -> None:
    """Begin a conversation whose answer waits for consent to pay."""
    tab.open("/c/new?agent=desk")
    calls = "\n".join(f'call tool pay {{"amount": {amount}}}' for amount in amounts)
    tab.write(f"{title}\n{calls}\nsay: Thank you.")
    expect(tab.page.locator(".question")).to_have_count(len(amounts), timeout=20_000)


@pytest.mark.smoke
def test_all_are_decided_one_after_the_other(tab: ChatPage, open_tab: OpenTab) -> None:
    page = tab.page
    ask_to_pay(tab, "Rent", 12)
    ask_to_pay(tab, "Bills", 1, 2)
    expect(count(page)).to_contain_text("3")
    row = page.locator("#conversations .row", has_text="Bills")
    expect(row.locator(".mark.is-waiting")).to_have_text("22 approvals waiting")
    page.locator("#approvals-link").click()
    expect(page).to_have_url(f"{tab.base_url}/approvals")
    expect(page).to_have_title("(3) Approvals · Think")
    expect(page.get_by_role("heading", name="Approvals", level=1)).to_be_focused()
    expect(cards(page)).to_have_count(3)
    expect(page.locator(".approvals-group h2")).to_have_text(["Bills", "Rent"])
    check(page)
    look(tab, "approvals")
    cards(page).nth(0).get_by_role("button", name="Allow once").press("Enter")
    expect(cards(page)).to_have_count(2)
    expect(cards(page).nth(0).get_by_role("button").first).to_be_focused()
    assert "Allowed." in tab.spoken()
    decided = page.get_by_role("region", name="Decided just now").get_by_role("listitem")
    expect(decided).to_have_text(re.compile(r"Allowed once.*Pay \d\?"))
    cards(page).nth(0).get_by_role("button", name="Allow once").press("Enter")
    expect(cards(page)).to_have_count(1)
    cards(page).nth(0).get_by_role("button", name="Decline").press("Enter")
    expect(page.get_by_role("heading", name="Nothing needs your approval")).to_be_visible()
    expect(page.get_by_role("heading", name="Approvals", level=1)).to_be_focused()
    assert "Declined." in tab.spoken()
    expect(decided).to_have_count(3)
    expect(decided.last).to_contain_text("Declined")
    check(page)
    look(tab, "approvals-none")
    page.locator("#conversations").get_by_role("link", name="Bills").click()
    expect(tab.answers.last).to_contain_text("Thank you.")
    expect(page.locator("#approvals-link")).to_have_count(0)


def test_a_question_that_lasts_is_decided_after_the_conversation_has_gone_on(tab: ChatPage, tmp_path: Path) -> None:
    paper = tmp_path / "paper"
    tab.open("/c/new?agent=notary")
    tab.write(f'call tool seal {{"path": "{paper}"}}\nsay: It says {{result}}.')
    question = tab.page.locator(".question")
    expect(question).to_have_count(1, timeout=20_000)
    tab.write("say: Something else.")
    expect(tab.answers.last).to_contain_text("Something else.", timeout=20_000)
    expect(question).to_have_count(1)
    expect(count(tab.page)).to_contain_text("1")
    assert not paper.exists()
    question.get_by_role("button", name="Allow once").click()
    expect(question).to_have_count(0)
    expect(tab.answers).to_have_count(3, timeout=20_000)
    expect(tab.page.locator("#approvals-link")).to_have_count(0)
    wait_for(paper.exists, what="the effect")
    assert len(paper.read_text(encoding="utf-8").splitlines()) == 1


def test_page_is_embedded_and_leads_to_the_message(tab: ChatPage) -> None:
    ask_to_pay(tab, "Rent", 12)
    tab.page.route("**/api/v1/approvals*", lambda route: route.abort())
    tab.open("/approvals")
    expect(cards(tab.page)).to_have_count(1)
    cards(tab.page).get_by_role("link", name="Open in conversation").click()
    expect(tab.page.locator(".message.is-found .question")).to_be_visible()
    tab.page.go_back()
    expect(cards(tab.page)).to_have_count(1)


def test_arguments_are_changed_before_they_are_allowed(tab: ChatPage) -> None:
    tab.open("/c/new?agent=clerk")
    tab.write('Parcel\ncall tool refund {"order_number": "A-1", "amount": 5}\nsay: Refunded.')
    expect(tab.page.locator(".question")).to_be_visible(timeout=20_000)
    tab.open("/approvals")
    expect(cards(tab.page)).to_contain_text("Refund 5.00 euros for order A-1?")
    assert "FOR MODELS ONLY" not in cards(tab.page).inner_text()
    cards(tab.page).get_by_role("button", name="Edit").click()
    expect(cards(tab.page)).not_to_contain_text("Refund 5.00 euros")  # it speaks of what is being changed
    tab.page.get_by_label("Amount").fill("4")
    check(tab.page)
    look(tab, "approvals-edit")
    cards(tab.page).get_by_role("button", name="Allow with these changes").click()
    expect(cards(tab.page)).to_have_count(0)
    tab.page.locator("#conversations").get_by_role("link", name="Parcel").click()
    expect(tab.answers.last).to_contain_text("Refunded.")
    tab.page.locator(".tool-call summary").first.click()
    expect(tab.page.locator("#messages")).to_contain_text("refunded 4 for A-1")


def test_what_another_tab_decides_leaves_and_a_late_decision_says_so(tab: ChatPage, open_tab: OpenTab) -> None:
    ask_to_pay(tab, "Rent", 12)
    address = tab.page.url
    tab.open("/approvals")
    other = open_tab(address.removeprefix(tab.base_url), context=tab.page.context)
    other.page.get_by_role("button", name="Decline").click()
    other.rest()
    tab.page.bring_to_front()
    cards(tab.page).get_by_role("button", name="Allow once").click()
    expect(tab.page.locator("#notices")).to_contain_text("Someone already decided this")
    expect(cards(tab.page)).to_have_count(0)
    expect(tab.page.get_by_role("heading", name="Approvals", level=1)).to_be_focused()


def test_loading_and_failing_are_said(tab: ChatPage) -> None:
    ask_to_pay(tab, "Rent", 12)
    tab.open("/c/new")  # how many wait is embedded, and no more of them
    expect(count(tab.page)).to_be_visible()
    waiting = tab.hold("**/api/v1/approvals*")
    tab.page.locator("#approvals-link").click()
    expect(tab.page.locator("#main .skeleton")).to_contain_text("Loading…")
    check(tab.page)
    look(tab, "approvals-loading")
    tab.until(lambda: waiting)
    for route in waiting:
        route.fulfill(status=500, json={"detail": "Not now."})
    expect(tab.page.get_by_role("alert")).to_contain_text("Approvals couldn’t be loaded.")
    check(tab.page)
    look(tab, "approvals-failed")
    tab.page.unroute("**/api/v1/approvals*")
    tab.page.get_by_role("button", name="Try again").click()
    expect(cards(tab.page)).to_have_count(1)


def test_two_hundred_are_read_by_pages(tab: ChatPage, live_product: LiveProduct) -> None:
    keys = []
    for title in ("Bills", "Rent"):
        tab.open("/c/new?agent=desk")
        tab.ask(f"{title}\nsay: Well.")
        keys.append(tab.page.url.rpartition("/c/")[2])
    live_product.call("ask_often", keys, 200)
    tab.open("/approvals")
    expect(count(tab.page)).to_contain_text("200")
    for shown in (50, 100, 150):
        expect(cards(tab.page)).to_have_count(shown)
        tab.page.get_by_role("button", name="Show more").click()
    expect(cards(tab.page)).to_have_count(200)
    expect(tab.page.get_by_role("button", name="Show more")).to_be_hidden()
    expect(tab.page.locator(".approvals-group")).to_have_count(2)
    look(tab, "approvals-many")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone_decides(open_tab: OpenTab, scheme: str) -> None:
    phone = open_tab(shape=PHONE, color_scheme=scheme)
    ask_to_pay(phone, "Rent", 12)
    phone.page.get_by_role("link", name="All conversations").click()
    check(phone.page)
    phone.page.locator("#approvals-link").click()
    expect(phone.page.locator(".sidebar")).to_be_hidden()
    expect(phone.page.get_by_role("heading", name="Approvals", level=1)).to_be_focused()  # its view has been loaded
    check(phone.page)
    assert phone.page.evaluate("document.scrollingElement.scrollWidth") == 390
    cards(phone.page).get_by_role("button", name="Allow once").click()
    expect(phone.page.get_by_role("heading", name="Nothing needs your approval")).to_be_visible()
    phone.page.get_by_role("link", name="All conversations").click()
    expect(phone.page.locator(".sidebar")).to_be_visible()
