"""The admin and the API's documentation: axe finds nothing, nothing is too wide, the keyboard is enough.

Each page is looked at with everything in it, with nothing in it, with thousands of rows, and by people who may not.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import PHONE
from tests.browser.live_product import LiveProduct

WIDE = {"viewport": {"width": 1400, "height": 900}}
TABLET = {"viewport": {"width": 1024, "height": 800}}
LOOKS = [(WIDE, "light"), (TABLET, "dark"), (PHONE, "dark")]
LISTS = [
    *("think_chat/agentinstance", "think_sessions/session", "think_sessions/message", "think_chat/attachment"),
    *("think_chat/turn", "think_chat/streamsegment", "think_tools/toolcallrecord", "think_fibers/fiber"),
    *(
        "think_fibers/effectstate",
        "think_fibers/schedule",
        "think_chat/agentrun",
        "think_chat/agentmessage",
        "think_chat/durablestream",
        "think_chat/streamsubscription",
    ),
    *("think_chat/revert", "think_tools/permissionrule"),
    *("think_tools/execution", "think_tools/storedworkspace", "think_tools/workspaceentry"),
    *("think_sessions/contextblock", "think_sessions/contextentry", "think_sessions/compaction"),
    *("think_sessions/contextchange", "think_chat/apitoken", "auth/user", "auth/group"),
    *("axes/accessattempt", "axes/accesslog", "axes/accessfailurelog"),
]

LABELS = """() => [...document.querySelectorAll(
        "label:not(:has([type=radio])), thead th, dt, legend, h2, h3, .help, button, [type=submit], summary, "
        + ".object-tools a"
    )].filter((each) => each.checkVisibility())
    .map((each) => (each.tagName == "INPUT" ? each.value : each.textContent).trim())
    .filter((text) => /[A-Za-z]{3}/.test(text) && !text.includes("~"))"""
"""Labels of a page that are plain English: made-up languages pad with tildes. Some choices are names of people."""

NewContext = Callable[..., BrowserContext]


class Desk:
    """A member of the staff at a browser. What the pages load and complain about is noted."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        self.is_listening = True
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("request", lambda request: self._note_address(request.url))

    def open(self, path: str) -> Page:
        response = self.page.goto(f"{self.origin}{path}")
        assert response is not None
        assert response.status == 200, path
        return self.page

    def check(self, *within: str) -> None:
        """Unfold everything, then look at the whole page, or for axe at what has changed: `within` has selectors."""
        page = self.page
        assert self.complaints == [], (page.url, self.complaints)
        assert self.foreign == [], (page.url, self.foreign)
        page.evaluate("document.querySelectorAll('main details').forEach((each) => { each.open = true; })")
        assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0, page.url
        self.is_listening = False  # axe tries to load styles of its own, which the policy refuses
        violations = Axe().run(page, context=list(within) or None).response["violations"]
        self.is_listening = True
        found = [(rule["id"], [node["target"] for node in rule["nodes"]][:3]) for rule in violations]
        assert not found, (page.url, found)

    def check_list(self, path: str) -> None:
        """Look at a list; at 1,400 px its table needs no scrolling."""
        page = self.open(f"/admin/{path}")
        width = page.viewport_size["width"] if page.viewport_size else 0
        if width >= 1400:
            tables = page.locator(".results").evaluate_all(
                "all => all.map((each) => each.scrollWidth - each.clientWidth)"
            )
            assert max(tables, default=0) <= 0, path
        self.check()

    def _note(self, kind: str, text: str) -> None:
        if self.is_listening and kind in {"error", "warning"}:
            self.complaints.append(text)

    def _note_address(self, url: str) -> None:
        if not url.startswith((self.origin, "data:", "blob:")):
            self.foreign.append(url)


@pytest.fixture
def sit_down(new_context: NewContext, live_product: LiveProduct) -> Callable[..., Desk]:
    """Sit down at a browser of this shape and colour scheme, as a superuser."""

    def make(shape: dict[str, Any] = WIDE, scheme: str = "light", **options: Any) -> Desk:
        page = new_context(shape, color_scheme=scheme, **options).new_page()
        live_product.call("make_staff", live_product.user_id)
        return Desk(page, f"http://127.0.0.1:{live_product.port}")

    return make


def stage(live_product: LiveProduct, name: str, *arguments: Any) -> Any:
    return live_product.hand.call(f"tests.browser.admin_stage:{name}", live_product.user_id, *arguments)


