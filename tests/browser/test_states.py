"""States that are rare, large or both: each is reached, checked and looked at (`looks.py`)."""

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.boot import with_model
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.main_thread import WATCH, metrics
from tests.browser.parts import call, message
from tests.browser.reading import distance, history

OpenTab = Callable[..., ChatPage]
WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
LONG_TITLE = f"{WORD} and more"[:100]


# --- nothing there --------------------------------------------------------------------------------------------------


def test_empty_product(tab: ChatPage) -> None:
    tab.open("/")
    expect(tab.page.get_by_role("heading", name="What’s on your mind?")).to_be_visible()
    look(tab, "empty")


def test_nothing_found(tab: ChatPage) -> None:
    tab.page.locator("#search").fill("nothing like it")
    expect(tab.page.locator("#no-conversations")).to_have_text("Nothing matches.")
    look(tab, "nothing-found")


def test_no_model(tab: ChatPage) -> None:
    hint = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any compatible server, and THINK_MODEL=provider/model."
    with_model(tab, {"name": "", "kind": "none", "is_small": False, "hint": hint})
    expect(tab.page.locator("#banner")).to_contain_text("THINK_MODEL")
    look(tab, "no-model")


def test_small_model(tab: ChatPage) -> None:
    with_model(tab, {"name": "smollm2-360m", "kind": "local", "is_small": True, "hint": "Set OPENAI_BASE_URL."})
    tab.page.locator("#banner").get_by_text("Connect a better one").click()
    look(tab, "small-model")


# --- failed ---------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_failure_gives_a_reason_and_a_retry_answers(tab: ChatPage) -> None:
    tab.write("error 401 times 1\nsay: Now it works.")
    error = tab.page.locator(".status.is-error")
    expect(error).to_contain_text("The administrator of this server has to set a valid one.", timeout=20_000)
    expect(error.locator(".status-reason p")).to_be_hidden()
    error.get_by_text("Details").click()
    expect(error.locator(".status-reason p")).to_contain_text("401")
    assert tab.spoken().splitlines()[-1].startswith("The answer failed. ")
    look(tab, "failed")
    tab.page.reload()
    expect(error).to_contain_text("The administrator of this server has to set a valid one.")
    error.get_by_role("button", name="Try again").click()
    expect(tab.input).to_be_focused()
    expect(tab.answers.last.locator(".md")).to_have_text("Now it works.", timeout=20_000)
    tab.rest()
    expect(error).to_be_hidden()
    expect(tab.messages).to_have_count(2)


# --- long -----------------------------------------------------------------------------------------------------------


def test_very_long_title(tab: ChatPage, live_product: LiveProduct) -> None:
    key = live_product.seed(LONG_TITLE, [message("u", "user", "Hello"), message("a", "assistant", "Hello.")])
    tab.open(f"/c/{key}")
    expect(tab.page.locator("#title")).to_have_text(LONG_TITLE)
    expect(tab.page.locator("#title")).to_have_attribute("title", LONG_TITLE)
    expect(tab.page.locator("#conversations a").first).to_have_attribute("title", LONG_TITLE)
    look(tab, "long-title")
    tab.page.get_by_role("button", name=f"More for “{LONG_TITLE}”").click()
    tab.page.get_by_role("menuitem", name="Delete").click()
    notice = tab.page.locator(".notice")
    expect(notice).to_contain_text(LONG_TITLE)
    assert notice.evaluate("notice => notice.scrollWidth <= notice.clientWidth")


