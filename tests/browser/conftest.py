"""A browser and a running product for the browser tests.

A missing Chromium skips them loudly; with CI set it fails. The product is the real one in processes of its own, with
the scripted provider behind it; every connection of a page goes through a proxy that a test can cut.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage
from tests.browser.files_panel import Files
from tests.browser.live_product import LiveProduct, start_product
from tests.browser.odd_server import running_odd_server
from tests.chromium import launched, require_chromium

PATIENCE_MS = 20_000
"""How long what is expected may take on a busy machine; it costs nothing where it comes at once."""
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is a browser test."""
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker("browser")


@pytest.fixture(scope="package")
def shared_chromium() -> Iterator[Browser]:
    """Chromium for the tests of this folder: starting one takes longer than most of them."""
    expect.set_options(timeout=PATIENCE_MS)
    with launched() as chromium:
        yield chromium


@pytest.fixture(scope="session")
def live_product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveProduct]:
    """The product in processes of its own; not without a browser for it."""
    require_chromium()
    yield from start_product(tmp_path_factory.mktemp("product"))


@pytest.fixture
def page_line(live_product: LiveProduct) -> Iterator[CuttingProxy]:
    """The line between pages and product; tests may cut it."""
    line = CuttingProxy([live_product.port])
    yield line
    line.close()


@pytest.fixture
def new_context(shared_chromium: Browser, live_product: LiveProduct) -> Iterator[Callable[..., BrowserContext]]:
    """Make a signed-in browser profile of a fresh user: `new_context(PHONE, color_scheme="dark")`."""
    contexts: list[BrowserContext] = []
    cookies = live_product.sign_in()

    def make(shape: dict[str, Any] = DESKTOP, **options: Any) -> BrowserContext:
        usual = {"timezone_id": "UTC", "locale": "en-GB", "service_workers": "block"}  # tests route requests themselves
        context = shared_chromium.new_context(**{**shape, **usual, **options})
        context.add_cookies(cookies)  # type: ignore[arg-type]  # plain dicts, as the driver gives them back
        contexts.append(context)
        return context

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def open_tab(new_context: Callable[..., BrowserContext], page_line: CuttingProxy) -> Iterator[Callable[..., ChatPage]]:
    """Open a tab: `open_tab("/c/new")`, in a new profile or in a given one. Any script error fails the test."""
    tabs: list[ChatPage] = []

    def make(
        path: str = "/c/new", context: BrowserContext | None = None, *, holds_back: bool = False, **options: Any
    ) -> ChatPage:
        page = (context or new_context(**options)).new_page()
        tab = ChatPage(page, f"http://127.0.0.1:{page_line.port}")
        tab.holds_back = holds_back
        tabs.append(tab)
        return tab.open(path)

    yield make
    for tab in tabs:
        tab.let_go()
        serious = [error for error in tab.errors if "Failed to load resource" not in error and "WebSocket" not in error]
        assert not serious, serious
        assert not tab.foreign, tab.foreign


@pytest.fixture
def tab(open_tab: Callable[..., ChatPage]) -> ChatPage:
    """One tab with an empty conversation."""
    return open_tab()


@pytest.fixture
def files(tab: ChatPage, live_product: LiveProduct) -> Files:
    """A conversation with a few files."""
    made = Files(tab, live_product)
    made.put("/notes.md", "# Notes\n\nOne.\n")
    made.put("/src/main.py", "def main():\n    return 1\n")
    made.put("/src/deep/er.txt", "deep")
    return made


@pytest.fixture
def odd_address(tmp_path: Path) -> Iterator[str]:
    """The address of an MCP server in a process of its own."""
    with running_odd_server(tmp_path) as address:
        yield address


@pytest.fixture
def keeper(open_tab: Callable[..., ChatPage]) -> ChatPage:
    """A tab with the agent that remembers in every way."""
    return open_tab("/c/new?agent=keeper")