def pages_of(ids: dict[str, Any]) -> list[str]:
    conversation = f"think_chat/agentinstance/{ids['instance']}"
    return [
        *("", f"{conversation}/change/", f"{conversation}/change/?at=a4", f"{conversation}/config/"),
        *(f"{conversation}/edit-message/?message=a2", f"{conversation}/add-message/", f"{conversation}/history/"),
        *(f"{conversation}/{page}/" for page in ("state", "schedule", "workspaces", "skills")),
        *(f"think_chat/turn/{ids['turn']}/change/", f"think_chat/turn/{ids['failed']}/change/"),
        *(f"think_fibers/fiber/{ids['fiber']}/change/", f"think_tools/toolcallrecord/{ids['call']}/change/"),
        *(f"think_sessions/session/{ids['session']}/change/", "think_sessions/message/search/?q=weather"),
        *("think_chat/agentinstance/prune/?days=0&include_all=on", "think_chat/agentinstance/storage/"),
        *(f"think_chat/apitoken/{ids['token']}/change/", f"think_chat/attachment/{ids['file']}/change/"),
        *(f"think_tools/{page}/change/" for page in ids["tools"]),
        *(f"{page}/change/" for page in (*ids["durable"], *ids["streams"])),
        f"think_chat/{ids['undone']}/change/",
        "think_chat/agentmessage/add/",
    ]


@pytest.mark.smoke("wide")
@pytest.mark.parametrize(("shape", "scheme"), LOOKS, ids=["wide", "tablet", "phone"])
def test_pages_with_everything_in_them(
    sit_down: Callable[..., Desk], live_product: LiveProduct, shape: dict[str, Any], scheme: str
) -> None:
    ids = stage(live_product, "furnish")
    desk = sit_down(shape, scheme)
    for path in pages_of(ids):
        desk.open(f"/admin/{path}")
        desk.check()


@pytest.mark.parametrize(("shape", "scheme"), LOOKS, ids=["wide", "tablet", "phone"])
def test_lists(sit_down: Callable[..., Desk], live_product: LiveProduct, shape: dict[str, Any], scheme: str) -> None:
    stage(live_product, "furnish")
    desk = sit_down(shape, scheme)
    for path in LISTS:
        desk.check_list(f"{path}/")


@pytest.mark.parametrize("language", ["en-XA", "ar-XB"])
def test_longer_languages_and_those_from_right_to_left(
    sit_down: Callable[..., Desk], live_product: LiveProduct, language: str
) -> None:
    ids = stage(live_product, "furnish")
    desk = sit_down(locale=language)
    english: dict[str, list[str]] = {}
    for path in [*pages_of(ids), *(f"{path}/" for path in LISTS)]:
        page = desk.open(f"/admin/{path}")
        assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0, path
        assert page.locator(".results").evaluate_all("all => all.every((each) => each.scrollWidth <= each.clientWidth)")
        english[path] = page.evaluate(LABELS)
    page = desk.open("/api/v1/docs")
    assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
    expect(page.get_by_role("heading", level=1)).to_be_in_viewport()
    assert {path: labels for path, labels in english.items() if labels} == {}


def test_thousands_of_rows_and_nothing_at_all(sit_down: Callable[..., Desk], live_product: LiveProduct) -> None:
    desk = sit_down()
    large, empty = stage(live_product, "grow", 5000, 5000), stage(live_product, "empty")
    for path in ("think_chat/agentinstance/", "think_sessions/message/", "think_chat/turn/?status=skipped"):
        desk.check_list(path)
    page = desk.open(f"/admin/think_chat/agentinstance/{large}/change/")
    expect(page.locator(".think-message")).to_have_count(50)
    desk.check()
    page.get_by_role("link", name="Older messages").click()
    expect(page.get_by_text("Line 4900.").first).to_be_visible()
    desk.open(f"/admin/think_chat/agentinstance/{empty}/change/")
    expect(page.get_by_text("No messages yet.")).to_be_visible()
    desk.check()


