"""The examples, each by its one command: the page it prints is opened, talks, resumes, stops, and is fit to be seen."""

import os
import re
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.accessibility import check
from tests.browser.example_page import look, send
from tests.browser.example_runs import running_examples
from tests.browser.looks import SIZES

NAMES = ("usechat", "react", "assistantui")
LONG_WORD = "w" * 300
RICH = (
    f"Please show everything {LONG_WORD}\nreason 12 words\nwait 2 s\n"
    f'call tool current_time {{"time_zone": "Europe/Berlin"}}\nsay: It is {{result}}.\\n\\n{LONG_WORD}'
)
Start = Callable[[str], str]


@pytest.fixture(scope="module")
def start_example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Run an example's command, once each, and give the address that it prints."""
    with running_examples(tmp_path_factory.mktemp("examples")) as examples:
        yield examples.start


@pytest.fixture
def open_page(shared_chromium: Browser, start_example: Start) -> Iterator[Callable[[str, str], Page]]:
    """Open a conversation of an example in a profile of its own."""
    contexts = []
    errors: list[str] = []

    def make(name: str, conversation: str) -> Page:
        context = shared_chromium.new_context(viewport=SIZES["desktop"], locale="en-GB")
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", note)
        page.goto(start_example(name).replace("/#", f"/?name={conversation}#"))
        page.get_by_label("Your message").wait_for(timeout=20_000)
        assert "token" not in page.url
        return page

    yield make
    for context in contexts:
        context.close()
    assert not errors, errors


def note(request: Request) -> None:
    """Print what a page asks of the server, for the report of a test that fails."""
    if request.resource_type in {"fetch", "xhr"}:
        sys.stdout.write(f"{request.method} {request.url} {request.post_data or ''}\n")


def stop(page: Page, name: str) -> None:
    """Stop the answer; over HTTP that is a request of its own, which a reload would cut off."""
    button = page.get_by_role("button", name="Stop")
    if name == "react":
        button.click()
        return
    with page.expect_response(lambda response: response.request.method == "DELETE"):
        button.click()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", NAMES)
def test_a_conversation(open_page: Callable[[str, str], Page], name: str) -> None:
    page = open_page(name, "talk")
    answers = page.locator("li.assistant")
    send(page, "say: The first answer.")
    expect(answers.locator(".text")).to_have_text(["The first answer."], timeout=20_000)
    expect(page.get_by_role("status")).to_have_text("Ready", timeout=20_000)
    again = page.get_by_role("button", name="Answer again")
    expect(again).to_be_visible(timeout=20_000)
    again.click()
    expect(answers.locator(".text")).to_have_text(["The first answer."], timeout=20_000)
    send(page, "rate 20/s\nstream 160 words\nmarker: reload")
    expect(answers).to_have_count(2, timeout=20_000)
    page.reload()  # in the middle: it is whole in the end
    expect(answers.last.locator(".text")).to_have_text(re.compile(r"^\s*\S+(\s+\S+){159}\s*$"), timeout=40_000)
    expect(page.get_by_role("status")).to_have_text("Ready", timeout=20_000)
    send(page, "rate 10/s\nstream 900 words")
    expect(answers).to_have_count(3, timeout=20_000)
    page.reload()  # it takes far less than the answer, however busy the machine is
    expect(page.get_by_role("status")).to_have_text("Answering…", timeout=40_000)
    expect(answers.last).to_contain_text(re.compile(r"[a-z]3 "), timeout=20_000)  # what was said is kept
    stop(page, name)
    expect(page.get_by_role("status")).to_have_text("Ready", timeout=20_000)
    page.reload()
    expect(answers).to_have_count(3, timeout=20_000)
    expect(page.get_by_role("status")).to_have_text("Ready", timeout=20_000)
    send(page, f"error 400 times 1\nmarker: {name}")
    expect(page.get_by_role("alert")).to_contain_text("400", timeout=20_000)
    check(page)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("alert")).to_have_count(0, timeout=20_000)


@pytest.mark.timeout(400)
def test_versions_are_picked_and_the_choice_is_kept(open_page: Callable[[str, str], Page]) -> None:
    """assistant-ui with the branch adapter: a tree that the server keeps is not flattened."""
    page = open_page("assistantui", "branches")
    answers, questions = page.locator("li.assistant .text"), page.locator("li.user .text")
    for number in (1, 2):
        send(page, f"say: Answer {number}.")
        expect(answers).to_have_count(number, timeout=20_000)
    ready = page.get_by_role("status")
    expect(ready).to_have_text("Ready", timeout=20_000)
    page.locator("li.user").first.get_by_role("button", name="Edit").click()
    page.get_by_label("Edited message").fill("say: Another one.")
    page.locator("form.edit").get_by_role("button", name="Send").click()
    expect(answers).to_have_text(["Another one."], timeout=20_000)
    picker = page.locator("li.user").first.get_by_role("group", name="Versions")
    expect(picker).to_contain_text("2 / 2", timeout=20_000)
    page.get_by_role("button", name="Answer again").click()
    second = page.locator("li.assistant").first.get_by_role("group", name="Versions")
    expect(second).to_contain_text("2 / 2", timeout=20_000)
    expect(ready).to_have_text("Ready", timeout=20_000)
    picker.get_by_role("button", name="Previous version").click()
    expect(answers).to_have_text(["Answer 1.", "Answer 2."], timeout=20_000)  # the whole branch, down to its end
    expect(picker).to_contain_text("1 / 2")
    page.reload()
    expect(answers).to_have_text(["Answer 1.", "Answer 2."], timeout=20_000)  # it was stored
    expect(picker).to_contain_text("1 / 2", timeout=20_000)
    picker.get_by_role("button", name="Next version").click()
    expect(answers).to_have_text(["Another one."], timeout=20_000)
    expect(second).to_contain_text("2 / 2")
    look(page, "assistantui", "versions", os.environ.get("SHOTS"))
    page.set_viewport_size(SIZES["desktop"])
    page.locator("li.user").first.get_by_role("button", name="Edit").click()
    look(page, "assistantui", "edit", os.environ.get("SHOTS"))
    page.locator("form.edit").get_by_role("button", name="Cancel").click()
    send(page, "say: It goes on here.")
    expect(answers).to_have_text(["Another one.", "It goes on here."], timeout=20_000)
    expect(questions).to_have_count(2)
    page.reload()
    expect(answers).to_have_text(["Another one.", "It goes on here."], timeout=20_000)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_fit_to_be_seen(open_page: Callable[[str, str], Page], name: str) -> None:
    folder = os.environ.get("SHOTS")
    page = open_page(name, "looks")
    look(page, name, "empty", folder)
    send(page, RICH)
    expect(page.get_by_role("status")).to_have_text("Answering…")
    expect(page.get_by_role("status")).to_have_text("Ready", timeout=20_000)
    for summary in page.locator("summary").all():
        summary.click()
    look(page, name, "rich", folder)
