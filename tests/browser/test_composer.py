"""Writing: keys, drafts, files. Nothing that was typed is lost."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.files_people_bring import FOLDER

OpenTab = Callable[..., ChatPage]
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63606060f80f0001040100"
    "5fe5c34b0000000049454e44ae426082"
)


def drop(tab: ChatPage, target: str, event: str, name: str = "note.txt", text: str = "hello") -> None:
    """Give a file to the page as a drop or a paste."""
    tab.page.evaluate(
        """([target, event, name, text]) => {
            const data = new DataTransfer();
            data.items.add(new File([text], name, { type: "text/plain" }));
            const made = event === "paste"
                ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
                : new DragEvent(event, { dataTransfer: data, bubbles: true, cancelable: true });
            document.querySelector(target).dispatchEvent(made);
        }""",
        [target, event, name, text],
    )


@pytest.mark.smoke
def test_shift_enter_breaks_the_line_and_the_field_grows(tab: ChatPage) -> None:
    before = tab.input.bounding_box()
    tab.input.focus()
    for _ in range(5):
        tab.page.keyboard.type("line")
        tab.page.keyboard.press("Shift+Enter")
    after = tab.input.bounding_box()
    assert tab.input.input_value() == "line\n" * 5
    assert before is not None
    assert after is not None
    assert after["height"] > before["height"] + 60
    expect(tab.messages).to_have_count(0)


def test_field_stops_growing_and_scrolls(tab: ChatPage) -> None:
    tab.input.fill("line\n" * 200)
    box = tab.input.bounding_box()
    assert box is not None
    assert box["height"] <= 860 * 0.45


def test_empty_message_is_not_sent(tab: ChatPage) -> None:
    tab.input.fill("   \n ")
    tab.input.press("Enter")
    tab.page.wait_for_timeout(300)  # a message that is sent stands there at once
    expect(tab.messages).to_have_count(0)


@pytest.mark.smoke
def test_draft_is_kept_per_conversation_and_over_a_reload(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.input.fill("half a thought")
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.input).to_have_value("")
    tab.input.fill("another")
    tab.page.get_by_role("link", name="Alpha").click()
    expect(tab.input).to_have_value("half a thought")
    tab.page.reload()
    expect(tab.input).to_have_value("half a thought")


def test_sent_message_leaves_no_draft(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.page.reload()
    expect(tab.input).to_have_value("")


def test_up_in_the_empty_field_edits_the_last_message_and_escape_ends_that(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    expect(tab.messages).to_have_count(2)
    tab.input.press("ArrowUp")
    expect(tab.input).to_have_value("Alpha\nsay: a.")
    expect(tab.page.locator(".message.is-edited")).to_have_count(1)
    tab.input.press("Escape")
    expect(tab.input).to_have_value("")
    expect(tab.page.locator("#edit-bar")).to_be_hidden()


def test_up_in_a_field_with_text_moves_the_caret_only(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    tab.input.fill("something")
    tab.input.press("ArrowUp")
    expect(tab.input).to_have_value("something")


def test_focus_stays_in_the_field_while_an_answer_streams(tab: ChatPage) -> None:
    tab.write("rate 30/s\nstream 60 words")
    expect(tab.page.locator(".message.is-live")).to_be_visible()
    tab.page.keyboard.type("typing while it answers")
    tab.rest()
    expect(tab.input).to_be_focused()
    expect(tab.input).to_have_value("typing while it answers")


@pytest.mark.smoke
def test_file_by_button_is_sent_and_shown(tab: ChatPage) -> None:
    tab.page.locator("#file-input").set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": PNG})
    expect(tab.page.locator("#composer-files .is-ready")).to_contain_text("dot.png")
    tab.ask("What is this?\nsay: A dot.")
    image = tab.messages.first.locator("img")
    expect(image).to_have_attribute("alt", "Image: dot.png")
    assert image.evaluate("image => image.complete && image.naturalWidth") == 1
    expect(tab.page.locator("#composer-files")).to_be_hidden()


def test_pictures_are_shown_over_the_whole_page(tab: ChatPage) -> None:
    pictures = [{"name": f"dot{n}.png", "mimeType": "image/png", "buffer": PNG} for n in (1, 2)]
    tab.page.locator("#file-input").set_input_files(pictures)  # type: ignore[arg-type]  # plain dicts
    expect(tab.page.locator("#composer-files .is-ready")).to_have_count(2)
    tab.ask("Two dots\nsay: I see.")
    tab.page.get_by_role("link", name="Image: dot2.png").click()
    dialog = tab.page.get_by_role("dialog", name="dot2.png")
    expect(dialog).to_contain_text("2 of 2")
    tab.page.keyboard.press("ArrowRight")
    expect(tab.page.get_by_role("dialog", name="dot1.png")).to_contain_text("1 of 2")
    check(tab.page)
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    expect(tab.page.get_by_role("link", name="Image: dot2.png")).to_be_focused()


def paste_text(tab: ChatPage, text: str) -> bool:
    """Paste a text; returns whether the page has taken it for something else."""
    taken: bool = tab.page.evaluate(
        """(text) => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            const made = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
            return !document.querySelector("#composer-input").dispatchEvent(made);
        }""",
        text,
    )
    return taken


def test_a_long_paste_becomes_a_file_and_a_text_again(tab: ChatPage) -> None:
    assert not paste_text(tab, "x" * 20_000)
    tab.input.fill("Look:")
    assert paste_text(tab, "word " * 5_000)
    chip = tab.page.locator("#composer-files .file-chip")
    expect(chip).to_contain_text("Pasted text.txt")
    expect(chip).to_contain_text("25 kB")
    assert tab.input.input_value() == "Look:"
    chip.get_by_role("button", name="Paste as text").click()
    expect(chip).to_have_count(0)
    assert tab.input.input_value() == "Look:\n" + "word " * 5_000
    tab.input.fill("say: Read.")
    assert paste_text(tab, "word " * 5_000)
    expect(chip).to_contain_text("25 kB")
    tab.input.press("Enter")
    expect(tab.messages.first.locator(".file-chip")).to_contain_text("Pasted text.txt")


def test_file_by_drop_and_by_paste(tab: ChatPage) -> None:
    drop(tab, "#main", "drop", "dropped.txt")
    expect(tab.page.locator("#composer-files .is-ready")).to_contain_text("dropped.txt")
    drop(tab, "#composer-input", "paste", "pasted.txt")
    expect(tab.page.locator("#composer-files .is-ready")).to_have_count(2)
    tab.page.get_by_role("button", name="Remove dropped.txt").click()
    tab.ask("Read it\nsay: Read.")
    expect(tab.messages.first.locator(".file-chip")).to_contain_text("pasted.txt")


def test_uploaded_files_stay_in_the_draft(tab: ChatPage) -> None:
    tab.ask("Alpha\nsay: a.")
    drop(tab, "#main", "drop", "kept.txt")
    expect(tab.page.locator("#composer-files .is-ready")).to_have_count(1)
    tab.page.reload()
    expect(tab.page.locator("#composer-files .is-ready")).to_contain_text("kept.txt")


def test_refused_file_gives_the_reason_and_does_not_block(tab: ChatPage) -> None:
    refusal = '{"title": "Invalid", "detail": "Files of this kind are not accepted."}'
    tab.page.route(
        "**/files", lambda route: route.fulfill(status=422, content_type="application/problem+json", body=refusal)
    )
    drop(tab, "#main", "drop", "virus.exe")
    expect(tab.page.locator("#composer-files .is-failed")).to_contain_text("not accepted")
    tab.ask("Without it\nsay: Fine.")
    assert tab.text_of_last() == "Fine."


def test_composer_offers_stop_and_send_while_an_answer_runs(tab: ChatPage) -> None:
    tab.write("rate 20/s\nstream 60 words")
    expect(tab.stop_button).to_be_visible()
    expect(tab.page.locator("#send")).to_be_hidden()
    tab.input.fill("next")
    expect(tab.page.locator("#send")).to_be_visible()
    expect(tab.stop_button).to_be_visible()
    tab.stop_button.click()
    tab.rest()


def test_a_scan_says_what_models_cannot_see(tab: ChatPage) -> None:
    tab.page.locator("#file-input").set_input_files(FOLDER / "scan.pdf")
    note = tab.page.locator("#composer-files .file-note")
    expect(note).to_contain_text("The pages of this PDF are pictures without text", timeout=60_000)
    tab.page.reload()
    expect(note).to_contain_text("Choose a model that reads PDF documents")


def test_a_document_opens_as_models_get_it_and_an_archive_is_unpacked(tab: ChatPage) -> None:
    ready = tab.page.locator("#composer-files .is-ready")
    tab.page.locator("#file-input").set_input_files([FOLDER / "budget.xlsx", FOLDER / "project.zip"])
    expect(ready).to_have_count(2, timeout=60_000)
    tab.ask("Look at them\nsay: Done.")
    files = tab.messages.first.get_by_role("list", name="Files")
    with tab.page.expect_popup() as opened:
        files.get_by_role("link", name="budget.xlsx").first.click()
    expect(opened.value.locator("body")).to_contain_text("| Rent | 1200 | 2026-01-15 | TRUE |")
    opened.value.close()
    files.get_by_role("button", name="Unpack into files").click()
    expect(tab.page.get_by_role("treeitem", name="project").first).to_be_visible(timeout=60_000)
