"""What the server embeds in a page, changed on its way: one server has one set of agents and one model."""

import json
import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Route

from tests.browser.chat_page import ChatPage

_BOOT = re.compile(r'(<script id="boot" type="application/json">)(.*?)(</script>)', re.DOTALL)


def change_boot(tab: ChatPage, change: Callable[[dict[str, Any]], object], pages: str = "**/c/new*") -> None:
    """Apply a change to what is embedded in pages that are opened from now on. They open no line, and do not rest."""
    tab.holds_back = True

    def patched(found: "re.Match[str]") -> str:
        embedded = json.loads(found[2])
        change(embedded)
        return found[1] + json.dumps(embedded).replace("<", "\\u003c") + found[3]

    def answer(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=_BOOT.sub(patched, response.text()))

    tab.page.route(pages, answer)


def with_model(tab: ChatPage, model: dict[str, Any]) -> None:
    """Open the page as if this model answered."""
    change_boot(tab, lambda boot: boot.update(model=model))
    tab.page.route("**/api/v1/models?*", lambda route: route.fulfill(json={"items": []}))
    tab.open("/c/new")
