"""Several people in one conversation, each in a browser profile of their own."""

from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]


@pytest.fixture
def another(new_context: Callable[..., BrowserContext], live_product: LiveProduct) -> Callable[[], BrowserContext]:
    """Make a browser profile of a further person."""

    def make() -> BrowserContext:
        context = new_context()
        context.clear_cookies()
        context.add_cookies(live_product.sign_in())  # type: ignore[arg-type]  # as `new_context` does
        return context

    return make


def name_on(page: Page) -> str:
    """The name of the person whose page it is."""
    name: str = page.evaluate("JSON.parse(document.getElementById('boot').textContent).user")
    return name


def share(tab: ChatPage) -> None:
    tab.page.locator("#share").click()
    expect(tab.page.get_by_role("heading", name="People in this conversation")).to_be_visible()


@pytest.mark.smoke
def test_two_hold_one_conversation_and_a_third_sees_nothing(
    open_tab: OpenTab, another: Callable[[], BrowserContext]
) -> None:
    hers = open_tab("/c/new?agent=desk")
    his = open_tab("/c/new", another())
    bob = name_on(his.page)
    hers.write("say: Hello.")
    expect(hers.answers.last).to_contain_text("Hello.")
    expect(hers.page.locator(".person-mark")).to_have_count(0)  # she is alone
    path = hers.page.url.removeprefix(hers.base_url)

    share(hers)
    dialog = hers.page.get_by_role("dialog")
    dialog.get_by_label("Role of who opens the link").select_option("approver")
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_label("Link", exact=True).input_value()
    expect(dialog.get_by_role("list", name="Open invitations").get_by_role("listitem")).to_have_count(1)
    check(hers.page)
    look(hers, "people-share")
    his.page.goto(link)
    look_at_join(his)
    his.page.get_by_role("button", name="Join").click()
    his.page.wait_for_url(f"**{path}")
    expect(his.answers.last).to_contain_text("Hello.")
    expect(dialog.get_by_role("list", name="People").get_by_role("listitem")).to_have_count(2)  # as it happens
    expect(dialog.get_by_role("list", name="People")).to_contain_text("here now")
    look(hers, "people-two")
    dialog.get_by_role("button", name="Close").click()

    his.input.press_sequentially("Rent")
    expect(hers.page.locator("#typing")).to_have_text(f"{bob} is writing…")
    look(hers, "people-typing")
    his.write('Rent\ncall tool pay {"amount": 5}\nsay: It says {result}.')
    question = hers.page.locator(".question")
    expect(question).to_have_count(1, timeout=40_000)
    expect(question).to_contain_text(f"Can be decided by: You, {bob}")
    expect(hers.page.locator(".message.is-user .message-head").last).to_have_text(f"{bob[:2].upper()}{bob}")
    expect(his.page.locator(".message.is-user .message-head").last).to_contain_text("You")
    check(hers.page)
    look(hers, "people-question")
    question.get_by_role("button", name="Allow once").click()
    expect(his.answers.last).to_contain_text("It says")
    expect(hers.answers.last).to_contain_text("It says")
    look(his, "people-member")
    follow_what_is_shared(hers, his, path)

    stranger = open_tab("/c/new", another())
    reply = stranger.page.request.get(f"{stranger.base_url}{path}")
    assert reply.status == 404
    assert stranger.page.request.get(link).status == 200  # as for every secret
    stranger.page.goto(link)
    stranger.page.get_by_role("button", name="Join").click()
    expect(stranger.page.get_by_role("alert")).to_contain_text("This invitation is not valid")
    expect(stranger.page.locator("#conversations .row")).to_have_count(0)
    stranger.errors.clear()  # the browser notes the refusal


def follow_what_is_shared(hers: ChatPage, his: ChatPage, path: str) -> None:
    """What a member has besides the messages: files, exports, the line in the list, and search."""
    his.page.locator("#panel-toggle").click()
    panel = his.page.get_by_role("complementary")
    expect(panel.get_by_role("tab")).to_have_text(["Files"])  # the rest is the owner's
    expect(panel).to_contain_text("No files yet.")
    look(his, "people-member-files")
    panel.get_by_role("button", name="Close the panel").click()
    his.page.locator("#conversation-more").click()
    expect(his.page.get_by_role("menuitem", name="Export")).to_be_visible()
    his.page.keyboard.press("Escape")

    his.open("/c/new")
    line = his.page.locator("#conversations .row").filter(has=his.page.locator(f"a[href$='{path}']"))
    hers.write('Again\ncall tool pay {"amount": 6}')
    expect(hers.page.locator(".question")).to_have_count(1, timeout=40_000)
    expect(line.locator(".mark.is-waiting")).to_be_visible()  # also of what is not open
    his.open("/approvals")
    asked = his.page.locator(".approval")
    expect(asked).to_have_count(1)
    look(his, "people-member-approvals")
    asked.get_by_role("button", name="Allow once").click()
    expect(hers.page.locator(".question")).to_have_count(0, timeout=40_000)


def look_at_join(tab: ChatPage) -> None:
    expect(tab.page.get_by_role("heading", name="You are invited")).to_be_visible()
    check(tab.page)


def test_a_role_that_is_changed_or_ended_counts_at_once(
    open_tab: OpenTab, another: Callable[[], BrowserContext]
) -> None:
    hers = open_tab("/c/new?agent=desk")
    his = open_tab("/c/new", another())
    bob = name_on(his.page)
    hers.write("say: Hello.")
    expect(hers.answers.last).to_contain_text("Hello.")
    path = hers.page.url.removeprefix(hers.base_url)
    share(hers)
    dialog = hers.page.get_by_role("dialog")
    dialog.get_by_label("Name of a person").fill(bob)
    dialog.get_by_label("Role", exact=True).select_option("reader")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("list", name="People").get_by_role("listitem")).to_have_count(2)
    his.open(path)
    expect(his.page.locator("#read-only")).to_contain_text("Its owner decides who writes")
    look(his, "people-reader")
    dialog.get_by_label(f"Role of {bob}").select_option("writer")
    expect(his.input).to_be_visible()
    dialog.get_by_role("button", name=f"Remove {bob}").click()
    expect(dialog.get_by_role("list", name="People").get_by_role("listitem")).to_have_count(1)
    expect(his.page.locator("#connection")).to_be_visible()
    assert his.page.request.get(f"{his.base_url}{path}").status == 404
    his.errors.clear()
