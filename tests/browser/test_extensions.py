"""Extensions on the page: a model writes one, a person allows it and looks after it (A8, C5)."""

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look
from tests.browser.test_panel import check_both, panel, toggle

OpenTab = Callable[..., ChatPage]
SOURCE = """\
({
  tools: {
    double: {
      description: "Double a number.",
      parameters: { n: { type: "number" } },
      required: ["n"],
      execute: async ({ n }, host) => {
        await host.writeFile("/doubled.txt", String(n * 2));
        return { doubled: n * 2 };
      },
    },
  },
})"""
MANIFEST = {"name": "halver", "version": "1.0.0", "description": "Halves numbers."}
HALVER = (
    '({ tools: { half: { description: "Halve.", parameters: { n: { type: "number" } }, execute: ({ n }) => n / 2 } } })'
)


def tools(tab: ChatPage) -> Locator:
    if not panel(tab).is_visible():
        toggle(tab).click()
    tab.page.get_by_role("tab", name="Tools").click()
    return tab.page.get_by_role("tabpanel", name="Tools")


def part(tab: ChatPage, name: str) -> Locator:
    return panel(tab).locator("details.context-piece", has=tab.page.locator("summary", has_text=name))


def load(**more: object) -> str:
    arguments = {"name": "doubler", "description": "Doubles numbers.", "source": SOURCE, **more}
    return f"call tool load_extension {json.dumps(arguments)}\nsay: Loaded it."


@pytest.mark.smoke
def test_model_writes_an_extension_a_person_allows_it_and_the_next_turn_uses_it(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=tinkerer")
    tab.write(load(workspace_access="read-write", network=["api.example.org"]))
    card = tab.page.locator(".question")
    expect(card).to_contain_text("Files: reads, changes and deletes.")
    expect(card).to_contain_text("Network: sends data to api.example.org.")
    look(tab, "extension-asked")
    card.get_by_role("button", name="Allow").click()
    expect(tab.answers.last).to_contain_text("Loaded it.")
    tab.rest()
    shown = tools(tab)
    shown.get_by_role("button", name="doubler").click()
    expect(shown).to_contain_text("Files: reads, changes and deletes.")
    expect(shown).to_contain_text("doubler_double")
    look(tab, "extension")
    tab.ask('call tool doubler_double {"n": 21}\nsay: {result}')
    expect(tab.answers.last.locator(".md").last).to_contain_text("42")
    part(tab, "Calls made").locator("summary").click()
    expect(part(tab, "Calls made")).to_contain_text("/doubled.txt")
