"""The agent's to-do list above the message field: it moves while the agent works, and goes back with an undo."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import look

LONG = (
    "Look at every place in the whole repository where a file is opened, and close it on every way out of the function"
)


def writes(*statuses: str) -> str:
    names = ["Read the failing test", LONG, "Write the change", "Tell what was done"]
    todos = [
        {"content": name, "status": status, "priority": "high" if name == LONG else "medium"}
        for name, status in zip(names, statuses, strict=True)
    ]
    return f"call tool todo_write {json.dumps({'todos': todos})}\n"


@pytest.mark.smoke
def test_the_list_moves_with_the_work_and_back_with_an_undo(keeper: ChatPage) -> None:
    keeper.ask(writes("completed", "in_progress", "pending", "cancelled") + "say: Begun.")
    bar = keeper.page.get_by_role("region", name="To-do list")
    summary = bar.locator("summary")
    expect(summary).to_have_text(f"1 of 3 done{LONG}")
    look(keeper, "todos-closed")
    summary.click()
    expect(bar.get_by_role("listitem")).to_have_text(
        [
            "Done:Read the failing test",
            f"In progress:{LONG}urgent",
            "To do:Write the change",
            "Cancelled:Tell what was done",
        ]
    )
    check(keeper.page)
    look(keeper, "todos-open")
    keeper.ask(writes("completed", "completed", "in_progress", "cancelled") + "say: Further.")
    expect(bar.locator(".todo-count")).to_have_text("2 of 3 done")
    keeper.page.reload()
    expect(bar.locator(".todo-count")).to_have_text("2 of 3 done")
    keeper.input.fill("/undo")
    keeper.input.press("Enter")
    keeper.page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
    expect(bar.locator(".todo-count")).to_have_text("1 of 3 done")
    keeper.input.fill("")
    keeper.ask(writes("completed", "completed", "completed", "cancelled") + "say: Done.")
    expect(bar).to_have_count(0)  # nothing is left to do


def test_commands_are_offered_and_sent(keeper: ChatPage) -> None:
    keeper.input.fill("/")
    offered = keeper.page.locator("#commands button")
    expect(offered.first).to_have_text("/filesList the files of a folder")
    expect(offered).to_have_count(6)
    look(keeper, "commands")
    keeper.input.fill("/loo")
    keeper.input.press("Enter")
    expect(keeper.input).to_have_value("/look ")
    keeper.input.fill("/look /")
    keeper.input.press("Enter")
    expect(keeper.answers.last).to_contain_text("Found")
    expect(keeper.page.locator(".message.is-user").last).to_contain_text("Look `ls /` (its output is below)")
    keeper.input.press("ArrowUp")
    expect(keeper.input).to_have_value("/look /")  # what was written is edited, and runs again
    keeper.input.press("Escape")
    keeper.input.fill("/title Folders, looked into")
    keeper.input.press("Enter")
    expect(keeper.page.locator("#title")).to_have_text("Folders, looked into")
    look(keeper, "commands-title")