def test_who_may_only_look_finds_no_buttons(sit_down: Callable[..., Desk], live_product: LiveProduct) -> None:
    ids = stage(live_product, "furnish")
    desk = sit_down()
    stage(live_product, "allow_only", "view_agentinstance", "view_message")
    page = desk.open(f"/admin/think_chat/agentinstance/{ids['instance']}/change/")
    expect(page.get_by_text("What is the weather in Oslo?")).to_be_visible()
    for name in ("Edit", "Reply below", "Ask again", "Stop", "Add a message"):
        assert page.get_by_role("button", name=name).count() + page.get_by_role("link", name=name).count() == 0
    desk.check()
    response = page.goto(f"{desk.origin}/admin/think_chat/agentinstance/{ids['instance']}/add-message/")
    assert response is not None
    assert response.status == 403
    stage(live_product, "allow_only", "view_agentinstance")
    desk.complaints.clear()  # the refusal is one
    page = desk.open(f"/admin/think_chat/agentinstance/{ids['instance']}/change/")
    expect(page.get_by_text("needs the permission to view messages")).to_be_visible()
    desk.check()


@pytest.mark.smoke
def test_the_keyboard_is_enough_to_edit_and_to_choose_a_branch(
    sit_down: Callable[..., Desk], live_product: LiveProduct
) -> None:
    said = [
        {"id": "q", "role": "user", "parts": [{"type": "text", "text": "Where do penguins live?"}]},
        {"id": "a", "role": "assistant", "parts": [{"type": "text", "text": "In the north."}]},
    ]
    desk = sit_down()
    instance = live_product.seed("Birds", said)
    page = desk.open(f"/admin/think_chat/agentinstance/{instance}/change/")
    _reach(page, "Edit message 2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Edit a message")).to_be_visible()
    _reach(page, "Text:")
    page.keyboard.press("Control+A")
    page.keyboard.type("In the south.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("checkbox")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Edited by")).to_be_visible()
    expect(page.get_by_text("In the south.").first).to_be_visible()
    _reach(page, "Version before this one")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This is another branch.")).to_be_visible()
    _reach(page, "Show this branch to everyone")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The conversation shows this branch now.")).to_be_visible()
    expect(page.get_by_text("In the north.").first).to_be_visible()
    desk.check()


def test_deleting_asks_first(sit_down: Callable[..., Desk], live_product: LiveProduct) -> None:
    desk = sit_down()
    live_product.seed("Threadbare things", [])  # a title of this test alone: staff see everybody's
    page = desk.open("/admin/think_chat/agentinstance/?q=Threadbare")
    page.get_by_role("checkbox", name="Select all").check()
    page.get_by_role("combobox").select_option(label="Delete with everything in it")
    page.get_by_role("button", name="Go").click()
    expect(page.get_by_role("heading", name="Delete these conversations?")).to_be_visible()
    desk.check()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("was deleted")).to_be_visible()


@pytest.mark.smoke("wide")
@pytest.mark.parametrize(("shape", "scheme"), LOOKS, ids=["wide", "tablet", "phone"])
def test_the_documentation_of_the_api(sit_down: Callable[..., Desk], shape: dict[str, Any], scheme: str) -> None:
    desk = sit_down(shape, scheme)
    page = desk.open("/api/v1/docs")
    desk.check()
    page.goto(f"{desk.origin}/api/v1/docs#list_instances")
    operation = page.locator("#list_instances")
    operation.get_by_role("button", name="Send GET").click()
    expect(operation.get_by_role("status")).to_have_text(re.compile("^200"))
    expect(operation.locator(".result")).to_contain_text('"items"')
    create = page.locator("#create_instance")
    create.locator("summary").click() if create.get_attribute("open") is None else None
    create.get_by_label("Body (JSON)").fill("{")
    create.get_by_role("button", name="Send POST").click()
    expect(create.get_by_role("status")).to_have_text("The body is no JSON.")
    create.get_by_label("Body (JSON)").fill('{"agent": "assistant", "title": "Made by hand"}')
    create.get_by_role("button", name="Send POST").click()
    expect(create.get_by_role("status")).to_have_text(re.compile("^20[01]"))
    desk.check("#list_instances", "#create_instance")  # the rest is as it was, and very long


def _reach(page: Page, name: str) -> None:
    """Press Tab until what has this name has the focus."""
    focused = """(() => {
        const here = document.activeElement, label = here.labels?.[0] ?? here;
        return (here.getAttribute("aria-label") || label.innerText || "").replace(/\\s+/g, " ").trim();
    })()"""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate(focused) == name:
            return
    raise AssertionError(f"the keyboard does not reach {name!r}")
