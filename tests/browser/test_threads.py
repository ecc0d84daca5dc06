"""The coding agent's threads from a browser: frames over a socket of the page's origin, through a kill and a reload."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct

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
