"""The files of a conversation beside it: found, read, changed, uploaded; conflicts, limits, keys, every size."""

import io
import re
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Dialog, Locator, Route, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.files_panel import Files
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.side_panel import show_view

OpenTab = Callable[..., ChatPage]
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63fccfc0500f000485018084"
    "a98c210000000049454e44ae426082"
)


# --- the tree -------------------------------------------------------------------------------------------------------


def test_a_conversation_without_files_says_so(tab: ChatPage, live_product: LiveProduct) -> None:
    panel = Files(tab, live_product).open()
    expect(panel).to_contain_text("No files yet.")
    expect(panel.get_by_role("link", name="Save as a zip file")).to_have_count(0)
    check(tab.page)
    look(tab, "files-empty")


def test_a_new_conversation_has_no_files_to_ask_for(tab: ChatPage) -> None:
    tab.open("/c/new?panel=files")
    expect(tab.page.get_by_role("tabpanel", name="Files")).to_contain_text("Nothing here yet")


@pytest.mark.smoke
def test_the_tree_is_walked_with_the_keyboard_alone(files: Files) -> None:
    files.open()
    expect(files.row("src, directory")).to_have_attribute("aria-expanded", "false")
    assert files.rows() == ["src, directory", "notes.md, 14 B"]
    keys = files.tab.page.keyboard
    files.row("src, directory").focus()
    keys.press("ArrowRight")
    expect(files.row("src, directory")).to_have_attribute("aria-expanded", "true")
    assert files.rows() == ["src, directory", "deep, directory", "main.py, 25 B", "notes.md, 14 B"]
    keys.press("ArrowRight")
    expect(files.row("deep, directory")).to_be_focused()
    expect(files.row("deep, directory")).to_have_attribute("aria-level", "2")
    keys.press("ArrowLeft")
    expect(files.row("src, directory")).to_be_focused()
    keys.press("End")
    expect(files.row("notes.md")).to_be_focused()
    keys.press("m")
    expect(files.row("main.py")).to_be_focused()
    keys.press("Enter")
    expect(files.panel.get_by_role("heading", name="/src/main.py")).to_be_visible()
    expect(files.panel.get_by_role("button", name="All files")).to_be_focused()
    assert "panel=files&file=%2Fsrc%2Fmain.py" in files.tab.page.url
    keys.press("Escape")
    expect(files.row("main.py")).to_be_focused()
    keys.press("Delete")
    expect(files.tab.page.get_by_role("button", name="Cancel")).to_be_focused()
    files.confirm("Delete")
    expect(files.row("main.py")).to_have_count(0)
    expect(files.row("notes.md")).to_be_focused()


def test_long_directories_are_read_in_pages(files: Files) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for number in range(450):
            packed.writestr(f"many/file{number:03}.txt", str(number))
    files.open()
    chosen = {"name": "many.zip", "mimeType": "application/zip", "buffer": archive.getvalue()}
    files.panel.locator("[data-upload=zip]").set_input_files(chosen)  # type: ignore[arg-type]  # a plain dict
    expect(files.tab.page.get_by_text("450 files were unpacked.")).to_be_visible()
    expect(files.panel).to_contain_text("453 files")
    files.row("many, directory").click()
    more = files.tab.page.get_by_role("treeitem", name="Show more")
    more.click()
    expect(files.row("file200.txt")).to_be_focused()
    expect(files.row("file399.txt")).to_be_visible()
    more.click()
    expect(files.row("file449.txt")).to_be_visible()
    expect(more).to_have_count(0)


def test_the_tree_follows_what_answers_change(files: Files) -> None:
    files.open()
    expect(files.row("notes.md")).to_be_visible()
    files.put("/new.txt", "from elsewhere")
    files.tab.ask("say: Done.")
    expect(files.row("new.txt")).to_be_visible()


def test_an_error_can_be_tried_again(files: Files) -> None:
    def fail(route: Route) -> None:
        route.fulfill(status=503, json={"detail": "The files rest.", "code": "x"})

    files.tab.page.route("**/workspace/entries?*", fail)
    panel = files.open()
    expect(panel.get_by_role("alert")).to_have_text("The files rest.")
    files.tab.page.unroute("**/workspace/entries?*")
    panel.get_by_role("button", name="Try again").click()
    expect(files.row("notes.md")).to_be_visible()


# --- one file -------------------------------------------------------------------------------------------------------


