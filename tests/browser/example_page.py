"""The page of an example."""

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.accessibility import check
from tests.browser.looks import SCHEMES, SIZES


def send(page: Page, text: str) -> None:
    question = page.get_by_label("Your message")
    question.fill(text)
    page.get_by_role("button", name="Send").click()  # there is none while an answer runs
    expect(question).to_have_value("")


def look(page: Page, name: str, state: str, folder: str | None) -> None:
    for size, shape in SIZES.items():
        page.set_viewport_size(shape)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            check(page)
            if folder:
                page.screenshot(path=str(Path(folder) / f"example-{name}-{state}-{size}-{scheme}.png"))
        width = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
        assert width <= 0, f"{name}, {state}: wider than a {size}"
