"""What axe finds in a page."""

import json

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page


def check(page: Page) -> None:
    """Run axe; the policy of the page forbids injected scripts, so it is given to the page by the driver."""
    violations = Axe().run(page).response["violations"]
    found = [(rule["id"], [node["target"] for node in rule["nodes"]][:5]) for rule in violations]
    assert not found, json.dumps(found, indent=1)
