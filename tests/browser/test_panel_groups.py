"""Around a conversation: groups of the panel, files in one list, the welcome, permissions, search, a sign-out."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage, id_of
from tests.browser.live_product import LiveProduct
from tests.browser.looks import SCHEMES, look
from tests.browser.parts import said, text
from tests.browser.side_panel import panel, show_view, toggle, tools

OpenTab = Callable[..., ChatPage]
WIDTHS = (1440, 820, 390, 320)
ASKING = {
    "name": "walker",
    "version": "1.0.0",
    "permissions": {"workspace": "read-write", "network": ["api.example.org"]},
}
WALKER = '({ tools: { go: { description: "Go.", execute: () => 1 } } })'


def look_wide(tab: ChatPage, name: str) -> None:
    """See the state at four widths, light and dark; pictures are drawn when asked."""
    folder = os.environ.get("SHOTS")
    for width in WIDTHS:
        tab.page.set_viewport_size({"width": width, "height": 860})
        assert tab.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth"), (name, width)
        for scheme in SCHEMES if folder else ():
            tab.page.emulate_media(color_scheme=scheme)
            tab.page.wait_for_timeout(120)  # colours pass into each other; only pictures need it
            tab.page.screenshot(path=str(Path(str(folder)) / f"{name}-{width}-{scheme}.png"))
    tab.page.emulate_media(color_scheme="light")
    tab.page.set_viewport_size({"width": 1280, "height": 860})


@pytest.mark.smoke
def test_the_panel_has_three_groups_and_files_of_messages_beside_the_workspace(tab: ChatPage, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Tea at five.")
    (tmp_path / "film.mp4").write_bytes(b"\0" * 10)
    page = tab.page
    page.get_by_text("What this agent can use").click()
    expect(page.locator(".offers")).to_contain_text("What it may touch")
    expect(page.locator(".offers")).to_contain_text("It reads and changes the files of its workspace")
    look_wide(tab, "groups-welcome")
    chooser = page.locator("#composer input[type=file]")
    chooser.set_input_files([tmp_path / "film.mp4", tmp_path / "notes.txt"])
    expect(page.locator("#composer-note")).to_have_text("“film.mp4” can’t be attached: videos can’t be read here.")
    expect(page.locator("#composer")).to_contain_text("notes.txt")
    tab.ask("say: Seen.")
    toggle(tab).click()
    tabs = panel(tab).get_by_role("tablist").first.get_by_role("tab")
    expect(tabs).to_have_text(["Files", "Work", "About"])
    expect(panel(tab).get_by_role("tab", name="Context")).to_have_attribute("aria-selected", "true")
    show_view(tab, "Schedules")
    show_view(tab, "Files")
    sent = panel(tab).locator(".sent-files")
    expect(sent.get_by_role("heading", name="From your messages")).to_be_visible()
    expect(sent.get_by_role("link", name="notes.txt")).to_be_visible()
    expect(panel(tab)).to_contain_text("No files yet.")
    sent.get_by_role("button", name="Copy notes.txt to the workspace").click()
    expect(panel(tab).get_by_role("treeitem", name="notes.txt")).to_be_visible()
    sent.get_by_role("button", name="Copy notes.txt to the workspace").click()
    expect(panel(tab).get_by_role("treeitem", name="notes (2).txt")).to_be_visible()
    check(page)
    look_wide(tab, "groups-files")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 860})
        tops = [box["y"] for each in tabs.all() if (box := each.bounding_box())]
        assert len(set(tops)) == 1, (width, tops)  # one row
    page.set_viewport_size({"width": 1280, "height": 860})
    show_view(tab, "Background")
    show_view(tab, "Memory")
    panel(tab).get_by_role("tab", name="Work").click()
    expect(panel(tab).get_by_role("tab", name="Background")).to_have_attribute(
        "aria-selected", "true"
    )  # as it was left
    tab.open(f"/c/{id_of(tab)}?panel=overview")
    expect(panel(tab).get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")
    look_wide(tab, "groups-about")


def test_what_an_extension_asks_for_is_granted_one_by_one(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    shown = tools(tab)
    shown.get_by_role("button", name="Load an extension").click()
    shown.get_by_label("Manifest", exact=True).fill("{")
    expect(shown).to_contain_text("as soon as the manifest can be read")
    shown.get_by_label("Manifest", exact=True).fill(json.dumps(ASKING, indent=2))
    shown.get_by_label("Source", exact=True).fill(WALKER)
    asked = shown.get_by_role("group", name="It asks for this. What may it do?")
    expect(asked.get_by_role("switch")).to_have_count(3)
    asked.get_by_role("switch", name="Send data to api.example.org").uncheck()
    asked.get_by_role("switch", name="Change and delete files").uncheck()
    check(tab.page)
    look_wide(tab, "groups-extension")
    shown.get_by_role("button", name="Load", exact=True).click()
    expect(shown.locator(".tools-words li").first).to_have_text("Files: reads.", timeout=30_000)
    expect(shown.locator(".tools-words")).not_to_contain_text("api.example.org")


def test_a_search_is_narrowed_and_leads_to_its_first_hit(tab: ChatPage, live_product: LiveProduct) -> None:
    first = live_product.seed(
        "Jam", [said("u1", "user", text("plum jam")), said("a1", "assistant", text("plum it is"))]
    )
    live_product.seed("Pie", [said("u2", "user", text("plum pie"))])
    tab.open("/c/new")
    page = tab.page
    page.locator("#search").fill("plum")
    groups = page.locator("#hits .hit-group")
    expect(groups).to_have_count(2)
    expect(groups.locator("h3").filter(has_text="Jam")).to_have_count(1)
    expect(page.locator("#hits .hit")).to_have_count(3)
    look(tab, "groups-search")
    page.get_by_role("combobox", name="Who").select_option("From the agent")
    expect(page.locator("#hits .hit")).to_have_count(1)
    expect(groups.locator("h3")).to_have_text(["Jam"])
    page.get_by_role("combobox", name="When").select_option("Last 7 days")
    expect(page.locator("#hits .hit")).to_have_count(1)
    check(page)
    tab.settle()
    page.locator("#search").press("Enter")
    expect(page.locator("#title")).to_have_text("Jam")
    assert id_of(tab) == first


def test_a_message_of_someone_signed_out_is_kept_and_sent_after_the_sign_in(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    page = tab.page
    cookies = page.context.cookies()
    page.context.clear_cookies()
    tab.write("say: Kept.")
    bar = page.locator("#connection")
    expect(bar).to_contain_text("signed out")
    look(tab, "groups-signed-out")
    bar.get_by_role("button", name="Sign in again").click()
    expect(page.locator("#id_username")).to_be_visible()
    assert "next=/c/" in page.url
    page.context.add_cookies(cookies)  # type: ignore[arg-type]  # plain dicts, as the driver gives them back
    page.goto(tab.base_url + page.url.split("next=")[1].split("&")[0])
    expect(tab.answers.last).to_contain_text("Kept.", timeout=30_000)
    expect(tab.messages).to_have_count(4)
