"""Calls that another process runs: the conversation waits for them, and Background shows how far they are."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

MEASURE = 'call tool measure {"paper": "a4"} id=one\nsay: It says {result}.'


class LabOnline:
    """The lab as a program over HTTP."""

    def __init__(self, product: LiveProduct) -> None:
        self._url = f"http://127.0.0.1:{product.port}"
        self._token = product.call("executor_token", product.user_id)

    def post(self, verb: str, **body: Any) -> Any:
        request = urllib.request.Request(
            f"{self._url}/api/v1/executors/lab/{verb}",
            json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.load(reply)

    def claim(self) -> dict[str, Any]:
        """Claim the call that waits; gives what goes with all that is said of it."""
        [call] = self.post("claim", tools=["measure"])
        assert call["input"] == {"paper": "a4"}
        return {"job_id": call["job_id"], "fence": call["fence"]}

    def complete(self, held: dict[str, Any], output: str) -> None:
        """Give the result. A claim that has run out meanwhile, since nothing renewed it, is made again."""
        try:
            self.post("complete", **held, output=output)
        except urllib.error.HTTPError as error:
            if error.code != 409:
                raise
            self.post("complete", **self.claim(), output=output)


@pytest.mark.smoke
def test_a_remote_call_is_followed_in_two_tabs_and_over_a_reload(
    open_tab: Callable[..., ChatPage], live_product: LiveProduct
) -> None:
    tab, lab = open_tab("/c/new?agent=surveyor"), LabOnline(live_product)
    tab.write(MEASURE)
    expect(tab.page.locator(".status")).to_have_text(re.compile("^Waiting for measure"))
    card = tab.page.locator(".tool-call").last
    card.locator("summary").click()
    expect(card.get_by_role("status")).to_have_text("Waiting to begin")
    look(tab, "job-waiting")
    address = tab.page.url
    other = open_tab(f"{address[address.index('/c/') :]}?panel=background")
    shown = other.page.get_by_role("tabpanel", name="Background")
    expect(shown.locator(".tools-row")).to_contain_text("Waiting to begin")
    held = lab.claim()
    lab.post("heartbeat", **held, progress={"title": "half way"})
    expect(card).to_contain_text("half way", timeout=15_000)
    look(tab, "job-in-conversation")
    shown.get_by_role("button", name="measure").click()
    expect(shown.get_by_role("status")).to_have_text("Running", timeout=15_000)
    expect(shown).to_contain_text("half way")
    look(other, "job-running")
    tab.page.reload()
    expect(tab.page.locator(".status")).to_have_text(re.compile("^Waiting for measure"))
    lab.complete(held, "12 metres")
    for each in (tab, other):
        expect(each.answers.last).to_contain_text("It says 12 metres.")
    expect(shown.get_by_role("status")).to_have_text("Done")
    look(other, "job-done")


def test_refresh_two_tabs_a_live_stream_and_a_remote_tool_together(
    open_tab: Callable[..., ChatPage], live_product: LiveProduct
) -> None:
    """A program runs the call, its answer streams, a tab is loaded anew in the middle of both: all see the same."""
    tab, lab = open_tab("/c/new?agent=surveyor"), LabOnline(live_product)
    tab.write('call tool measure {"paper": "a4"} id=one\nsay: It says {result}.\nstream 120 words at 20/s')
    expect(tab.page.locator(".status")).to_have_text(re.compile("^Waiting for measure"))
    address = tab.page.url
    other = open_tab(address[address.index("/c/") :])
    tab.page.reload()
    expect(tab.page.locator(".status")).to_have_text(re.compile("^Waiting for measure"))
    lab.complete(lab.claim(), "12 metres")
    for each in (tab, other):
        expect(each.answers.last).to_contain_text("It says 12 metres.")
    tab.page.reload()
    expect(tab.answers.last).to_contain_text("It says 12 metres.")
    expect(other.stop_button).to_be_visible()  # all this while the answer is written
    for each in (tab, other):
        expect(each.stop_button).to_be_hidden(timeout=30_000)
        each.rest()
    assert tab.answers.last.inner_text() == other.answers.last.inner_text()
    assert tab.answers.count() == other.answers.count() == 1


def test_a_remote_call_is_stopped_from_background(open_tab: Callable[..., ChatPage], live_product: LiveProduct) -> None:
    tab = open_tab("/c/new?agent=surveyor")
    tab.write(MEASURE)
    expect(tab.page.locator(".status")).to_have_text(re.compile("^Waiting for measure"))
    card = tab.page.locator(".tool-call").last
    card.locator("summary").click()
    card.get_by_role("button", name="Show in Background").click()
    shown = tab.page.get_by_role("tabpanel", name="Background")
    shown.get_by_role("button", name="Stop").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(shown.get_by_role("status")).to_have_text("Stopped")
    expect(tab.answers.last).to_contain_text("The call was stopped before it had a result")


IN_THE_PAGE = """async (verb, body) => {
  const token = document.querySelector('meta[name="csrf-token"]').content;
  const headers = {"Content-Type": "application/json", "X-CSRFToken": token};
  const reply = await fetch(`/api/v1/executors/lab/${verb}`, {method: "POST", headers, body: JSON.stringify(body)});
  if (!reply.ok) throw new Error(`${verb}: ${reply.status} ${await reply.text()}`);
  return reply.json();
}"""


def test_a_page_that_is_signed_in_runs_the_call(open_tab: Callable[..., ChatPage]) -> None:
    """The executor is a script of a second tab; what it measures, only a browser knows."""
    tab = open_tab("/c/new?agent=surveyor")
    tab.write(MEASURE)
    expect(tab.page.locator(".status")).to_have_text(re.compile("^Waiting for measure"))
    other = open_tab("/c/new")
    output = other.page.evaluate(
        f"""async () => {{
          const post = {IN_THE_PAGE};
          const [call] = await post("claim", {{tools: ["measure"]}});
          const held = {{job_id: call.job_id, fence: call.fence}};
          await post("heartbeat", {{...held, progress: {{title: "in the browser"}}}});
          const output = `${{innerWidth}} by ${{innerHeight}} for ${{call.input.paper}}`;
          await post("complete", {{...held, output}});
          return output;
        }}"""
    )
    assert output.endswith(" for a4")
    expect(tab.answers.last).to_contain_text(f"It says {output}.")
