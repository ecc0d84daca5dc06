"""The coding agent's threads from a browser: frames over a socket of the page's origin, through a kill and a reload."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage, id_of
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.side_panel import TOGGLE

OpenTab = Callable[..., ChatPage]
WORDS = 80
SCRIPT = (
    f'reason: A plan.\ncall tool write {{"path": "/src/a.py", "content": "a = 1"}}\nrate 20/s\nstream {WORDS} words'
)


class Threads:
    """A socket of the orchestrator in a page, and the frames that it was sent."""

    def __init__(self, tab: ChatPage) -> None:
        self.page = tab.page
        self.open()

    def open(self) -> None:
        self.page.evaluate(
            """() => new Promise((done, failed) => {
                window.frames_seen = []
                const socket = new WebSocket(`ws://${location.host}/agents/desk-coders/mine`)
                window.threads_socket = socket
                socket.onmessage = (event) => {
                    const frame = JSON.parse(event.data)
                    if (!frame.type.startsWith("cf_agent")) window.frames_seen.push(frame)
                    if (frame.type === "workspaces") done()
                }
                socket.onclose = (event) => failed(new Error(`closed: ${event.code}`))
            })"""
        )

    def send(self, kind: str, **fields: Any) -> None:
        self.page.evaluate("(text) => window.threads_socket.send(text)", json.dumps({"type": kind, **fields}))

    def seen(self, kind: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate("() => window.frames_seen")
        return [frame for frame in found if kind in ("", frame["type"])]

    def wait_for(self, condition: str, argument: Any = None) -> None:
        """Wait until an expression about `seen`, the frames, is true."""
        script = f"(argument) => {{ const seen = window.frames_seen; return {condition} }}"
        self.page.wait_for_function(script, arg=argument, timeout=90_000)

    def text(self) -> str:
        return "".join(frame["delta"] for frame in self.seen("stream_delta"))


@pytest.mark.smoke
def test_a_run_of_a_thread_survives_a_kill_and_a_reload_and_always_ends(
    open_tab: OpenTab, live_product: LiveProduct
) -> None:
    tab = open_tab()
    threads = Threads(tab)
    threads.send("create_thread", name="Parser")
    threads.wait_for("seen.some((frame) => frame.type === 'threads' && frame.threads.length === 1)")
    thread = threads.seen("threads")[-1]["threads"][0]
    assert (thread["name"], thread["workspaceId"]) == ("Parser", "default")
    threads.send("add", threadId=thread["id"], message={"id": "m1", "role": "user", "content": SCRIPT})
    threads.send("run", threadId=thread["id"])
    threads.wait_for("seen.filter((frame) => frame.type === 'stream_delta').length > 5")
    assert [frame["toolName"] for frame in threads.seen("tool_call")] == ["write"]
    live_product.kill_workers()
    tab.page.reload()  # the socket is gone with the document
    threads.open()
    threads.wait_for("seen.some((frame) => frame.type === 'stream_end')")
    threads.wait_for("seen.at(-1).type === 'threads' && seen.some((frame) => frame.type === 'sync')")
    kinds = [frame["type"] for frame in threads.seen()]
    assert kinds[-3:] == ["stream_end", "sync", "threads"]
    assert len(threads.text().split()) == WORDS  # from the beginning, none lost, none doubled
    question, answer = threads.seen("sync")[-1]["messages"]
    assert (question["id"], answer["reasoning"]) == ("m1", "A plan.")
    assert len(answer["content"].split()) == WORDS
    threads.send("list_files", workspaceId="default", dir="/src")
    threads.send("read_file", workspaceId="default", path="/src/a.py")
    threads.wait_for("seen.some((frame) => frame.type === 'file_content')")
    assert [entry["name"] for entry in threads.seen("file_list")[-1]["entries"]] == ["a.py"]
    assert threads.seen("file_content")[-1]["content"] == "a = 1"
    threads.send("add", threadId=thread["id"], message={"id": "m2", "content": 'call tool done {"summary": "Built."}'})
    threads.send("run", threadId=thread["id"])
    threads.wait_for("seen.filter((frame) => frame.type === 'stream_end').length === 2")
    threads.wait_for("seen.at(-1).type === 'threads'")
    assert threads.seen("sync")[-1]["messages"][-1]["content"] == "Built."
    tab.page.evaluate("() => { window.threads_socket.onclose = null; window.threads_socket.close() }")


def row(tab: ChatPage, title: str) -> Locator:
    return tab.page.locator("#conversations .row").filter(has=tab.page.locator(".row-title", has_text=title))


def chosen(tab: ChatPage, title: str, entry: str) -> None:
    """Choose an entry of a thread's menu."""
    row(tab, title).get_by_role("button", name=re.compile("^More for")).click()
    tab.page.get_by_role("menuitem", name=entry).click()


def named(tab: ChatPage, name: str) -> None:
    """Answer the question for a name."""
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill(name)
    dialog.get_by_role("textbox").press("Enter")
    expect(dialog).to_have_count(0)


