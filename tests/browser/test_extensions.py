"""Extensions on the page: a model writes one, a person allows it and looks after it (A8, C5)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look
from tests.browser.side_panel import check_both, panel, tools

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
    card.get_by_role("button", name="Allow once").click()
    expect(tab.answers.last).to_contain_text("Loaded it.")
    tab.rest()
    shown = tools(tab)
    shown.get_by_role("button", name="doubler").click()
    expect(shown).to_contain_text("Files: reads, changes and deletes.")
    expect(shown).to_contain_text("doubler_double")
    look(tab, "extension")
    tab.ask('call tool doubler_double {"n": 21}\nsay: {result}')
    expect(tab.answers.last.locator(".md").last).to_contain_text("42")
    part(tab, "Change permissions").locator("summary").click()
    part(tab, "Change permissions").get_by_role("checkbox", name="Change and delete files").uncheck()
    expect(shown).to_contain_text("Files: reads.")
    tab.ask('call tool doubler_double {"n": 4}\nsay: {result}')
    part(tab, "Calls made").locator("summary").first.click()
    expect(part(tab, "Calls made").locator("li")).to_have_count(2)
    expect(part(tab, "Calls made").locator("li").first).to_contain_text("Refused")
    expect(part(tab, "Calls made").locator("li").first).to_contain_text("/doubled.txt")
    look(tab, "extension-calls")
    check_both(tab)


def test_person_loads_changes_and_removes_an_extension(tab: ChatPage, tmp_path: Path) -> None:
    shown = tools(tab)  # of a conversation that has not begun: for all of the person's
    shown.get_by_role("button", name="Load an extension").click()
    manifest, source = (shown.get_by_role("textbox", name=name) for name in ("Manifest", "Source"))
    manifest.fill("{")
    source.fill("({")
    load_button = shown.get_by_role("button", name="Load", exact=True)
    load_button.click()
    expect(shown.get_by_role("alert")).to_contain_text("The manifest isn’t valid JSON")
    manifest.fill(json.dumps(MANIFEST))
    load_button.click()
    expect(shown.get_by_role("alert")).not_to_contain_text("JSON")
    expect(shown.get_by_role("alert")).not_to_be_empty()
    look(tab, "extension-refused")
    check_both(tab)
    file = tmp_path / "halver.js"
    file.write_text(HALVER)
    with tab.page.expect_file_chooser() as chooser:
        shown.get_by_role("button", name="Choose a file: Source").click()
    chooser.value.set_files(file)
    expect(source).to_have_value(HALVER)
    load_button.click()
    expect(shown.get_by_role("heading", name="halver")).to_be_visible()
    expect(shown).to_contain_text("for all of your conversations")
    shown.get_by_role("button", name="Edit").click()
    expect(shown.get_by_role("button", name="halver")).to_be_focused()  # the way back
    source.fill(HALVER.replace("Halve.", "Halve a number."))
    shown.get_by_role("button", name="Save").click()
    expect(shown).to_contain_text("Halve a number.")
    part(tab, "Versions").locator("summary").click()
    expect(part(tab, "Versions").locator(".diff")).to_contain_text("Halve a number.")
    part(tab, "Source").locator("summary").click()
    expect(part(tab, "Source").locator(".hljs-string").first).to_be_visible()
    look(tab, "extension-versions")
    check_both(tab)
    shown.get_by_role("button", name="Disable").click()
    expect(shown.get_by_role("status")).to_have_text("Disabled")
    shown.get_by_role("button", name="Remove").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(shown).to_contain_text("No extensions yet.")


def change(tab: ChatPage, **change: object) -> int:
    """Change the extension in another tab of the same person."""
    script = """async (change) => (await fetch("/api/v1/extensions/halver", {
        method: "PATCH", body: JSON.stringify(change), headers: {
            "content-type": "application/json",
            "x-csrftoken": document.querySelector('meta[name="csrf-token"]').content } })).status"""
    status: int = tab.page.evaluate(script, change)
    return status


def load_halver(tab: ChatPage) -> Locator:
    shown = tools(tab)
    shown.get_by_role("button", name="Load an extension").click()
    shown.get_by_role("textbox", name="Manifest").fill(json.dumps(MANIFEST))
    shown.get_by_role("textbox", name="Source").fill(HALVER)
    shown.get_by_role("button", name="Load", exact=True).click()
    expect(shown.get_by_role("heading", name="halver")).to_be_visible()
    return shown


def test_an_edit_that_somebody_else_was_before_compares_both_texts(tab: ChatPage) -> None:
    shown = load_halver(tab)
    shown.get_by_role("button", name="Edit").click()
    source = shown.get_by_role("textbox", name="Source")
    source.fill(HALVER.replace("Halve.", "Mine."))
    assert change(tab, source=HALVER.replace("Halve.", "Theirs.")) == 200
    shown.get_by_role("button", name="Save").click()
    expect(shown.get_by_role("heading", name="Someone else has changed this extension")).to_be_focused()
    difference = shown.get_by_role("group", name="Changes to Source")
    expect(difference.locator(".is-gone")).to_contain_text("Theirs.")
    expect(difference.locator(".is-added")).to_contain_text("Mine.")
    look(tab, "extension-conflict")
    check_both(tab)
    tab.page.keyboard.press("Escape")
    expect(source).to_have_value(HALVER.replace("Halve.", "Mine."))
    expect(shown.get_by_role("status")).to_have_text("This extension has changed since you began to edit it.")
    shown.get_by_role("button", name="Save").click()
    shown.get_by_role("button", name="Keep mine").click()
    expect(shown.locator(".tools-tools")).to_contain_text("Mine.")
    part(tab, "Versions").locator("summary").click()
    expect(part(tab, "Versions").locator("li")).to_have_count(3)


def test_a_permission_that_was_withdrawn_elsewhere_is_not_granted_again(tab: ChatPage) -> None:
    shown = load_halver(tab)
    asks = {**MANIFEST, "permissions": {"workspace": "read", "network": ["api.example.org"]}}
    assert change(tab, manifest=asks) == 200
    shown.get_by_role("button", name="All tools").click()
    shown.get_by_role("button", name="halver").click()
    shown.get_by_role("button", name="Disable").click()
    expect(shown.get_by_role("status")).to_have_text("Disabled")  # it was read again
    part(tab, "Change permissions").locator("summary").click()
    assert change(tab, permissions={"network": ["api.example.org"]}) == 200
    box = part(tab, "Change permissions").get_by_role("checkbox")
    expect(box).to_have_count(2)
    box.last.click()
    expect(shown.get_by_role("alert")).to_contain_text("has changed since it was read")
    expect(box.first).not_to_be_checked()
    expect(box.last).to_be_checked()
    box.last.click()
    expect(box.last).not_to_be_checked()
    expect(box.first).not_to_be_checked()