def test_text_pictures_and_other_files_are_shown_as_what_they_are(files: Files) -> None:
    files.put("/pixel.png", PIXEL)
    files.put("/paper.pdf", b"%PDF-1.4 \x00\x01")
    panel = files.open("&file=/src/main.py")
    expect(panel.locator(".hljs-keyword").first).to_have_text("def")
    assert panel.locator(".lines-numbers").inner_text().split() == ["1", "2"]
    panel.get_by_role("button", name="All files").click()
    files.row("pixel.png").click()
    expect(panel.get_by_role("img", name="Picture pixel.png")).to_have_js_property("naturalWidth", 1)
    panel.get_by_role("button", name="All files").click()
    files.row("paper.pdf").click()
    expect(panel.get_by_role("link", name="Open the PDF")).to_have_attribute("target", "_blank")
    with files.tab.page.expect_download() as download:
        panel.get_by_role("link", name="Save to this device").click()
    assert download.value.suggested_filename == "paper.pdf"


def test_a_file_that_is_gone_says_so(files: Files) -> None:
    panel = files.open("&file=/nothing.txt")
    expect(panel.get_by_role("alert")).to_have_text("There’s no such file any more.")
    panel.get_by_role("button", name="All files").click()
    expect(files.row("notes.md")).to_be_visible()


def test_a_long_file_is_read_in_pieces_and_drawn_where_one_looks(files: Files) -> None:
    line = "a line of a long log, with some words in it\n"
    files.put("/long.log", line * 50_000)
    panel = files.open("&file=/long.log")
    expect(panel).to_contain_text("too large to change here")
    before = panel.locator(".lines-block").count()
    drawn = panel.locator(".lines-block").evaluate_all(
        "all => all.filter((one) => one.lastChild.checkVisibility({ contentVisibilityAuto: true })).length"
    )
    assert before > 100
    assert drawn < 20
    panel.get_by_role("button", name="Show more").click()
    files.tab.until(lambda: panel.locator(".lines-block").count() > before)
    look(files.tab, "files-long")


@pytest.mark.smoke
def test_a_change_is_stored_and_what_is_not_stored_is_kept(files: Files) -> None:
    panel = files.open("&file=/src/main.py")
    panel.get_by_role("button", name="Edit").click()
    field = panel.get_by_role("textbox", name="Text of /src/main.py")
    expect(field).to_be_focused()
    field.fill("def main():\n    return 2\n")
    show_view(files.tab, "Memory")  # elsewhere and back
    show_view(files.tab, "Files")
    expect(field).to_have_value("def main():\n    return 2\n")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    files.tab.page.on("dialog", stay)
    files.tab.page.evaluate("location.assign('/approvals')")
    files.tab.until(lambda: asked == ["beforeunload"])
    field.press("Control+s")
    expect(panel.locator(".lines-text")).to_contain_text("return 2")
    expect(panel.get_by_role("button", name="Edit")).to_be_focused()
    assert files.read("/src/main.py") == "def main():\n    return 2\n"
    panel.get_by_role("button", name="Edit").click()
    field.fill("never mind")
    field.press("Escape")
    files.confirm("Discard")
    expect(panel.locator(".lines-text")).to_contain_text("return 2")


def test_line_ends_of_a_file_stay_what_they_are(files: Files) -> None:
    files.put("/dos.txt", "one\r\ntwo\r\n")
    files.put("/mixed.txt", "one\r\ntwo\n")
    panel = files.open("&file=/dos.txt")
    panel.get_by_role("button", name="Edit").click()
    panel.get_by_role("textbox").fill("one\nthree\n")
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(panel.locator(".lines-text")).to_contain_text("three")
    assert stored_bytes(files, "/dos.txt") == b"one\r\nthree\r\n"
    panel.get_by_role("button", name="All files").click()
    files.row("mixed.txt").click()
    expect(panel).to_contain_text("line ends of several kinds")
    expect(panel.get_by_role("button", name="Edit")).to_have_count(0)


def stored_bytes(files: Files, path: str) -> bytes:
    numbers = files.tab.page.evaluate(
        "async (url) => [...new Uint8Array(await (await fetch(url)).arrayBuffer())]", f"{files.api}/content?path={path}"
    )
    return bytes(numbers)


