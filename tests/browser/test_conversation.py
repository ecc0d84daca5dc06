"""Talking: send, stream, stop, queue, fail, answer again, edit; and nothing is lost on the way."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import APIResponse, Route, WebSocketRoute, expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct

OpenTab = Callable[..., ChatPage]
SHOWN = """() => {
    window.shown = { "#status": new Set(), ".reasoning .fold-label": new Set() };
    new MutationObserver(() => {
        for (const [place, texts] of Object.entries(shown)) texts.add(document.querySelector(place)?.textContent);
    }).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""
"""Keeps what stands at these places, however short: a look now and then misses a state of a second."""

STOP_QUEUED = """async () => {
  const headers = {"x-csrftoken": document.querySelector('meta[name="csrf-token"]').content};
  const page = await (await fetch(`/api/v1/instances/${location.pathname.split("/").at(-1)}/messages`)).json();
  for (const message of page.queued) await fetch(`/api/v1/turns/${message.turn.id}/cancel`, {method: "POST", headers});
}"""


def words(text: str) -> list[str]:
    """Words of an answer, whatever the line breaks."""
    return text.split()


def numbers(text: str) -> list[int]:
    """The provider numbers its words: a lost, doubled or moved one is seen."""
    return [int(re.sub(r"\D", "", word)) for word in words(text)]


def without_transcripts(line: WebSocketRoute) -> None:
    """A line that tells of answers only."""
    server = line.connect_to_server()
    server.on_message(lambda frame: None if '"cf_agent_chat_messages"' in str(frame) else line.send(frame))


@pytest.mark.smoke
def test_first_message_makes_a_conversation_with_an_address_and_a_title(tab: ChatPage) -> None:
    tab.page.route("**/instances?**", lambda route: route.abort())  # not by a later look at the list
    tab.ask("Good morning\nsay: Hello there.")
    expect(tab.page).to_have_url(re.compile(r"/c/ins_\w+$"))
    expect(tab.page.locator("#title")).to_have_text("Good morning")
    expect(tab.page.locator("#conversations a[aria-current=page]")).to_contain_text("Good morning")
    # The page may just be changing over to the new conversation, whose answer it then shows from its beginning.
    expect(tab.answers.last.locator(".md")).to_have_text("Hello there.")


def test_answer_reports_model_tokens_and_time(tab: ChatPage) -> None:
    answer = tab.ask("say: Hello.")
    facts = answer.locator(".facts")
    expect(facts).to_have_text(re.compile(r"^\d+:\d\d"))
    facts.click()
    expect(answer.locator(".facts-more")).to_contain_text("scripted")
    expect(answer.locator(".facts-more")).to_contain_text("tokens read")


@pytest.mark.smoke
def test_text_grows_while_it_streams_and_then_stops_growing(tab: ChatPage) -> None:
    tab.write("rate 20/s\nstream 60 words")
    live = tab.page.locator(".message.is-live .md")
    expect(live).to_contain_text(re.compile(r"\S+ \S+ \S+"))
    early = len(live.inner_text())
    expect(tab.stop_button).to_be_visible()
    tab.rest()
    assert len(tab.text_of_last()) > early
    assert numbers(tab.text_of_last()) == list(range(60))


def test_waiting_thinking_and_tool_states_are_announced(tab: ChatPage) -> None:
    tab.page.evaluate(SHOWN)
    tab.write("wait 1 s\nrate 20/s\nreason 40 words\nsay: So be it.")
    tab.rest()
    waits, thinks = tab.page.evaluate("[[...shown['#status']], [...shown['.reasoning .fold-label']]]")
    assert any("Waiting for the model" in text for text in waits), waits
    assert "Thinking" in thinks
    expect(tab.page.locator(".reasoning .fold-label")).to_contain_text("Thought")
    tab.page.locator(".reasoning summary").click()
    expect(tab.page.locator(".reasoning .fold-body")).not_to_be_empty()  # a fold draws its inside once it is open
    assert len(words(tab.page.locator(".reasoning .fold-body").inner_text())) == 40


@pytest.mark.smoke
def test_tool_call_is_a_line_that_opens(tab: ChatPage) -> None:
    answer = tab.ask('call tool current_time {"time_zone": "Europe/Berlin"}\nsay: It is {result}.')
    tool = answer.locator("details.tool")
    expect(tool.locator(".fold-label")).to_have_text("Current time")
    expect(tool.locator(".fold-hint")).to_have_text("Europe/Berlin")
    expect(tool.locator(".fold-note")).to_contain_text("Done")
    tool.locator("summary").click()
    expect(tool.locator(".tool-section").first).to_contain_text("Europe/Berlin")
    expect(tool.get_by_role("heading", name="Result")).to_be_visible()


def test_failing_tool_shows_its_error(tab: ChatPage) -> None:
    answer = tab.ask('call tool no_such_tool {"fail": "no such tool"}\nsay: I could not.')
    tool = answer.locator("details.tool")
    expect(tool.locator(".fold-note")).to_contain_text("Failed")
    tool.locator("summary").click()
    expect(tool.locator(".value.is-error")).to_contain_text("no", ignore_case=True)


def test_stop_keeps_what_was_shown(tab: ChatPage) -> None:
    tab.write("rate 20/s\nstream 400 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(re.compile(r"\S+ \S+ \S+ \S+"))
    tab.stop_button.click()
    tab.rest()
    kept = words(tab.text_of_last())
    assert 3 < len(kept) < 400
    expect(tab.answers.last.locator(".meta").first).to_contain_text("stopped")
    tab.open(tab.page.url.removeprefix(tab.base_url))
    assert words(tab.text_of_last()) == kept


@pytest.mark.smoke
def test_escape_stops(tab: ChatPage) -> None:
    tab.write("rate 20/s\nstream 400 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(re.compile(r"\S+ \S+"))
    tab.input.press("Escape")
    tab.rest()
    assert len(words(tab.text_of_last())) < 400


def test_message_sent_meanwhile_waits_its_turn(tab: ChatPage) -> None:
    tab.write("First\nrate 20/s\nstream 60 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(re.compile(r"\S+ \S+"))
    tab.write("Second\nsay: The second answer.")
    second = tab.page.locator(".message.is-pending", has_text="Second")
    expect(second).to_contain_text("Waiting for the answer above")
    expect(tab.answers).to_have_count(2, timeout=20_000)
    tab.rest()
    assert tab.kinds() == ["user", "answer", "user", "answer"]
    assert tab.text_of_last() == "The second answer."


def test_message_whose_turn_is_stopped_elsewhere_no_longer_waits(tab: ChatPage) -> None:
    tab.write("First\nrate 20/s\nstream 60 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(re.compile(r"\S+ \S+"))
    tab.write("Second\nsay: Never said.")
    expect(tab.page.locator(".message.is-pending", has_text="Second")).to_contain_text("Waiting for the answer above")
    tab.page.evaluate(STOP_QUEUED)
    tab.rest()
    expect(tab.page.locator(".message.is-pending")).to_have_count(0)
    expect(tab.messages.last).to_contain_text("Second")
    tab.open(tab.page.url.removeprefix(tab.base_url))
    expect(tab.messages.last).to_contain_text("Second")
    expect(tab.page.locator(".message.is-pending")).to_have_count(0)


def test_a_waiting_message_can_be_withdrawn_before_a_page_contains_it(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.ask("say: Begin.")
    tab.page.route(
        "**/messages?**", lambda route: route.abort() if "limit=50" in route.request.url else route.continue_()
    )
    with live_product.paused_workers():
        tab.write("Never\nsay: Never said.")
        with tab.page.expect_response("**/cancel"):
            tab.page.get_by_role("button", name="Don’t send").click()
    tab.page.unroute("**/messages?**")
    expect(tab.page.locator(".message.is-pending")).to_have_count(0)
    expect(tab.messages.last).to_contain_text("Never")
    expect(tab.answers).to_have_count(1)


def test_question_stands_above_its_answer_before_the_page_was_read_again(tab: ChatPage) -> None:
    tab.page.route_web_socket("**/agents/**", without_transcripts)
    tab.page.route("**/messages?**", lambda route: route.abort())
    tab.write("rate 10/s\nstream 40 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text(re.compile(r"\S+ \S+"))
    assert tab.kinds() == ["user", "answer"]
    tab.stop_button.click()


def test_page_that_was_read_before_the_end_takes_no_answer_away(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    held: list[tuple[Route, APIResponse]] = []

    def hold_the_first(route: Route) -> None:
        """Of those that were read while the answer runs: the page reads once more after the one before, in its time."""
        if held:
            route.continue_()
        elif (answer := route.fetch()).json()["running"] is None:
            route.fulfill(response=answer)
        else:
            held.append((route, answer))

    tab.page.route("**/messages?**", hold_the_first)
    tab.write("rate 10/s\nstream 50 words")
    expect(tab.page.locator(".message.is-live .md")).to_contain_text("0")
    expect(tab.page.locator(".message.is-live")).to_have_count(0, timeout=20_000)
    assert held
    tab.page.evaluate(
        """() => {
            const list = document.querySelector("#messages");
            const count = () => list.querySelectorAll(".message.is-assistant").length;
            window.least = count();
            const look = () => (window.least = Math.min(window.least, count()));
            new MutationObserver(look).observe(list, {childList: true, subtree: true});
        }"""
    )
    with tab.page.expect_response("**/messages?**"):  # it is read again
        held[0][0].fulfill(response=held[0][1])
    tab.rest()
    expect(tab.answers.last.get_by_role("button", name="Answer again")).to_be_visible()
    assert tab.page.evaluate("window.least") == 2


def test_question_that_waited_stands_above_its_answer_from_the_beginning(
    tab: ChatPage, open_tab: OpenTab, live_product: LiveProduct
) -> None:
    tab.ask("say: Begin.")
    other = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    with live_product.paused_workers():
        tab.write("wait 1 s\nrate 10/s\nstream 250 words")
        for each in (tab, other):
            expect(each.page.locator(".message.is-user.is-pending")).to_contain_text("Sent")
        tab.page.wait_for_timeout(1000)  # every look at the list has been had
    for each in (tab, other):
        expect(each.page.locator(".message.is-live .md")).to_contain_text("3")
        expect(each.page.locator(".message.is-pending")).to_have_count(0, timeout=8_000)  # long before it ends
        expect(each.page.locator(".message.is-live")).to_have_count(1)
        assert each.kinds() == ["user", "answer", "user", "answer"]
    tab.stop_button.click()


def test_a_page_older_than_a_frame_removes_no_question(tab: ChatPage, live_product: LiveProduct) -> None:
    pages: list[tuple[Route, APIResponse]] = []

    def hold_the_first(route: Route) -> None:
        if pages:
            route.continue_()
        else:
            pages.append((route, route.fetch()))

    tab.page.route("**/messages?**", hold_the_first)
    sent = tab.hold("**/turns")
    with live_product.paused_workers():
        tab.write("say: Heard.")
        tab.until(lambda: pages and sent)
        assert pages[0][1].json()["queued"] == []
        accepted = sent[0].fetch()  # the server has it; that it has is long on its way
        expect(tab.page.locator(".message.is-user")).to_contain_text("Don’t send")  # the frame has arrived
        tab.page.evaluate(
            """() => {
                const list = document.querySelector("#messages");
                const look = () => (window.least = Math.min(window.least ?? 1, list.children.length));
                new MutationObserver(look).observe(list, {childList: true});
            }"""
        )
        with tab.page.expect_response("**/messages?**"):  # it is read again
            pages[0][0].fulfill(response=pages[0][1])
        tab.page.wait_for_timeout(500)  # that the page has read the answer shows nowhere; it draws at once
        assert tab.page.evaluate("window.least ?? 1") == 1
    sent[0].fulfill(response=accepted)
    tab.rest()
    expect(tab.answers.last.locator(".md")).to_have_text("Heard.")
    expect(tab.messages).to_have_count(2)


@pytest.mark.smoke
def test_regenerate_makes_a_sibling_and_the_switch_goes_back(tab: ChatPage) -> None:
    first = tab.ask("Tell me\nsay: An answer.")
    first_id = first.get_attribute("data-id")
    first.get_by_role("button", name="Answer again").click()
    expect(tab.page.locator(".sibling-count")).to_have_text("2 / 2", timeout=20_000)
    tab.rest()
    assert tab.answers.last.get_attribute("data-id") != first_id
    tab.page.get_by_role("button", name="Previous version").click()
    expect(tab.page.locator(".sibling-count")).to_have_text("1 / 2")
    assert tab.answers.last.get_attribute("data-id") == first_id


def test_edit_makes_a_version_beside_the_old_message(tab: ChatPage) -> None:
    tab.ask("One\nsay: Answer one.")
    tab.ask("Two\nsay: Answer two.")
    tab.messages.nth(2).get_by_role("button", name="Edit this message").click()
    expect(tab.page.locator("#edit-bar")).to_be_visible()
    assert tab.input.input_value().startswith("Two")
    tab.replace("Two again\nsay: Another answer.")
    expect(tab.answers.last.locator(".md")).to_have_text("Another answer.", timeout=20_000)
    tab.rest()
    expect(tab.messages).to_have_count(4)
    switch = tab.messages.nth(2)
    expect(switch.locator(".sibling-count")).to_have_text("2 / 2")
    switch.get_by_role("button", name="Previous version").click()
    expect(tab.answers.last.locator(".md")).to_have_text("Answer two.")


def test_edit_of_the_first_message_makes_a_second_beginning(tab: ChatPage) -> None:
    tab.ask("One\nsay: Answer one.")
    tab.input.press("ArrowUp")
    tab.replace("Uno\nsay: Other beginning.")
    expect(tab.answers.last.locator(".md")).to_have_text("Other beginning.", timeout=20_000)
    tab.rest()
    expect(tab.messages.first.locator(".sibling-count")).to_have_text("2 / 2")


def test_edit_of_a_message_that_no_page_contains_yet_is_its_sibling(tab: ChatPage) -> None:
    tab.ask("One\nsay: Answer one.")
    tab.page.route("**/messages?**", lambda route: route.abort())  # what comes, comes by the line
    tab.holds_back = True
    tab.ask("Two\nsay: Answer two.")
    tab.messages.nth(2).get_by_role("button", name="Edit this message").click()
    tab.replace("Two again\nsay: Another answer.")
    expect(tab.answers.last.locator(".md")).to_have_text("Another answer.", timeout=20_000)
    tab.page.unroute("**/messages?**")
    tab.holds_back = False
    tab.open(tab.page.url.removeprefix(tab.base_url))
    expect(tab.messages).to_have_count(4)
    expect(tab.messages.nth(2).locator(".sibling-count")).to_have_text("2 / 2")


def test_first_question_is_there_and_can_be_edited_though_no_page_was_read(
    tab: ChatPage, live_product: LiveProduct
) -> None:
    received: list[str] = []
    tab.page.on("websocket", lambda line: line.on("framereceived", lambda frame: received.append(str(frame))))
    tab.page.route("**/messages?**", lambda route: route.abort())  # what comes, comes by the line
    tab.holds_back = True
    sent = tab.hold("**/turns")
    with live_product.paused_workers():
        tab.write("One\nsay: Answer one.")
        tab.until(lambda: sent and any("cf_agent_stream_resume_none" in frame for frame in received))
        tab.page.unroute("**/turns")
        sent[0].continue_()
        expect(tab.page.locator(".message.is-pending")).to_contain_text("Don’t send")
    expect(tab.answers.last.locator(".md")).to_have_text("Answer one.")
    tab.rest()
    assert tab.kinds() == ["user", "answer"]
    tab.input.press("ArrowUp")
    expect(tab.input).to_have_value("One\nsay: Answer one.")
    tab.replace("Uno\nsay: Other beginning.")
    expect(tab.answers.last.locator(".md")).to_have_text("Other beginning.", timeout=20_000)
    tab.rest()
    assert tab.kinds() == ["user", "answer"]
    tab.page.unroute("**/messages?**")
    tab.holds_back = False
    tab.open(tab.page.url.removeprefix(tab.base_url))
    expect(tab.messages.first.locator(".sibling-count")).to_have_text("2 / 2")
    expect(tab.messages).to_have_count(2)


def test_up_edits_what_was_asked_last_though_only_its_answer_is_known(tab: ChatPage) -> None:
    tab.page.route_web_socket("**/agents/**", without_transcripts)
    tab.ask("One\nsay: Answer one.")
    tab.page.route("**/messages?**", lambda route: route.abort())
    tab.write("Two\nsay: Answer two.")
    expect(tab.answers.last.locator(".md")).to_have_text("Answer two.", timeout=20_000)
    expect(tab.stop_button).to_be_hidden()
    assert tab.kinds() == ["user", "answer", "user", "answer"]
    tab.input.press("ArrowUp")
    expect(tab.input).to_have_value("Two\nsay: Answer two.")
    tab.replace("Two again\nsay: Another answer.")
    expect(tab.answers.last.locator(".md")).to_have_text("Another answer.", timeout=20_000)
    expect(tab.messages).to_have_count(4)
    tab.page.unroute("**/messages?**")
    tab.open(tab.page.url.removeprefix(tab.base_url))
    expect(tab.messages).to_have_count(4)
    expect(tab.messages.nth(2).locator(".sibling-count")).to_have_text("2 / 2")


def test_page_that_could_not_be_read_is_read_again(tab: ChatPage) -> None:
    tab.ask("One\nsay: Answer one.")
    tab.page.route("**/messages?**", lambda route: route.abort())
    tab.holds_back = True
    tab.ask("Two\nsay: Answer two.")
    with tab.page.expect_event("requestfailed", lambda request: "/messages?" in request.url):  # nothing else is to come
        pass
    expect(tab.answers.last.locator(".meta")).to_have_count(0)
    tab.page.unroute("**/messages?**")
    expect(tab.answers.last.locator(".facts")).to_be_visible()  # its figures come with the page


@pytest.mark.smoke
def test_message_of_one_tab_appears_in_the_other(tab: ChatPage, open_tab: OpenTab) -> None:
    tab.ask("say: Begin.")
    second = open_tab(tab.page.url.removeprefix(tab.base_url), context=tab.page.context)
    tab.ask("From the first tab\nsay: Heard.")
    expect(second.answers.last.locator(".md")).to_have_text("Heard.")
    expect(second.page.locator(".message.is-user").last).to_contain_text("From the first tab")


def test_message_written_while_the_line_is_down_is_sent_once(tab: ChatPage, page_line: CuttingProxy) -> None:
    tab.ask("say: Begin.")
    page_line.go_offline()
    tab.write("Written offline\nsay: Got it.")
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Will be sent when you’re back online")
    page_line.go_online()
    expect(tab.answers.last.locator(".md")).to_have_text("Got it.", timeout=30_000)
    tab.rest()
    expect(tab.page.locator(".message.is-user", has_text="Written offline")).to_have_count(1)


@pytest.mark.smoke
def test_unsent_message_survives_a_reload_and_can_be_taken_back(tab: ChatPage, page_line: CuttingProxy) -> None:
    tab.ask("say: Begin.")
    tab.page.route("**/turns", lambda route: route.abort())
    tab.write("Not yet\nsay: Late.")
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Will be sent")
    tab.page.reload()
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Not yet")
    tab.page.get_by_role("button", name="Take back").click()
    expect(tab.input).to_have_value("Not yet\nsay: Late.")
    expect(tab.page.locator(".message.is-pending")).to_have_count(0)


def test_refused_message_gives_the_reason(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    refusal = '{"title": "Invalid", "detail": "Too long for this agent."}'
    tab.page.route(
        "**/turns", lambda route: route.fulfill(status=422, content_type="application/problem+json", body=refusal)
    )
    tab.write("Too much")
    expect(tab.page.locator(".message.is-pending")).to_contain_text("Not sent: Too long for this agent.")


def test_lost_answer_to_a_send_is_not_a_second_turn(tab: ChatPage) -> None:
    tab.ask("say: Begin.")
    lost: list[object] = []

    def lose_the_answer(route: Route) -> None:
        if lost:
            route.continue_()
        else:
            lost.append(route.fetch())  # the server has it, the browser does not know
            route.abort()

    tab.page.route("**/turns", lose_the_answer)
    tab.write("Only once\nsay: Once.")
    expect(tab.answers).to_have_count(2, timeout=20_000)
    tab.page.wait_for_timeout(2500)  # longer than the pause before another try, if there were one
    tab.rest()
    expect(tab.page.locator(".message.is-user", has_text="Only once")).to_have_count(1)
    expect(tab.answers).to_have_count(2)
