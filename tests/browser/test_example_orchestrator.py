"""The example of an orchestrator without a chat, by its one command: fibers, registry, relay to several viewers."""

import os
import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.example_page import look, send
from tests.browser.example_runs import running_examples
from tests.browser.looks import SIZES

Open = Callable[[str], Page]
SLOW = 20_000


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address that the running example printed."""
    with running_examples(tmp_path_factory.mktemp("orchestrator")) as examples:
        yield examples.start("orchestrator")


@pytest.fixture
def open_orchestrator(shared_chromium: Browser, address: str) -> Iterator[Open]:
    """Open a conversation in a profile of its own."""
    contexts = []
    errors: list[str] = []

    def make(conversation: str) -> Page:
        context = shared_chromium.new_context(viewport=SIZES["desktop"], locale="en-GB")
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address.replace("/#", f"/?name={conversation}#"))
        page.get_by_label("Task", exact=True).wait_for(timeout=SLOW)
        return page

    yield make
    for context in contexts:
        context.close()
    assert not errors, errors


def give(page: Page, worker: str, task: str) -> None:
    """Give a worker something to do."""
    page.get_by_label("Worker", exact=True).select_option(worker)
    page.get_by_label("Task", exact=True).fill(task)
    page.get_by_role("button", name="Give it").click()
    expect(page.get_by_label("Task", exact=True)).to_have_value("", timeout=SLOW)


def work(page: Page) -> Locator:
    """The work, the newest first."""
    return page.get_by_role("list", name="Work").locator("li")


@pytest.mark.timeout(300)
def test_work_in_the_background_is_relayed_to_all_viewers(open_orchestrator: Open) -> None:
    first, second = open_orchestrator("relay"), open_orchestrator("relay")
    give(first, "researcher", "stream 60 words at 12/s\nmarker: relayed")
    for page in (first, second):
        run = page.locator("li.run")
        expect(run.locator("summary").first).to_have_text("Researcher · running", timeout=SLOW)
        expect(run).to_contain_text(re.compile(r"[a-z]3 "), timeout=SLOW)  # word by word, while it works
        expect(work(page).first).to_contain_text(re.compile("pending|running"), timeout=SLOW)
    late = open_orchestrator("relay")
    pages = (first, second, late)
    for page in pages:
        expect(page.locator("li.run summary").first).to_have_text("Researcher · completed", timeout=SLOW)
        expect(page.locator("[data-registry]")).to_have_text("Known: 1 · busy: 0 · answers: 1", timeout=SLOW)
        expect(work(page).first).to_contain_text("completed", timeout=SLOW)
    texts = []
    for page in pages:
        run = page.locator("li.run")
        if run.locator("details[open]").count() == 0:
            run.locator("summary").first.click()
        texts.append(run.locator("p.text:not(.faint)").last.text_content() or "")
    assert len(texts[0].split()) == 60
    assert texts[1:] == texts[:1] * 2  # nothing lost, nothing doubled, also for the late one
    look(first, "orchestrator", "relayed", os.environ.get("SHOTS"))


@pytest.mark.timeout(300)
def test_a_report_has_both_work_one_after_the_other_on_the_same_files(open_orchestrator: Open) -> None:
    page = open_orchestrator("files")
    give(page, "researcher", 'call tool write {"path": "/notes/cranes.md", "content": "One leg."}\nsay: Noted.')
    expect(work(page).first).to_contain_text("Noted.", timeout=SLOW)
    give(page, "report", 'call tool read {"path": "/notes/cranes.md"}\nsay: It says {result}')
    expect(work(page).first).to_contain_text("It says", timeout=SLOW)
    expect(work(page).first).to_contain_text("One leg.")
    expect(page.locator("li.run")).to_have_count(3)
    expect(page.locator("li.run > details > summary")).to_have_text(
        ["Researcher · completed", "Researcher · completed", "Writer · completed"]
    )


@pytest.mark.timeout(300)
def test_a_person_stops_work_and_talks_to_the_worker(open_orchestrator: Open) -> None:
    page = open_orchestrator("person")
    give(page, "writer", "stream 600 words at 5/s")
    expect(page.locator("li.run summary").first).to_have_text("Writer · running", timeout=SLOW)
    expect(page.locator("li.run")).to_contain_text(re.compile(r"[a-z]3 "), timeout=SLOW)
    page.get_by_role("button", name=re.compile("^Stop: ")).click()
    expect(page.locator("li.run summary").first).to_have_text("Writer · aborted", timeout=SLOW)
    expect(work(page).first).to_contain_text("cancelled", timeout=SLOW)
    page.locator("li.run summary").first.click()
    page.get_by_role("button", name="Open the conversation of Writer").click()
    expect(page.get_by_role("heading", name="A writer")).to_be_visible(timeout=SLOW)
    send(page, "say: Written after all.")
    expect(page.locator("li.assistant .text").last).to_have_text("Written after all.", timeout=SLOW)
    page.get_by_role("button", name="Back to the orchestrator").click()
    expect(page.locator("li.run")).to_have_count(1, timeout=SLOW)
