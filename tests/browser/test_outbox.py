"""What a page keeps of a message on its way: until it is known to have arrived, and no longer."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Route, expect

from tests.browser.chat_page import ChatPage

OUTBOX = """(steps) => import(new URL('/static/think/testing.js', location)).then(async ({ Outbox }) => {
    const away = Object.assign(new Error('away'), { isTemporary: true });
    const outbox = new Outbox('a test', async () => { if (!steps.isHeard) throw away; });
    outbox.add({ requestId: 'r1', body: {}, shown: { id: 'm1' } });
    await new Promise((done) => setTimeout(done, 50));
    outbox.settle(new Set(steps.known), steps.isReadAfter ? performance.now() : 0);
    const left = outbox.entries.map((entry) => entry.state);
    outbox.close();
    outbox.remove('r1');
    return left;
})"""
KEEPS = "() => Object.keys(localStorage).some((key) => key.includes('outbox.'))"


@pytest.mark.smoke
def test_entry_leaves_when_it_is_shown_or_a_later_page_lacks_it(tab: ChatPage) -> None:
    def left(**steps: object) -> object:
        return tab.page.evaluate(OUTBOX, {"known": [], "isHeard": True, "isReadAfter": False, **steps})

    assert left() == ["accepted"]
    assert left(known=["m1"]) == []
    assert left(isReadAfter=True) == []
    assert left(isHeard=False) == ["waiting"]
    assert left(isHeard=False, isReadAfter=True) == ["waiting"]
    assert left(isHeard=False, known=["m1"]) == []


def test_message_whose_acceptance_was_not_received_does_not_stand_below_its_new_version(
    tab: ChatPage, open_tab: Callable[..., ChatPage]
) -> None:
    tab.ask("say: Begin.")
    sent: list[Route] = []
    is_edited: list[bool] = []

    def lose_the_answer(route: Route) -> None:
        sent.append(route)
        if is_edited:
            route.continue_()
            return
        if len(sent) == 1:
            route.fetch()  # the server has it, the browser does not know
        route.abort()

    tab.page.route("**/turns", lose_the_answer)
    tab.write("One\nsay: Answer one.")
    expect(tab.answers).to_have_count(2, timeout=20_000)
    second = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    second.messages.nth(2).get_by_role("button", name="Edit this message").click()
    expect(second.input).to_be_focused()  # with the former words, which are there a moment after the click
    second.input.fill("Two\nsay: Answer two.")
    second.input.press("Enter")
    expect(tab.answers.last.locator(".md")).to_have_text("Answer two.", timeout=20_000)
    is_edited.append(True)
    tab.until(lambda: not tab.page.evaluate(KEEPS))  # so nothing will be sent again
    tab.rest()
    expect(tab.messages).to_have_count(4)
    expect(tab.page.locator(".message.is-user").last).to_contain_text("Answer two.")


NEVER_ANSWERED = """(path) => import(new URL('/static/think/testing.js', location)).then(({ Api }) => {
    window.fetch = (address, { signal }) =>
        new Promise((_, refuse) => signal.addEventListener('abort', () => refuse(new DOMException('', 'AbortError'))));
    new Api('').request('GET', path).catch((error) => Object.assign(window, { gaveUp: [error.kind, error.message] }));
})"""


def test_request_that_is_not_answered_is_given_up(tab: ChatPage) -> None:
    tab.page.clock.install()
    tab.page.evaluate(NEVER_ANSWERED, "/anything")
    tab.page.clock.run_for(29_000)
    assert tab.page.evaluate("window.gaveUp") is None
    tab.page.clock.run_for(2_000)
    assert tab.page.evaluate("window.gaveUp") == ["offline", "The server didn’t answer in time."]
