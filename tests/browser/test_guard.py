"""Text from elsewhere in a conversation: what the page tells of it, and what a person decides."""

from collections.abc import Callable

import pytest
from playwright.sync_api import FilePayload, Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

OpenTab = Callable[..., ChatPage]
LONG = "a-very-long-name-of-a-file-" * 6 + ".html"
WRITE = 'call tool write {"path": "/note.txt", "content": "x"}\nsay: Written.'
PAGE = b"<!doctype html><html><body>Dear all,</body></html>"


def attach(tab: ChatPage, name: str = "letter.html") -> None:
    """Attach a page of the web: a stranger's text, although one attaches it oneself."""
    file: FilePayload = {"name": name, "mimeType": "text/html", "buffer": PAGE}
    tab.page.locator("#file-input").set_input_files(file)
    expect(tab.page.locator("#composer-files .file-chip.is-ready", has_text=name[:20])).to_be_visible()


def bar(tab: ChatPage) -> Locator:
    return tab.page.get_by_role("region", name="Text from elsewhere")


def question(tab: ChatPage) -> Locator:
    return tab.page.get_by_role("group", name="Approve Write a file")


@pytest.mark.smoke
def test_the_page_says_which_text_made_the_agent_ask(tab: ChatPage, open_tab: OpenTab) -> None:
    expect(bar(tab)).to_have_count(0)
    attach(tab)
    tab.ask(WRITE)
    expect(question(tab)).to_contain_text("Asks because the conversation contains text from letter.html.")
    expect(bar(tab)).to_contain_text("contains text from letter.html")
    look(tab, "guard")
    check(tab.page)
    other = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    expect(bar(other)).to_contain_text("letter.html")
    bar(tab).get_by_role("link", name="letter.html").first.click()
    expect(tab.messages.first).to_be_in_viewport()
    question(tab).get_by_role("button", name="Allow once").click()
    expect(tab.answers.last).to_contain_text("Written.")

    for each in (tab, other):  # one's own attachment is no news, until a call asks because of it
        expect(bar(each)).to_have_count(0)
    tab.ask(WRITE)
    bar(tab).get_by_role("button", name="Allow for this conversation").click()
    question(tab).get_by_role("button", name="Allow once").click()
    expect(question(tab)).to_have_count(0)
    tab.rest()
    for each in (tab, other):
        expect(bar(each)).to_contain_text("You allowed actions without asking.")
    look(tab, "guard-allowed")
    tab.ask(WRITE)
    tab.rest()
    expect(question(tab)).to_have_count(0)

    bar(other).get_by_role("button", name="Ask again").click()
    expect(bar(tab)).to_have_count(0)
    tab.ask(WRITE)
    expect(question(tab)).to_be_visible()
    expect(bar(tab)).to_contain_text("so the agent asks before it changes or sends anything.")
    bar(tab).locator("summary").click()
    bar(tab).get_by_role("button", name="Allow until something new is read").click()
    expect(bar(tab)).to_contain_text("until something new is read")


def test_a_text_of_ones_own_asks_nothing(tab: ChatPage) -> None:
    own: FilePayload = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Dear all,"}
    tab.page.locator("#file-input").set_input_files(own)
    expect(tab.page.locator("#composer-files .file-chip.is-ready")).to_be_visible()
    tab.ask(WRITE)
    expect(tab.answers.last).to_contain_text("Written.")
    expect(question(tab)).to_have_count(0)
    expect(bar(tab)).to_have_count(0)


def test_long_names_and_many_texts_find_room(tab: ChatPage) -> None:
    for name in (LONG, "second.html", "third.html"):
        attach(tab, name)
    tab.ask("say: I see.")
    expect(bar(tab)).to_have_count(0)
    tab.ask(WRITE)
    expect(bar(tab)).to_contain_text("2 other places")
    bar(tab).locator("summary").click()
    expect(bar(tab).locator("li")).to_have_count(3)
    look(tab, "guard-long")
    bar(tab).get_by_role("button", name="Keep asking").click()
    expect(bar(tab).get_by_role("button", name="Keep asking")).to_have_count(0)
    expect(bar(tab)).to_contain_text("so the agent asks before it changes or sends anything.")
    expect(question(tab)).to_be_visible()
    look(tab, "guard-kept")
