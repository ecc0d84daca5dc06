"""The published React clients in Chromium against the product as real processes.

Packages that cannot be fetched or bundled are a failure. A missing Chromium skips everything, and fails with CI set.
"""

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.acceptance.product import UNLIMITED, Plan, Product, start_product
from tests.acceptance.proxy import CuttingProxy
from tests.chromium import launched
from tests.clients.bundle import DIST, PAGES, served_bundles
from tests.clients.dom_page import DomPage
from tests.clients.room import Hops, Room
from tests.clients.tab import Tab
from tests.clients.ways import look_on

PATIENT = {"THINK_MODEL_STALL_SECONDS": "170"}  # a test holds the provider for as long as a busy machine needs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder runs the published clients."""
    for item in items:
        if "tests/clients/" in Path(item.path).as_posix():
            item.add_marker("clients")


class MakeRoom(Protocol):
    """Makes a conversation: `room_of("name", line="sdk6", agent="desk")`."""

    def __call__(
        self, name: str = "", *, line: str = "sdk7", agent: str = "assistant", entry: str = "app", sub: Hops = ()
    ) -> Room: ...


@pytest.fixture(scope="session")
def pages() -> Iterator[str]:
    """Address of the bundled pages. Packages that cannot be fetched fail the tests: nothing would be tested."""
    with served_bundles() as address:
        yield address


@pytest.fixture(scope="session")
def _shared_product(pages: str) -> Iterator[Product]:
    folder = Path(tempfile.mkdtemp(prefix="thkc"))
    try:
        product = start_product(
            folder,
            Plan(environ=UNLIMITED | PATIENT | {"THINK_ALLOWED_ORIGINS": pages}),
        )
        yield product
        product.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def product(_shared_product: Product) -> Product:
    """One web server, one worker, the scripted provider, Redis; whatever a test killed runs again."""
    _shared_product.revive()
    return _shared_product


@pytest.fixture(scope="package")
def client_browser() -> Iterator[Browser]:
    """Chromium for the tests of this folder: starting one takes longer than most of them."""
    with launched() as chromium:
        yield chromium


@pytest.fixture(scope="package")
def _shared_context(client_browser: Browser) -> Iterator[BrowserContext]:
    made = client_browser.new_context()
    yield made
    made.close()


GIVES_OPTIONS = ("test_agent_options.py", "test_hook_options.py", "test_letting_go.py", "test_side_frames.py")
"""Tests that give options to their pages (`given.py`): a profile cannot forget them, so each has one of its own."""


@pytest.fixture
def context(
    request: pytest.FixtureRequest, client_browser: Browser, _shared_context: BrowserContext
) -> Iterator[BrowserContext]:
    """A browser profile without pages and cookies. It keeps its cache: the scripts of the pages are large."""
    if request.path.name in GIVES_OPTIONS:
        own = client_browser.new_context()
        yield own
        own.close()
        return
    yield _shared_context
    for page in _shared_context.pages:
        page.close()
    _shared_context.clear_cookies()


@pytest.fixture
def room_of(product: Product, pages: str, context: BrowserContext) -> MakeRoom:
    """Make conversations."""

    def make(
        name: str = "", *, line: str = "sdk7", agent: str = "assistant", entry: str = "app", sub: Hops = ()
    ) -> Room:
        name = name or f"room-{uuid.uuid4().hex[:8]}"
        page = next(page for page, made_of in PAGES.items() if made_of == entry)
        base, script = f"{pages}/{line}/{page}", f"{entry}.js"
        return Room(
            product, name, lambda label: Tab(context.new_page(), label), base, agent=agent, script=script, sub=sub
        )

    return make


@pytest.fixture
def make_dom_room(product: Product, pages: str) -> Iterator[MakeRoom]:
    """Make conversations whose tabs have no browser, only a document."""
    opened: list[DomPage] = []

    def new_tab(label: str) -> Tab:
        opened.append(DomPage(DIST, product.folder / "dom.log"))
        return Tab(opened[-1], label)

    def make(
        name: str = "", *, line: str = "sdk7", agent: str = "assistant", entry: str = "app", sub: Hops = ()
    ) -> Room:
        page = next(page for page, made_of in PAGES.items() if made_of == entry)
        name = name or f"room-{uuid.uuid4().hex[:8]}"
        return Room(product, name, new_tab, f"{pages}/{line}/{page}", agent=agent, sub=sub)

    yield make
    for page in opened:
        page.close()


@pytest.fixture
def line() -> str:
    """The AI SDK of the pages, where a test is not run with each."""
    return "sdk7"


@pytest.fixture
def room(request: pytest.FixtureRequest, room_of: MakeRoom, line: str) -> Room:
    """An empty conversation. A mark says of whom, and on which page: `pytest.mark.room(agent="crier")`."""
    mark = request.node.get_closest_marker("room")
    return room_of(line=line, **(mark.kwargs if mark else {}))


@pytest.fixture
def observer(room: Room) -> Tab:
    """A user who looks on."""
    return look_on(room)


@pytest.fixture
def proxy(product: Product) -> Iterator[CuttingProxy]:
    """A line to the web server that a test can cut."""
    line = CuttingProxy([product.webs[0].port])
    yield line
    line.close()