def huge_answer() -> str:
    """200 kB of prose, code with long lines, wide tables, one long word."""
    columns = 24
    table = "|" + "|".join(f" column {n} " for n in range(columns)) + "|\n|" + "---|" * columns + "\n"
    table += ("|" + "|".join(f" value {n} of a row " for n in range(columns)) + "|\n") * 40
    line = "result = some_function(" + ", ".join(f"argument_{n}=value_{n}" for n in range(40)) + ")  # one line\n"
    prose = "A paragraph with **bold** words, `code` and a [link](https://example.com). " * 12
    section = f"## Part\n\n{prose}\n\n{table}\n```python\n{line * 12}```\n\n{WORD * 6}\n\n"
    return (section * (200_000 // len(section) + 1))[:200_000]


def test_very_long_answer(tab: ChatPage, live_product: LiveProduct) -> None:
    answer = huge_answer()
    key = live_product.seed("Long", [message("u", "user", "Everything, please"), message("a", "assistant", answer)])
    tab.open(f"/c/{key}")
    expect(tab.answers.locator("figure.code").first).to_be_attached()
    code = tab.answers.locator("figure.code pre").first
    assert code.evaluate("pre => pre.scrollWidth > pre.clientWidth")
    assert tab.answers.locator(".table-scroll").first.evaluate("table => table.scrollWidth > table.clientWidth")
    tab.page.evaluate("document.querySelector('.message.is-assistant .table').scrollIntoView()")
    look(tab, "long-answer")
    tab.page.evaluate("document.querySelector('.message.is-assistant figure.code').scrollIntoView()")
    look(tab, "long-code")
    tab.page.evaluate("document.getElementById('to-end').click()")
    tab.ask("say: Still here.")
    assert tab.text_of_last() == "Still here."


def test_very_long_message_shows_its_beginning_first(tab: ChatPage) -> None:
    pasted = "\n".join(f"{n} a line of a log that somebody pasted, {WORD}" for n in range(1_600))
    assert len(pasted) > 180_000
    tab.ask(f"{pasted}\nsay: Read.")
    message = tab.messages.first
    short = message.bounding_box()
    assert short is not None
    assert short["height"] < 600
    look(tab, "long-message")
    button = message.get_by_role("button", name="Show all")
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    whole = message.bounding_box()
    assert whole is not None
    assert whole["height"] > 10_000
    message.get_by_role("button", name="Show less").click()
    assert message.locator(".plain").evaluate("element => element.textContent") == f"{pasted}\nsay: Read."


# --- many -----------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_forty_tool_calls_are_one_line_that_opens(tab: ChatPage, live_product: LiveProduct) -> None:
    parts: list[dict[str, Any]] = [{"type": "text", "text": "I will look at all of them.", "state": "done"}]
    for number in range(40):
        parts += [{"type": "step-start"}, call(number)]
    parts[10] = call(4, state="output-error", errorText="No such file.", output=None)
    parts.append({"type": "text", "text": "All of them were read.", "state": "done"})
    key = live_product.seed(
        "Many calls", [message("u", "user", "Read"), {"id": "a", "role": "assistant", "parts": parts}]
    )
    tab.open(f"/c/{key}")
    run = tab.page.locator("details.tool-run")
    expect(run.locator("> summary")).to_contain_text("40 tool calls")
    expect(run.locator("> summary")).to_contain_text("1 failed")
    expect(tab.page.locator("details.tool").first).to_be_hidden()
    look(tab, "forty-calls")
    run.locator("> summary").focus()
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("details.tool:visible")).to_have_count(40)
    run.locator("details.tool").nth(4).locator("summary").click()
    expect(run.locator(".value.is-error")).to_have_text("No such file.")
    tab.page.evaluate("document.querySelector('.tool-run').scrollIntoView()")
    look(tab, "forty-calls-open")
    shown = tab.messages.last.locator(".message-body > *").evaluate_all("all => all.map(one => one.className)")
    assert shown == ["md", "fold tool-run has-failed", "md"]


def test_calls_that_come_one_by_one_gather_while_one_reads(tab: ChatPage) -> None:
    calls = 'call tool current_time {"time_zone": "UTC"}\n'
    tab.write(f"parallel calls\n{calls * 7}wait 1 s\nsay: Seven.")
    tab.rest()
    expect(tab.page.locator("details.tool-run > summary")).to_contain_text("7 tool calls")
    expect(tab.answers.last.locator(".md")).to_have_text("Seven.")


def test_durations_of_tool_calls_are_there_after_a_reload(tab: ChatPage, live_product: LiveProduct) -> None:
    answer = tab.ask('call tool current_time {"time_zone": "UTC"}\nsay: Done.')
    call_id = tab.page.evaluate(
        "async () => (await (await fetch('/api/v1/instances/' + location.pathname.split('/').pop() + '/messages'))"
        ".json()).items.at(-1).parts.find((part) => part.toolCallId).toolCallId"
    )
    live_product.call("set_duration", call_id, 4200)
    tab.page.reload()
    expect(answer.locator("details.tool .fold-note")).to_have_text("Done, 4.2 s")


# --- read-only ------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_conversation_of_a_retired_agent_can_be_read_and_not_continued(
    tab: ChatPage, live_product: LiveProduct
) -> None:
    messages = [message("u", "user", "What did it say?"), message("a", "assistant", "It said **this**.")]
    key = live_product.seed("From before", messages, agent="retired-agent")
    sockets: list[str] = []
    tab.page.on("websocket", lambda socket: sockets.append(socket.url))
    tab.open(f"/c/{key}")
    expect(tab.page.locator("#read-only")).to_contain_text("its agent, retired-agent, is no longer available")
    expect(tab.page.locator("#composer")).to_be_hidden()
    expect(tab.answers.locator(".md")).to_have_text("It said this.")
    for name in ("Answer again", "Edit this message"):
        expect(tab.page.get_by_role("button", name=name)).to_have_count(0)
    expect(tab.page.get_by_role("button", name="Copy this message")).to_have_count(2)
    look(tab, "read-only")
    assert sockets == []
    tab.page.get_by_role("link", name="New", exact=True).click()
    expect(tab.page.locator("#composer")).to_be_visible()
    expect(tab.page.locator("#read-only")).to_be_hidden()
    tab.ask("say: Here.")
    assert re.search(r"/agents/assistant/", sockets[0])