def test_a_text_in_another_encoding_is_edited_and_stays_in_it(files: Files) -> None:
    text = "Größe;Preis\r\nMüller;7,00 €\r\n"
    files.put("/utf16.csv", b"\xff\xfe" + text.encode("utf-16-le"))
    files.put("/west.csv", text.encode("cp1252"))
    panel = files.open("&file=/utf16.csv")
    expect(panel).to_contain_text("This text is in UTF-16 LE with BOM, and stays in it when it is edited.")
    panel.get_by_role("button", name="Edit").click()
    field = panel.get_by_role("textbox")
    expect(field).to_have_value(text.replace("\r\n", "\n"))
    field.fill("Größe;Preis\nMüller;8,00 €\n→\n")
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(panel.locator(".lines-text")).to_contain_text("8,00 €")
    changed = text.replace("7,00", "8,00")
    assert stored_bytes(files, "/utf16.csv") == b"\xff\xfe" + f"{changed}→\r\n".encode("utf-16-le")
    panel.get_by_role("button", name="All files").click()
    files.row("west.csv").click()
    expect(panel).to_contain_text("This text is in Windows-1252 (assumed")
    panel.get_by_role("button", name="Edit").click()
    panel.get_by_role("textbox").fill("Größe;Preis\nMüller;8,00 €\n→ Łódź\n")
    panel.get_by_role("button", name="Save", exact=True).click()
    refused = panel.get_by_role("alert")
    expect(refused).to_contain_text("Windows-1252, the encoding of this file, does not have '→' (U+2192), 'Ł' (U+0141)")
    assert stored_bytes(files, "/west.csv") == text.encode("cp1252")
    check(files.tab.page)
    look(files.tab, "files-encoding")
    panel.get_by_role("textbox").fill("Größe;Preis\nMüller;8,00 €\n")
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(panel.locator(".lines-text")).to_contain_text("8,00 €")
    assert stored_bytes(files, "/west.csv") == changed.encode("cp1252")
    look(files.tab, "files-encoding-read")
    panel.get_by_role("button", name="Edit").click()
    panel.get_by_role("textbox").fill("→ Łódź\n")
    panel.get_by_role("button", name="Save", exact=True).click()
    panel.get_by_role("button", name="Save as UTF-8").click()
    expect(panel.locator(".lines-text")).to_contain_text("→ Łódź")
    assert stored_bytes(files, "/west.csv") == "→ Łódź\r\n".encode()


def test_a_conflict_over_a_text_in_another_encoding_keeps_it(files: Files) -> None:
    files.put("/notes.csv", b"\xff\xfe" + "one\r\ntwo\r\n".encode("utf-16-le"))
    panel = files.open("&file=/notes.csv")
    panel.get_by_role("button", name="Edit").click()
    panel.get_by_role("textbox").fill("one\nmine ö\n")
    files.put("/notes.csv", b"\xff\xfe" + "one\r\ntheirs ö\r\n".encode("utf-16-le"))
    panel.get_by_role("button", name="Save", exact=True).click()
    diff = panel.get_by_role("group", name="Changes to /notes.csv")
    expect(diff.locator(".is-gone")).to_contain_text("theirs ö")
    panel.get_by_role("button", name="Keep mine").click()
    expect(panel.locator(".lines-text")).to_contain_text("mine ö")
    assert stored_bytes(files, "/notes.csv") == b"\xff\xfe" + "one\r\nmine ö\r\n".encode("utf-16-le")


def conflicting(files: Files) -> Locator:
    """Save over a file that someone else has changed; returns the panel, which compares."""
    panel = files.open("&file=/notes.md")
    panel.get_by_role("button", name="Edit").click()
    field = panel.get_by_role("textbox", name="Text of /notes.md")
    field.fill("# Notes\n\nMine.\n")
    files.put("/notes.md", "# Notes\n\nTheirs.\n")
    panel.get_by_role("button", name="Save", exact=True).click()
    expect(panel.get_by_role("heading", name="Someone else has changed this file")).to_be_focused()
    return panel


def test_a_conflict_compares_both_texts_and_keeps_mine(files: Files) -> None:
    panel = conflicting(files)
    diff = panel.get_by_role("group", name="Changes to /notes.md")
    expect(diff.locator(".is-gone")).to_have_text(["-Theirs.\n"])
    expect(diff.locator(".is-added")).to_have_text(["+Mine.\n"])
    assert files.read("/notes.md") == "# Notes\n\nTheirs.\n"
    check(files.tab.page)
    look(files.tab, "files-conflict")
    panel.get_by_role("button", name="Keep mine").click()
    expect(panel.locator(".lines-text")).to_contain_text("Mine.")
    assert files.read("/notes.md") == "# Notes\n\nMine.\n"


