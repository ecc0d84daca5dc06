"""Our pages in the admin, wide and narrow: nothing is wider than the page, axe finds nothing in what we made."""

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page

from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.test_states import text


def check(page: Page) -> None:
    """Unfold everything, then look at it. Lists and heads are Django's own."""
    page.evaluate("document.querySelectorAll('#content details').forEach((each) => { each.open = true; })")
    assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0, page.url
    violations = Axe().run(page, context="#content").response["violations"]
    assert not violations, (page.url, [(rule["id"], [n["target"] for n in rule["nodes"]][:3]) for rule in violations])


@pytest.mark.smoke("phone")
@pytest.mark.parametrize(("shape", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_pages_of_the_admin(
    new_context: Callable[..., BrowserContext], live_product: LiveProduct, shape: dict[str, object], scheme: str
) -> None:
    said = [text("q", "user", "Where do penguins live? " + "x" * 300), text("a", "assistant", "In the south.")]
    instance = live_product.seed("Birds", said)
    ids = live_product.call("remember", instance, "q", "a")
    live_product.call("make_staff", live_product.user_id)
    page = new_context(shape, color_scheme=scheme).new_page()
    for path in (
        f"think_sessions/session/{ids['session']}/change/?at=a",
        "think_sessions/message/search/?q=penguins",
        f"think_sessions/contextblock/{ids['block']}/change/",
        f"think_chat/agentinstance/{instance}/config/",
        "think_chat/agentinstance/prune/?days=0&include_all=on",
        "think_chat/agentinstance/storage/",
    ):
        page.goto(f"http://127.0.0.1:{live_product.port}/admin/{path}")
        check(page)
