"""Projects: conversations are grouped by menu, keys, dragging and the bar; models read what these have in common."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import look


def group(tab: ChatPage, name: str) -> Locator:
    return tab.page.locator(".project", has=tab.page.get_by_role("button", name=name, exact=True))


def row(place: Locator, title: str) -> Locator:
    return place.locator(".row", has_text=title)


def make_project(tab: ChatPage, name: str, *, instructions: str = "", file: Path | None = None) -> None:
    page = tab.page
    page.get_by_role("button", name="New project").click()
    dialog = page.get_by_role("dialog", name="New project")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_text("Green", exact=True).locator("..").click()
    dialog.get_by_label("Instructions").fill(instructions)
    if file is not None:
        dialog.get_by_label("Add files").set_input_files(file)
        expect(dialog.get_by_text(file.name)).to_be_visible()
        check(page)
        look(tab, "project-dialog")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()


@pytest.mark.smoke
def test_conversations_are_grouped_moved_and_begun_in_a_project(
    tab: ChatPage, open_tab: Callable[..., ChatPage], tmp_path: Path
) -> None:
    page = tab.page
    for name in ("Alpha", "Beta"):
        tab.open("/c/new")
        tab.ask(f"{name}\nsay: a.")
    plan = tmp_path / "plan.md"
    plan.write_text("Roses by the wall.")
    other = open_tab(page.url.removeprefix(tab.base_url), context=page.context)
    elsewhere = open_tab(page.url.removeprefix(tab.base_url))  # another browser of the same person's
    expect(elsewhere.page.locator(".project")).to_have_count(0)
    make_project(tab, "Garden", instructions="Metric units.", file=plan)
    garden = group(tab, "Garden")
    expect(garden.get_by_text("Nothing is in here yet.")).to_be_visible()
    group(other, "Garden").get_by_role("button", name="Garden", exact=True).click()
    expect(group(elsewhere, "Garden")).to_be_visible()  # the first one that there is, without a reload
    elsewhere.page.close()

    page.get_by_role("button", name="More for “Alpha”").click()
    page.get_by_role("menuitem", name="Move to project…").click()
    dialog = page.get_by_role("dialog", name="Move the conversation")
    expect(dialog.get_by_role("button", name="Move")).to_be_disabled()
    dialog.get_by_label("Garden").check()
    check(page)
    look(tab, "project-move")
    dialog.get_by_role("button", name="Move").click()
    expect(row(garden, "Alpha")).to_be_visible()
    expect(page.locator("#conversations .row")).to_have_count(2)
    notice = page.locator(".notice", has_text="Moved to")
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)  # the next one is of the next move

    page.locator(".notice", has_text="Moved to").get_by_role("button", name="Dismiss").click()  # the next one is Beta's
    page.get_by_role("link", name="Beta").drag_to(garden.get_by_role("button", name="Garden", exact=True))
    expect(row(garden, "Beta")).to_be_visible()
    expect(row(group(other, "Garden"), "Beta")).to_be_visible()
    notice.get_by_role("button", name="Undo").click()
    expect(row(garden, "Beta")).to_have_count(0)
    expect(row(group(other, "Garden"), "Beta")).to_have_count(0)
    other.page.close()

    page.get_by_role("link", name="Beta").focus()
    page.keyboard.press("x")
    page.get_by_role("toolbar", name="Selected").get_by_role("button", name="Move the selected to a project…").click()
    dialog.get_by_label("Garden").check()
    dialog.get_by_role("button", name="Move").click()
    expect(row(garden, "Beta")).to_be_visible()
    check(page)
    look(tab, "project-groups")
    folded = garden.get_by_role("button", name="Garden", exact=True)
    folded.press("Enter")
    expect(folded).to_have_attribute("aria-expanded", "false")
    expect(row(garden, "Beta")).to_have_count(0)
    tab.open("/c/new")
    expect(folded).to_have_attribute("aria-expanded", "false")  # the browser remembers it
    folded.click()
    expect(garden.locator(".row")).to_have_count(2)


@pytest.mark.smoke
def test_a_conversation_in_a_project_reads_its_instructions_and_files_until_it_is_deleted(
    tab: ChatPage, tmp_path: Path
) -> None:
    page = tab.page
    plan = tmp_path / "plan.md"
    plan.write_text("Roses by the wall.")
    make_project(tab, "Garden", instructions="Metric units.", file=plan)
    garden = group(tab, "Garden")
    garden.get_by_role("link", name="New conversation in “Garden”").click()
    expect(page).to_have_url(re.compile(r"/c/new\?.*project=prj_"))
    tab.open(page.url.removeprefix(tab.base_url))  # a reload begins it in the project, too
    expect(page.locator("#project-chip")).to_contain_text("Garden")
    answer = tab.ask('Gamma\ncall tool read_project_file {"path": "/plan.md"}\nsay: {result}')
    expect(answer).to_contain_text("Roses by the wall.")
    expect(row(garden, "Gamma")).to_be_visible()
    tab.open(page.url.removeprefix(tab.base_url) + "?panel=context")
    piece = page.locator(".context-piece[data-key=project]")
    piece.locator("summary").click()
    expect(piece).to_contain_text("Metric units.")
    check(page)
    look(tab, "project-context")

    page.locator("#project-chip").click()
    dialog = page.get_by_role("dialog", name="Edit project")
    dialog.get_by_label("Name", exact=True).fill("Allotment")
    expect(dialog.get_by_role("link", name="plan.md")).to_be_visible()
    dialog.get_by_role("button", name="Take /plan.md out").click()
    dialog.get_by_label("Instructions").fill("word " * 2_000)
    expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
    dialog.get_by_label("Instructions").fill("Imperial units.")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("#project-chip")).to_contain_text("Allotment")
    page.locator("#project-chip").click()
    expect(dialog.get_by_label("Instructions")).to_have_value("Imperial units.")
    expect(dialog.get_by_role("link", name="plan.md")).to_have_count(0)
    dialog.get_by_role("button", name="Delete project…").click()
    page.get_by_role("dialog", name="Delete “Allotment”?").get_by_role("button", name="Delete").click()
    expect(page.locator(".project")).to_have_count(0)
    expect(page.locator("#project-chip")).to_have_count(0)
    expect(row(page.locator("#conversations"), "Gamma")).to_be_visible()
