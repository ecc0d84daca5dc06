"""A conversation on paper: all of it, and nothing of the page around it."""

import io
from typing import Any

from playwright.sync_api import expect
from pypdf import PdfReader

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.parts import message
from tests.browser.reading import history

END = """See [the manual](https://example.com/manual?page=1).

```python
LONG = "%s"
```
""" % ("wrapped " * 60)


def test_a_conversation_prints_whole(open_tab: Any, live_product: LiveProduct) -> None:
    tab: ChatPage = open_tab("/c/new", color_scheme="dark")
    key = live_product.seed("Minutes", [*history(160), message("end", "user", "And?"), message("e", "assistant", END)])
    tab.page.add_init_script("window.printed = 0; window.print = () => { window.printed += 1; }")
    tab.open(f"/c/{key}")
    expect(tab.messages).to_have_count(50)
    tab.page.keyboard.press("Control+p")
    tab.until(lambda: tab.page.evaluate("window.printed"))
    expect(tab.messages).to_have_count(162)

    tab.page.emulate_media(media="print", color_scheme="dark")
    for gone in (
        "#conversations",
        "#composer",
        ".main-head button",
        ".message-foot .icon-button",
        ".code figcaption .quiet",
    ):
        expect(tab.page.locator(gone).first).to_be_hidden()
    assert (
        tab.page.evaluate("getComputedStyle(document.body).color") == "rgb(31, 29, 26)"
    )  # light, whatever the screen is
    code = tab.answers.last.locator("figure.code pre")
    assert code.evaluate("pre => pre.scrollWidth <= pre.clientWidth")
    pages = PdfReader(io.BytesIO(tab.page.pdf(format="A4"))).pages
    text = " ".join(" ".join(page.extract_text() for page in pages).split())
    assert len(pages) > 5
    assert "Minutes" in text
    assert all(f"Message {number}." in text for number in range(160))
    assert "the manual (https://example.com/manual?page=1)" in text
    assert "Not all messages" not in text
