"""A state of the page as people may meet it: wide and narrow, light and dark. Checked, and drawn when asked.

`SHOTS=folder pytest tests/browser/test_states.py` writes a picture of each.
"""

import os
from pathlib import Path
from typing import Literal

from playwright.sync_api import ViewportSize

from tests.browser.chat_page import ChatPage

SIZES: dict[str, ViewportSize] = {
    "desktop": {"width": 1280, "height": 860},
    "phone": {"width": 390, "height": 844},
}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
_OVERFLOW = """() => {
    const scroller = document.getElementById("scroller");
    const page = document.scrollingElement;
    return [page.scrollWidth - innerWidth, scroller.scrollWidth - scroller.clientWidth];
}"""


def look(tab: ChatPage, name: str) -> None:
    """See the present state at every size: nothing is wider than the page. Ends wide and light."""
    folder = os.environ.get("SHOTS")
    for size, shape in SIZES.items():
        tab.page.set_viewport_size(shape)
        tab.page.evaluate(_DRAWN)  # views that depend on the width are drawn anew
        for scheme in SCHEMES if folder else SCHEMES[:1]:
            tab.page.emulate_media(color_scheme=scheme)
            if folder:
                tab.page.wait_for_timeout(120)  # colours pass into each other; only pictures need it
                tab.page.screenshot(path=str(Path(folder) / f"{name}-{size}-{scheme}.png"))
        assert tab.page.evaluate(_OVERFLOW) == [0, 0], f"{name} is wider than a {size}"
    tab.page.set_viewport_size(SIZES["desktop"])
    tab.page.emulate_media(color_scheme="light")