def test_a_conflict_can_take_theirs_or_go_on_writing(files: Files) -> None:
    panel = conflicting(files)
    files.tab.page.keyboard.press("Escape")
    expect(panel.get_by_role("textbox")).to_have_value("# Notes\n\nMine.\n")
    panel.get_by_role("button", name="Save", exact=True).click()
    panel.get_by_role("button", name="Take theirs").click()
    expect(panel.locator(".lines-text")).to_contain_text("Theirs.")
    assert files.read("/notes.md") == "# Notes\n\nTheirs.\n"


def test_a_file_that_changes_while_one_writes_is_announced_and_nothing_is_lost(files: Files) -> None:
    panel = files.open("&file=/notes.md")
    panel.get_by_role("button", name="Edit").click()
    panel.get_by_role("textbox").fill("Mine.")
    files.put("/notes.md", "Theirs.")
    files.tab.ask("say: Done.")
    expect(panel.get_by_role("status")).to_have_text("This file has changed since you opened it.")
    expect(panel.get_by_role("textbox")).to_have_value("Mine.")


# --- making, moving, deleting ---------------------------------------------------------------------------------------


def test_files_are_made_moved_and_deleted(files: Files) -> None:
    panel = files.open()
    panel.get_by_role("button", name="New", exact=True).click()
    files.tab.page.get_by_role("menuitem", name="New directory").click()
    files.answer("docs", "Create")
    files.menu("docs, directory", "New file here")
    files.answer("plan.md", "Create")
    expect(panel.get_by_role("heading", name="/docs/plan.md")).to_be_visible()
    expect(panel).to_contain_text("This file is empty.")
    panel.get_by_role("button", name="All files").click()
    expect(files.row("plan.md")).to_be_focused()
    files.tab.page.keyboard.press("F2")
    files.answer("/docs/agreed/final.md", "Rename")
    expect(files.row("final.md")).to_be_focused()
    files.menu("docs, directory", "Delete")
    expect(files.tab.page.get_by_role("dialog")).to_contain_text("Everything in it is deleted, too.")
    files.confirm("Delete")
    expect(files.row("docs, directory")).to_have_count(0)
    assert files.read("/docs/agreed/final.md") is None


def test_what_cannot_be_done_says_why(files: Files) -> None:
    files.open()
    files.menu("notes.md", "Rename or move")
    files.answer("/src", "Rename")
    expect(files.tab.page.locator(".notice")).to_contain_text("already exists: /src")


def test_files_are_uploaded_with_progress_and_replaced_only_when_asked(files: Files) -> None:
    panel = files.open()
    chosen = [
        {"name": "notes.md", "mimeType": "text/plain", "buffer": b"uploaded"},
        {"name": "second.txt", "mimeType": "text/plain", "buffer": b"second"},
    ]
    panel.locator("[data-upload=files]").set_input_files(chosen)  # type: ignore[arg-type]  # plain dicts
    expect(files.tab.page.get_by_role("dialog")).to_contain_text("There’s a file with this name already.")
    expect(panel.get_by_role("progressbar", name="Uploading second.txt")).to_be_visible()
    files.confirm("Cancel")
    expect(files.row("second.txt")).to_be_visible()
    assert files.read("/notes.md") == "# Notes\n\nOne.\n"
    panel.locator("[data-upload=files]").set_input_files(chosen[:1])  # type: ignore[arg-type]
    files.confirm("Replace")
    files.tab.until(lambda: files.read("/notes.md") == "uploaded")
    expect(panel.get_by_role("list", name="Uploads")).to_have_count(0)


def test_files_are_dropped_on_a_directory(files: Files) -> None:
    files.open()
    transfer = files.tab.page.evaluate_handle(
        """() => {
            const transfer = new DataTransfer();
            transfer.items.add(new File(["dropped"], "dropped.txt"));
            return transfer;
        }"""
    )
    row = files.row("src, directory")
    row.dispatch_event("dragover", {"dataTransfer": transfer})
    expect(files.panel.get_by_text("Drop files to upload them")).to_be_visible()
    row.dispatch_event("drop", {"dataTransfer": transfer})
    expect(files.row("dropped.txt")).to_be_visible()
    assert files.read("/src/dropped.txt") == "dropped"


