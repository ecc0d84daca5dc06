"""MCP servers on the page: a person adds one, reads and accepts its tools, and the agent uses them (A10)."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import free_port
from tests.browser.looks import look
from tests.browser.test_extensions import tools
from tests.browser.test_panel import check_both

OpenTab = Callable[..., ChatPage]
ODD = Path(__file__).parents[1] / "mcp" / "odd_server.py"


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[str]:
    """The address of an MCP server in a process of its own."""
    port = free_port()
    command = [sys.executable, str(ODD), "http", str(port), str(tmp_path)]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ})
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)


def add(tab: ChatPage, name: str, url: str) -> Locator:
    """Add a server in the panel; its view is shown."""
    shown = tools(tab)
    shown.get_by_role("button", name="Add a server").click()
    shown.get_by_role("textbox", name="Name", exact=True).fill(name)
    shown.get_by_role("textbox", name="Address").fill(url)
    shown.get_by_role("button", name="Add", exact=True).click()
    expect(shown.get_by_role("heading", name=name)).to_be_visible()
    return shown


def prefix_of_tools(tab: ChatPage) -> str:
    """What the names of the only server's tools begin with, as models call them."""
    path = tab.page.url.removeprefix(tab.base_url).split("?")[0].removeprefix("/c/")
    read = f"async () => (await (await fetch('/api/v1/instances/{path}/mcp-servers')).json())[0].id"
    return f"tool_{tab.page.evaluate(read)}"


def allow(tab: ChatPage) -> None:
    """Let the agent make the call that it asks about."""
    tab.page.locator(".question").get_by_role("button", name="Allow").click()


@pytest.mark.smoke
def test_server_is_added_its_tools_are_accepted_and_used(tab: ChatPage, odd: str) -> None:
    tab.ask("say: Hello.")
    expect(tools(tab)).to_contain_text("No servers yet.")
    look(tab, "tools-empty")
    check_both(tab)
    shown = add(tab, "odd", odd)
    expect(shown.get_by_role("status")).to_have_text("Ready")
    expect(shown).to_contain_text("1 tool can’t be used:")
    shown.locator("summary", has_text="Echo").click()
    expect(shown).to_contain_text("Say it again.")
    look(tab, "server-ready")
    check_both(tab)
    prefix = prefix_of_tools(tab)
    tab.write(f"call tool {prefix}_grow {{}}\nsay: {{result}}")
    expect(tab.answers.last.locator(".md").last).to_contain_text("grown")
    shown.get_by_role("button", name="Connect again").click()
    expect(shown.get_by_role("status")).to_have_text("Tools to review")
    expect(shown).to_contain_text("1 tool is new or has changed.")
    look(tab, "server-review")
    shown.get_by_role("button", name="Accept these tools").click()
    expect(shown.get_by_role("status")).to_have_text("Ready")
    tab.write(f"call tool {prefix}_grown {{}}\nsay: It said {{result}}.")
    allow(tab)
    expect(tab.answers.last.locator(".md").last).to_contain_text("It said grown.")
    tab.rest()
