"""Finding files beside a conversation, copying them, and unpacking a zip file among them."""

import io
import re
import zipfile
from typing import Any

from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.files_panel import Files
from tests.browser.looks import look


def test_files_are_found_by_a_part_of_their_name(files: Files) -> None:
    panel = files.open()
    field = panel.get_by_role("searchbox", name="Find files by name")
    field.fill("ER")
    found = panel.get_by_role("list", name="Found files").get_by_role("button")
    expect(found).to_have_text(re.compile("er.txt"))
    expect(panel.get_by_role("status")).to_have_text("1 found")
    expect(panel.get_by_role("tree")).to_have_count(0)
    check(files.tab.page)
    look(files.tab, "files-found")
    found.click()
    expect(panel.get_by_role("heading", name="/src/deep/er.txt")).to_be_visible()
    expect(panel.get_by_role("button", name="All files")).to_be_focused()
    files.tab.page.keyboard.press("Escape")
    expect(field).to_have_value("ER")
    expect(found).to_be_focused()
    field.fill("deep")
    expect(found).to_have_text(re.compile("^deep"))
    found.click()
    expect(files.row("deep, directory")).to_be_focused()
    expect(files.row("er.txt")).to_be_visible()
    field.fill("nothing has this name")
    expect(panel.get_by_role("status")).to_have_text("No file has this in its name.")
    field.press("Escape")
    expect(field).to_be_focused()
    expect(files.row("notes.md")).to_be_visible()


def test_a_search_that_fails_says_why(files: Files) -> None:
    answer = {"detail": "The files rest.", "code": "x"}
    files.tab.page.route("**/workspace/search?*", lambda route: route.fulfill(status=503, json=answer))
    panel = files.open()
    panel.get_by_role("searchbox").fill("notes")
    expect(panel.get_by_role("alert")).to_have_text("The files rest.")
    files.tab.page.unroute("**/workspace/search?*")
    panel.get_by_role("searchbox").fill("note")
    expect(panel.get_by_role("list", name="Found files").get_by_role("button")).to_have_text(re.compile("notes.md"))


def test_path_and_content_are_copied(files: Files) -> None:
    files.tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    files.put("/paper.pdf", b"%PDF-1.4 \x00\x01")
    panel = files.open()
    files.menu("notes.md", "Copy the content")
    expect(files.tab.page.locator(".notice")).to_contain_text("Content copied")
    assert files.tab.page.evaluate("navigator.clipboard.readText()") == "# Notes\n\nOne.\n"
    files.row("src, directory").click()
    files.menu("main.py", "Copy the path")
    expect(files.tab.page.locator(".notice").last).to_contain_text("Path copied")
    assert files.tab.page.evaluate("navigator.clipboard.readText()") == "/src/main.py"
    files.menu("paper.pdf", "Copy the content")
    expect(files.tab.page.locator(".notice").last).to_contain_text("This file is no text")
    files.row("main.py").click()
    panel.get_by_role("button", name="Copy the content").click()
    files.tab.until(lambda: files.tab.page.evaluate("navigator.clipboard.readText()") == "def main():\n    return 1\n")


def zipped(**content: str) -> dict[str, Any]:
    """A zip file to choose, by the names of its files, with `__` for a dot."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, text_ in content.items():
            packed.writestr(name.replace("__", "."), text_)
    return {"name": "some.zip", "mimeType": "application/zip", "buffer": archive.getvalue()}


def test_a_zip_file_is_unpacked_into_a_directory_under_the_same_rules(files: Files) -> None:
    files.open()
    page = files.tab.page

    def unpack(chosen: dict[str, Any]) -> None:
        with page.expect_file_chooser() as chooser:
            files.menu("src, directory", "Unpack an archive here")
        chooser.value.set_files(chosen)  # type: ignore[arg-type]  # a plain dict

    unpack(zipped(packed__txt="from the zip"))
    expect(page.locator(".notice")).to_contain_text("1 file was unpacked.")
    expect(files.row("packed.txt")).to_have_attribute("aria-level", "2")
    assert files.read("/src/packed.txt") == "from the zip"
    unpack(zipped(**{"../../up__txt": "out of it"}))
    expect(page.locator(".notice").last).to_contain_text("up.txt")
    assert files.read("/up.txt") is None