def test_an_upload_without_room_says_so_and_stays_in_sight(files: Files) -> None:
    panel = files.open()
    answer = {"detail": "ENOSPC: no room left: /big.bin", "code": "file_failed"}
    files.tab.page.route("**/workspace/content?*", lambda route: route.fulfill(status=409, json=answer))
    panel.locator("[data-upload=files]").set_input_files(
        {"name": "big.bin", "mimeType": "application/octet-stream", "buffer": b"x"}
    )
    expect(panel.get_by_role("list", name="Uploads").get_by_role("alert")).to_have_text(
        "ENOSPC: no room left: /big.bin"
    )
    check(files.tab.page)
    panel.get_by_role("button", name="Dismiss").click()
    expect(panel.get_by_role("list", name="Uploads")).to_have_count(0)


def test_everything_is_saved_as_a_zip_file(files: Files) -> None:
    panel = files.open()
    with files.tab.page.expect_download() as download:
        panel.get_by_role("link", name="Save as a zip file").click()
    with zipfile.ZipFile(download.value.path()) as packed:
        assert packed.read("notes.md") == b"# Notes\n\nOne.\n"


def test_files_that_can_only_be_read_offer_no_change(files: Files) -> None:
    def only_read(route: Route) -> None:
        totals: dict[str, Any] = route.fetch().json()
        route.fulfill(json={**totals, "can_write": False})

    files.tab.page.route(re.compile(r"/workspace$"), only_read)
    panel = files.open()
    expect(panel).to_contain_text("These files can only be read.")
    for name in ("New", "Upload"):
        expect(panel.get_by_role("button", name=name, exact=True)).to_have_count(0)
    files.row("notes.md").get_by_role("button").click()
    expect(files.tab.page.get_by_role("menuitem")).to_have_text(
        ["Save to this device", "Copy the content", "Copy the path"]
    )
    files.tab.page.keyboard.press("Escape")
    files.row("notes.md").click()
    expect(panel.locator(".lines-text")).to_contain_text("One.")
    for name in ("Edit", "Delete"):
        expect(panel.get_by_role("button", name=name)).to_have_count(0)


# --- for everybody --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_files_are_accessible(
    open_tab: OpenTab, live_product: LiveProduct, scheme: str, shape: dict[str, object]
) -> None:
    files = Files(open_tab(shape=shape, color_scheme=scheme), live_product)
    files.put("/notes.md", "# Notes\n")
    files.put("/src/a rather long name of a file that does not fit into the panel beside a conversation.py", "x = 1\n")
    files.open()
    files.row("src, directory").click()
    expect(files.row("a rather long name")).to_be_visible()
    check(files.tab.page)
    files.row("a rather long name").click()
    expect(files.panel.locator(".hljs-number")).to_have_text("1")
    check(files.tab.page)
    files.panel.get_by_role("button", name="Edit").click()
    check(files.tab.page)


def test_files_at_every_size(files: Files) -> None:
    files.put("/src/a rather long name of a file that does not fit into the panel beside a conversation.py", "x = 1\n")
    files.open()
    files.row("src, directory").click()
    expect(files.row("main.py")).to_be_visible()
    look(files.tab, "files-tree")
    files.row("main.py").click()
    expect(files.panel.locator(".hljs-keyword").first).to_be_visible()
    look(files.tab, "files-file")
    files.panel.get_by_role("button", name="Edit").click()
    look(files.tab, "files-editor")


def test_files_read_from_right_to_left(open_tab: OpenTab, live_product: LiveProduct) -> None:
    tab = open_tab("/c/new", locale="ar-XB")
    files = Files(tab, live_product)
    files.put("/src/main.py", "x = 1\n")
    tab.open(f"/c/{files.key}?panel=files")
    row = tab.page.locator(".tree-row").first
    row.focus()
    tab.page.keyboard.press("ArrowLeft")  # towards the end of the line
    expect(row).to_have_attribute("aria-expanded", "true")
    check(tab.page)
    look(tab, "files-rtl")
    tab.page.locator(".tree-row").nth(1).click()
    expect(tab.page.locator(".file-view .lines")).to_have_css("direction", "ltr")
    look(tab, "files-rtl-file")


def test_room_that_ends_is_told_before_it_has_ended(files: Files) -> None:
    def nearly_full(route: Route) -> None:
        totals: dict[str, Any] = route.fetch().json()
        route.fulfill(json={**totals, "byte_count": 900_000, "byte_limit": 1_000_000})

    files.tab.page.route(re.compile(r"/workspace$"), nearly_full)
    expect(files.open()).to_contain_text("All your conversations together have room for 1.0 MB.")
    look(files.tab, "files-full")
