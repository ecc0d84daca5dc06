"""Limits in words, what is at work over all conversations, what was used, and the price of what comes next."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage, id_of
from tests.browser.looks import look

FULL = {"detail": "You have sent 2 messages within a minute.", "code": "quota_exceeded"}
TICKER = {"prompt": "say: Tick.", "title": "Ticker", "times": {"kind": "interval", "spec": "7200"}}
_ASK = """([method, path, body]) => fetch(`/api/v1${path}`, {
    method, body: JSON.stringify(body),
    headers: {
        "content-type": "application/json",
        "x-csrftoken": document.querySelector("meta[name=csrf-token]").content,
    },
}).then((answer) => answer.ok)"""


def call(page: Page, method: str, path: str, body: object) -> None:
    """Ask the API as the person of this page."""
    assert page.evaluate(_ASK, [method, path, body])


def session_of(page: Page, instance_id: str) -> str:
    """The history that a conversation shows."""
    answer = page.request.get(f"{page.url.split('/', 3)[0]}//{page.url.split('/')[2]}/api/v1/instances/{instance_id}")
    return str(answer.json()["session_id"])


def see_budget(page: Page, planned: str) -> None:
    """Set budgets on a conversation, and see what each leaves."""
    call(page, "PUT", f"/sessions/{session_of(page, planned)}/budget", {"max_cost": "2"})
    page.reload()
    budget = page.locator(f"[data-budget={planned}]")
    expect(budget).to_contain_text(re.compile(r"\$0\.0\d+ of \$2\.00.*\$2\.00 left"))
    call(page, "PUT", f"/sessions/{session_of(page, planned)}/budget", {"max_cost": "0.0001"})
    page.reload()
    expect(budget).to_contain_text(re.compile(r"Used up: \$0\.0\d+ of \$0\.0001"))
    expect(budget).not_to_contain_text("left")


@pytest.mark.smoke
def test_a_limit_is_said_in_words_and_the_message_goes_out_by_itself(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("say: Hello.")
    data = {"retry_after_seconds": 42, "passes": True}
    page.route("**/turns", lambda route: route.fulfill(status=429, json={**FULL, "data": data}))
    tab.write("say: Later.")
    note = tab.messages.last.locator(".limit-note")
    expect(note).to_contain_text(
        re.compile(r"You have sent 2 messages within a minute\. This one goes out in 0:\d\d\.")
    )
    expect(page.get_by_text("back online")).to_have_count(0)
    expect(tab.messages.last.get_by_role("button", name="Try again")).to_have_count(0)
    expect(tab.messages.last.get_by_role("button", name="Take back")).to_be_visible()
    expect(page.locator("#notices .limit-note")).to_have_count(0)
    look(tab, "limit-of-a-message")
    check(page)
    page.route("**/instances/*/compact", lambda route: route.fulfill(status=429, json={**FULL, "data": data}))
    tab.messages.last.get_by_role("button", name="Take back").click()
    page.unroute("**/turns")
    data["retry_after_seconds"] = 2
    page.route("**/turns", lambda route: route.fulfill(status=429, json={**FULL, "data": data}), times=1)
    tab.input.press("Enter")
    expect(tab.answers.last).to_contain_text("Later.")
    page.route("**/instances/*", lambda route: route.fulfill(status=429, json={**FULL, "data": data}), times=1)
    page.locator("#conversations").get_by_role("button", name=re.compile("^More")).first.click()
    page.get_by_role("menuitem", name="Pin").click()
    expect(page.locator("#notices .limit-note")).to_contain_text("You can try again in 0:0")
    page.locator("#notices").get_by_role("link", name="Your limits").click()
    expect(page).to_have_url(f"{tab.base_url}/settings/usage")
    expect(page.get_by_role("heading", name="Your limits")).to_be_visible()


def test_a_limit_that_a_panel_meets_is_said_in_the_panel(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("say: Hello.")
    data = {"retry_after_seconds": 42, "passes": True}
    page.route("**/schedules", lambda route: route.fulfill(status=429, json={**FULL, "data": data}))
    tab.open(f"/c/{id_of(tab)}?panel=schedules")
    note = page.locator("#panel .limit-note")
    expect(note).to_contain_text(re.compile(r"within a minute\. You can try again in 0:\d\d"))
    expect(page.locator("#notices .limit-note")).to_have_count(0)
    page.unroute("**/schedules")
    page.locator("#panel").get_by_role("button", name="Try again").click()
    expect(note).to_have_count(0)
    call(page, "POST", f"/instances/{id_of(tab)}/schedules", TICKER)
    tab.ask("say: Read again.")
    expect(page.locator("#panel")).to_contain_text("Ticker")
    page.route("**/schedules", lambda route: route.fulfill(status=429, json={**FULL, "data": data}))
    tab.ask("say: And again.")
    expect(note).to_contain_text(re.compile(r"within a minute\. You can try again in 0:\d\d"))
    expect(page.locator("#panel")).to_contain_text("Ticker")  # what was there stays
    expect(page.locator("#panel .is-error")).to_have_count(0)
    expect(page.locator("#notices .limit-note")).to_have_count(0)
    look(tab, "limit-in-a-panel")


def test_work_of_all_conversations_and_what_it_used(tab: ChatPage) -> None:
    page = tab.page
    tab.open("/work")
    expect(page.get_by_role("heading", name="Nothing is at work")).to_be_visible()
    look(tab, "work-empty")
    tab.open("/c/new")
    tab.ask("say: Hello.")
    planned = id_of(tab)
    call(page, "POST", f"/instances/{planned}/schedules", TICKER)
    call(page, "PATCH", f"/instances/{planned}", {"model_choice": {"model": "openai/gpt-5"}})
    tab.open(f"/c/{planned}")
    tab.ask("say: Dear.")
    tab.input.fill("say: What does this cost?")
    expect(page.locator(".next-price")).to_have_text(re.compile(r"^about \$0\.0\d+"))
    look(tab, "next-price")
    tab.input.fill("")
    tab.write("say: Begun.\nwait 600 s\nsay: Never.")
    expect(tab.answers.last).to_contain_text("Begun.")
    page.locator("#user-menu").click()
    page.get_by_role("menuitem", name="Work").click()
    expect(page).to_have_url(f"{tab.base_url}/work")
    expect(page).to_have_title("Work · Think")
    ticker = page.locator("[data-kind=schedule]")
    expect(ticker).to_contain_text("Ticker")
    expect(ticker).to_contain_text("next run in 1 hour")
    expect(page.locator("[data-kind=turn]")).to_contain_text("Being written")
    look(tab, "work")
    check(page)
    page.get_by_role("button", name="Stop: Answer").click()
    expect(page.locator("[data-kind=turn]")).to_have_count(0)
    page.get_by_role("button", name="Pause: Ticker").click()
    expect(ticker).to_contain_text("Paused")
    page.get_by_role("button", name="Resume: Ticker").click()
    expect(ticker).to_contain_text("Active")
    page.get_by_role("button", name="Run now: Ticker").click()
    expect(ticker).to_contain_text("completed")
    ticker.get_by_role("link").click()
    expect(tab.answers.last).to_contain_text("Tick.")
    tab.open("/usage")
    expect(page).to_have_title("Usage · Settings · Think")
    spent = page.get_by_role("region", name="By model")
    expect(spent).to_contain_text("gpt-5")
    kinds = page.get_by_role("region", name="By kind")
    expect(kinds.get_by_role("row", name=re.compile("^Answers"))).to_contain_text("4")
    see_budget(page, planned)
    expect(page.locator(".usage-total")).to_contain_text(re.compile(r"\$0\.0\d+ · 4 messages"))
    page.locator(".plot summary").click()
    expect(page.locator(".plot tbody tr")).to_have_count(7)
    page.locator(".usage-periods label", has_text="Today").click()
    expect(page.get_by_role("img", name=re.compile("Cost by hour"))).to_be_visible()
    expect(page.locator("[data-limit=conversations]")).to_contain_text("1 of 10,000")
    expect(page.locator("[data-limit=turns]")).to_contain_text("of 60 this minute")
    look(tab, "usage")
    check(page)