def work_on_workspaces(tab: ChatPage) -> None:
    """Make a workspace in the panel, move both threads to it, name it and delete it."""
    page = tab.page
    page.get_by_role("button", name=TOGGLE, exact=True).click()
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("tab", name="Workspaces").click()
    desk = page.locator("#panel-workspaces")
    cards = desk.locator(".desk-workspace")
    expect(cards).to_have_count(1)
    desk.get_by_role("button", name="New workspace").click()
    named(tab, "Grammar")
    expect(cards).to_have_count(2)
    desk.get_by_role("button", name="Work on “Grammar” in this thread").click()
    expect(row(tab, "Lexer").locator(".row-agent")).to_have_text("Grammar")
    expect(cards.nth(1)).to_contain_text("this thread")
    expect(desk.locator(".desk-runs")).to_contain_text("No commands have been run in this thread.")
    chosen(tab, "Parser", "Workspace…")
    page.get_by_role("dialog").get_by_role("radio", name="Grammar").check()
    page.get_by_role("dialog").get_by_role("button", name="Use this workspace").click()
    expect(row(tab, "Parser").locator(".row-agent")).to_have_text("Grammar")
    expect(cards.nth(1).locator(".link")).to_have_count(2)
    check(page)
    look(tab, "threads-workspaces")
    desk.get_by_role("button", name="Detach “Grammar” from this thread").click()
    expect(row(tab, "Lexer").locator(".row-agent")).to_have_text("No workspace")
    desk.get_by_role("button", name="More for “Grammar”").click()
    page.get_by_role("menuitem", name="Rename").click()
    named(tab, "Rules")
    expect(row(tab, "Parser").locator(".row-agent")).to_have_text("Rules")
    desk.get_by_role("button", name="More for “Rules”").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("1 thread works on it and will have no files.")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(row(tab, "Parser").locator(".row-agent")).to_have_text("No workspace")


@pytest.mark.smoke
def test_threads_are_listed_begun_named_moved_and_removed(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=desk-coders")
    page = tab.page
    expect(page.locator("#welcome")).to_contain_text("Your first message starts a thread.")
    look(tab, "threads-new")
    tab.write('call tool bash {"script": "echo seven > /src.txt; cat /src.txt"}\nsay: Written.')
    expect(tab.answers.last).to_contain_text("Written.", timeout=30_000)
    tab.rest()
    head = page.locator("#threads-head")
    expect(head.get_by_role("link", name="Threads of Desk coders")).to_be_visible()
    expect(page.locator("#conversations .row")).to_have_count(1)
    expect(page.locator("#conversations .row-agent")).to_have_text("Default")
    first = id_of(tab)
    chosen(tab, "call tool bash", "Rename")
    named(tab, "Parser")
    expect(page.locator("#title")).to_have_text("Parser")
    head.get_by_role("button", name="New thread").click()
    named(tab, "Lexer")
    expect(page.locator("#title")).to_have_text("Lexer")
    expect(page.locator("#conversations .row-title")).to_have_text(["Lexer", "Parser"])
    assert id_of(tab) != first
    expect(page.locator("#parent")).to_contain_text("Desk coders")

    work_on_workspaces(tab)
    desk = page.locator("#panel-workspaces")
    chosen(tab, "Lexer", "Delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#conversations .row-title")).to_have_text(["Parser"])
    expect(page.locator("#welcome")).to_contain_text("Your first message starts a thread.")  # of their agent
    row(tab, "Parser").get_by_role("link").click()
    run = desk.locator(".desk-runs details")
    run.locator("summary").click()
    expect(run).to_contain_text("seven")
    look(tab, "threads-terminal")
    head.get_by_role("button", name="All conversations").click()
    expect(head).to_have_count(0)
    expect(row(tab, "Desk coders")).to_have_count(1)


def test_the_address_of_a_thread_leads_to_its_conversation(open_tab: OpenTab) -> None:
    tab = open_tab()
    threads = Threads(tab)
    threads.send("create_thread", name="By address")
    threads.wait_for("seen.some((frame) => frame.type === 'threads' && frame.threads.length > 0)")
    short = next(each["id"] for each in threads.seen("threads")[-1]["threads"] if each["name"] == "By address")
    tab.page.evaluate("() => { window.threads_socket.onclose = null; window.threads_socket.close() }")
    tab.open(f"/#{short}")
    title = tab.page.locator("#title")
    expect(title).to_have_text("By address")
    place = tab.page.url
    assert place.startswith(f"{tab.base_url}/c/")
    tab.page.reload()
    expect(title).to_have_text("By address")
    assert tab.page.url == place
    tab.page.locator("#threads-head").get_by_role("link").click()
    expect(title).to_have_text("Desk coders")
    tab.page.go_back()
    expect(title).to_have_text("By address")
    assert tab.page.url == place
    tab.page.go_forward()
    expect(title).to_have_text("Desk coders")
    tab.open("/#f0000000")  # there is none
    expect(tab.page.get_by_text("That conversation doesn’t exist.")).to_be_visible()
