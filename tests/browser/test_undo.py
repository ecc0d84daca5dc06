"""An answer's work on files is reviewed, undone and redone; what the person changed is never overwritten silently."""

import json

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.files_panel import Files
from tests.browser.looks import look

LONG = "/src/a rather long name of a file that does not fit into the panel beside a conversation.py"


def writes(*files: tuple[str, str]) -> str:
    calls = [f"call tool write {json.dumps({'path': path, 'content': text})}" for path, text in files]
    return "\n".join([*calls, "say: Written."])


def dialog_of(tab: ChatPage) -> Locator:
    return tab.page.get_by_role("dialog")


@pytest.mark.smoke
def test_an_undo_after_the_person_edited_the_same_file(files: Files) -> None:
    tab = files.tab
    files.put("/notes.md", "# Plan\n\nfirst\n")
    tab.open(f"/c/{files.key}")
    tab.ask(writes(("/notes.md", "# Plan\n\nthe agent's\n"), ("/new.txt", "new\n"), (LONG, "x = 1\n")))
    foot = tab.answers.last.locator(".changed-line")
    expect(foot).to_have_text("3 files changedReviewUndo…")
    look(tab, "undo-foot")
    files.put("/notes.md", "# Plan\n\nmine\n")
    foot.get_by_role("button", name="Undo").click()
    dialog = dialog_of(tab)
    expect(dialog.get_by_role("heading", name="1 file was changed since")).to_be_visible()
    expect(dialog.locator(".is-gone")).to_have_text(["-mine\n"])
    expect(dialog.locator(".is-added")).to_have_text(["+first\n"])
    dialog.get_by_text("Show the files").click()
    expect(dialog.locator(".undo-files li")).to_have_text(["/new.txt is removed", f"{LONG} is removed"])
    check(tab.page)
    look(tab, "undo-conflict")
    dialog.get_by_role("button", name="Undo", exact=True).click()
    bar = tab.page.get_by_role("region", name="Undone")
    expect(bar).to_contain_text("The messages and 2 files are taken back.")
    expect(tab.input).to_have_value(
        writes(("/notes.md", "# Plan\n\nthe agent's\n"), ("/new.txt", "new\n"), (LONG, "x = 1\n"))
    )
    expect(tab.answers).to_have_count(1)
    assert files.read("/notes.md") == "# Plan\n\nmine\n"
    assert files.read("/new.txt") is None
    check(tab.page)
    look(tab, "undo-bar")
    tab.page.reload()  # the server knows what was undone
    expect(bar).to_contain_text("The messages and 2 files are taken back.")
    bar.get_by_role("button", name="Redo").click()
    expect(bar).to_have_count(0)
    expect(tab.answers).to_have_count(2)
    assert files.read("/new.txt") == "new\n"
    assert files.read("/notes.md") == "# Plan\n\nmine\n"
    tab.input.fill("/undo")
    tab.input.press("Enter")
    dialog.get_by_label("Put back what was there").check()
    dialog.get_by_label("The messages.").uncheck()
    dialog.get_by_role("button", name="Undo", exact=True).click()
    expect(bar).to_contain_text("3 files are as they were before.")
    assert files.read("/notes.md") == "# Plan\n\nfirst\n"
    tab.input.fill("/redo")
    tab.input.press("Enter")
    expect(bar).to_have_count(0)
    assert files.read("/notes.md") == "# Plan\n\nmine\n"  # what it replaced was kept


def test_an_undo_of_nothing_and_of_much(files: Files) -> None:
    tab = files.tab
    tab.open(f"/c/{files.key}")
    tab.ask("say: Nothing written.")
    tab.input.fill("/redo")
    tab.input.press("Enter")
    expect(tab.page.get_by_text("There’s nothing to redo here.")).to_be_visible()
    tab.input.fill("/undo")
    expect(tab.page.locator("#commands")).to_contain_text("Take back the last answer")
    tab.input.press("Enter")
    expect(dialog_of(tab).get_by_role("checkbox")).to_have_count(1)
    look(tab, "undo-messages-only")
    dialog_of(tab).get_by_role("button", name="Cancel").click()
    tab.ask(writes(*((f"/many/file-{at:02}.txt", f"{at}\n") for at in range(30))))
    for at in range(0, 30, 10):
        files.put(f"/many/file-{at:02}.txt", "".join(f"line {line}\n" for line in range(60)))
    tab.answers.last.get_by_role("button", name="Undo").click()
    expect(dialog_of(tab).get_by_role("heading", name="3 files were changed since")).to_be_visible()
    dialog_of(tab).get_by_text("Show the files").click()
    look(tab, "undo-much")
