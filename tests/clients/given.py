"""Options of the hooks that a test gives to the page, functions too: they are set before the page's own script runs."""

import json
from collections.abc import Mapping

from playwright.sync_api import BrowserContext

NOTE = "const note = (kind, detail) => harness.events.push({kind, at: performance.now(), ...detail});"


def give(context: BrowserContext, *, agent: str = "{}", chat: str = "{}", transport: str = "{}") -> None:
    """Give options, each an object of JavaScript; `note(kind, detail)` may be used in them."""
    context.add_init_script(
        f"(() => {{ {NOTE} globalThis.given = {{agent: {agent}, chat: {chat}, transport: {transport}}}; }})();"
    )


def js(values: Mapping[str, object]) -> str:
    """An object of plain values."""
    return json.dumps(values)