# --- five thousand messages -----------------------------------------------------------------------------------------

_SCROLL_UP = """async () => {
    const scroller = document.getElementById("scroller");
    const all = () => [...document.querySelectorAll(".message")];
    const frames = async (count) => {
        for (; count > 0; count -= 1) await new Promise((done) => requestAnimationFrame(done));
    };
    const count = all().length;
    scroller.scrollTop = 400;
    await frames(6); // what the jump brought into sight has its real height by then
    const top = scroller.getBoundingClientRect().top;
    const anchor = all().find((message) => message.getBoundingClientRect().bottom > top + 10);
    const before = anchor.getBoundingClientRect().top;
    for (let tries = 0; tries < 600 && all().length === count; tries += 1) await frames(1);
    await frames(3);
    return [all().length - count, anchor.getBoundingClientRect().top - before];
}"""


def test_five_thousand_messages(tab: ChatPage, live_product: LiveProduct) -> None:
    key = live_product.seed("A long life", history(5_000))
    began = time.monotonic()
    tab.open(f"/c/{key}")
    expect(tab.messages).to_have_count(50)
    assert distance(tab) < 4
    print(f"open and alive after {time.monotonic() - began:.2f} s")  # noqa: T201 - the figure is the report
    expect(tab.messages.last).to_contain_text("Message 4999.")
    look(tab, "many-messages")
    tab.page.evaluate(WATCH)
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = metrics(session)["TaskDuration"]
    for turn in range(15):
        added, moved = tab.page.evaluate(_SCROLL_UP)
        assert added == (50 if turn != 11 else -200)  # of more than 600 the newest go out of the page
        assert abs(moved) < 4, f"the view jumped by {moved} pixels"
    busy = (metrics(session)["TaskDuration"] - before) / 15
    longest = tab.page.evaluate("longest")
    print(f"a page of 50 above: {busy * 1000:.0f} ms of CPU, longest task {longest:.0f} ms")  # noqa: T201
    ids = tab.page.eval_on_selector_all(".message", "ms => ms.map(m => m.dataset.id)")
    assert ids == [f"m{number}" for number in range(4_200, 4_750)]
    tab.page.locator("#search").press_sequentially("long")
    expect(tab.page.locator("#conversations .row")).to_have_count(1)
    # Back at the end nothing of what is far above is held, and the page still takes and shows an answer.
    tab.page.locator("#to-end").click()
    expect(tab.page.locator("#scroller")).to_be_focused()
    expect(tab.messages.last).to_contain_text("Message 4999.")
    expect(tab.messages).to_have_count(50)
    assert distance(tab) < 4
    tab.ask("say: After five thousand.")
    assert tab.text_of_last() == "After five thousand."
    added, moved = tab.page.evaluate(_SCROLL_UP)
    assert (added, abs(moved) < 4) == (50, True)
