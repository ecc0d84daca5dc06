"""The example of an orchestrator, by its one command: delegation, registry, and the relay to several viewers."""

import json
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
        page.get_by_label("Your message").wait_for(timeout=SLOW)
        return page

    yield make
    for context in contexts:
        context.close()
    assert not errors, errors


def ask_worker(tool: str, worker: str, task: str) -> str:
    """Words that have the scripted model give a task to a worker."""
    return f"call tool {tool} {json.dumps({'agent': worker, 'task': task})}"


def answers(page: Page) -> Locator:
    return page.locator("li.assistant .text")


@pytest.mark.timeout(300)
def test_a_delegated_task_is_relayed_to_all_viewers_and_wakes_the_orchestrator_once(open_orchestrator: Open) -> None:
    first, second = open_orchestrator("relay"), open_orchestrator("relay")
    task = "stream 60 words at 12/s\nmarker: relayed"
    send(first, f"{ask_worker('delegate', 'researcher', task)}\nsay: It has begun.")
    expect(answers(first).first).to_have_text("It has begun.", timeout=SLOW)  # the answer does not wait
    for page in (first, second):
        run = page.locator("li.run")
        expect(run.locator("summary").first).to_have_text("Researcher · running", timeout=SLOW)
        expect(run).to_contain_text(re.compile(r"[a-z]3 "), timeout=SLOW)  # word by word, while it works
        expect(page.locator("[data-registry]")).to_contain_text("Known: 1 · busy: 1", timeout=SLOW)
    late = open_orchestrator("relay")
    pages = (first, second, late)
    for page in pages:
        expect(page.locator("li.run summary").first).to_have_text("Researcher · completed", timeout=SLOW)
        expect(page.locator("[data-registry]")).to_have_text("Known: 1 · busy: 0 · answers: 1", timeout=SLOW)
        expect(page.locator("li.assistant")).to_have_count(2, timeout=SLOW)  # woken, once
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
def test_an_asked_worker_answers_within_the_turn_and_the_next_finds_its_files(open_orchestrator: Open) -> None:
    page = open_orchestrator("files")
    note = 'call tool write {"path": "/notes/cranes.md", "content": "One leg."}\nsay: Noted.'
    send(page, f"{ask_worker('ask', 'researcher', note)}\nsay: Asked: {{result}}")
    expect(answers(page).first).to_contain_text("Noted.", timeout=SLOW)
    read = 'call tool read {"path": "/notes/cranes.md"}\nsay: It says {result}'
    send(page, f"{ask_worker('ask', 'writer', read)}\nsay: Asked: {{result}}")
    expect(answers(page).nth(1)).to_contain_text("One leg.", timeout=SLOW)
    expect(page.locator("li.run")).to_have_count(2)


@pytest.mark.timeout(300)
def test_a_person_gives_a_task_and_talks_to_the_worker(open_orchestrator: Open) -> None:
    page = open_orchestrator("person")
    page.get_by_label("Worker", exact=True).select_option("writer")
    page.get_by_label("Task", exact=True).fill("say: Written.")
    page.get_by_role("button", name="Give it").click()
    expect(page.locator("li.run summary").first).to_have_text("Writer · completed", timeout=SLOW)
    page.locator("li.run summary").first.click()
    page.get_by_role("button", name="Open the conversation of Writer").click()
    expect(page.get_by_role("heading", name="A writer")).to_be_visible(timeout=SLOW)
    expect(answers(page)).to_have_text(["Written."], timeout=SLOW)
    send(page, "say: Written again.")
    expect(answers(page)).to_have_text(["Written.", "Written again."], timeout=SLOW)
    page.get_by_role("button", name="Back to the orchestrator").click()
    expect(page.locator("li.run")).to_have_count(1, timeout=SLOW)
