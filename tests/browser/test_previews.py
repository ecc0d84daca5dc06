"""Previews of what models and people wrote: shown as what they describe, on an origin that reaches nothing."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from playwright.sync_api import Dialog, FrameLocator, Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.files_panel import Files
from tests.browser.live_product import LiveProduct
from tests.browser.parts import message
from tests.browser.script_lines import say

SALES = "month,amount,note\nJan,9,a\nFeb,10,b\n" + "".join(f"M{n},{n},x\n" for n in range(100, 1_300))
CHART = {
    "mark": "bar",
    "title": "Sales",
    "data": {"values": [{"m": "Jan", "n": 3, "kind": "a"}, {"m": "Feb", "n": 5, "kind": "b"}]},
    "encoding": {"x": {"field": "m"}, "y": {"field": "n"}, "color": {"field": "kind"}},
}
BLOCKS = f"""Here they are.

```html
<!doctype html><h1 id=t>First</h1><script>document.getElementById("t").textContent = "Ran by itself"</script>
```

```mermaid
flowchart LR
  A[Ask] --> B[Answer]
```

```markdown
# Title

- [x] done, `code`, ![a picture](https://evil.example/a.png)
```

```csv
{SALES}```

```chart
{json.dumps(CHART)}
```

```svg
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10" onload="window.pwned = 1"><script>window.pwned = 1</script>
<image href="https://evil.example/b.png"/><circle id="dot" cx="5" cy="5" r="4"/></svg>
```

```python
print("no preview")
```
"""

ATTACK = (Path(__file__).parent / "hostile.html").read_text()
REFUSED = [
    *("cookies", "storage", "database", "caches", "parent", "frame element", "top", "popup", "fetch", "own server"),
    *("image", "script", "style", "video", "socket", "events", "worker", "service worker"),
]


@contextmanager
def listening() -> Iterator[tuple[int, list[str]]]:
    """A server that notes each request and refuses none."""
    heard: list[str] = []

    class Note(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        do_POST = do_HEAD = do_OPTIONS = do_GET  # noqa: N815 - names of the library

        def log_message(self, *_args: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Note)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_address[1], heard
    finally:
        server.shutdown()
        server.server_close()


def shown(tab: ChatPage) -> FrameLocator:
    """The document of the preview that is shown."""
    return tab.page.frame_locator(".preview-frame:not(.is-coming)")


def in_frame(tab: ChatPage, script: str) -> Any:
    """What a script finds in that document."""
    return shown(tab).locator("html").evaluate(script)


def open_block(tab: ChatPage, language: str) -> Locator:
    """Press *Preview* of a piece of code; returns the panel."""
    figure = tab.answers.last.locator("figure.code").filter(has=tab.page.locator(f"code.language-{language}"))
    figure.get_by_role("button", name="Preview").click()
    panel = tab.page.get_by_role("tabpanel", name="Files")
    expect(panel.locator(f".preview-frame[data-kind={language}]:not(.is-coming)")).to_be_visible()
    return panel


def test_code_of_an_answer_is_shown_as_what_it_describes(open_tab: Any, live_product: LiveProduct) -> None:
    tab: ChatPage = open_tab("/c/new", viewport={"width": 1440, "height": 900})
    key = live_product.seed("Blocks", [message("q", "user", "Show them."), message("a", "assistant", BLOCKS)])
    scripts: list[str] = []
    tab.page.on("request", lambda request: scripts.append(request.url))
    tab.open(f"/c/{key}")
    python = tab.answers.last.locator("figure.code").filter(has=tab.page.locator("code.language-python"))
    expect(python.get_by_role("button")).to_have_text(["Wrap", "Copy"])
    assert not any("mermaid" in url or "/frame." in url for url in scripts)

    panel = open_block(tab, "html")
    expect(shown(tab).get_by_role("heading")).to_have_text("Ran by itself")
    expect(panel).to_contain_text("This preview reaches no other server.")
    panel.get_by_role("button", name="Source").click()
    expect(panel.locator(".lines")).to_contain_text("Ran by itself")

    open_block(tab, "mermaid")
    expect(shown(tab).locator("svg")).to_contain_text("Answer")
    assert sum("mermaid" in url and url.endswith(".js") for url in scripts) == 1
    open_block(tab, "markdown")
    expect(shown(tab).get_by_role("heading")).to_have_text("Title")
    expect(shown(tab).locator(".inert-image")).to_contain_text("evil.example")
    open_block(tab, "csv")
    frame = shown(tab)
    expect(frame.locator("tbody tr")).to_have_count(1_000)
    expect(frame.locator(".preview-table .muted")).to_have_text("The first 1,000 of 1,202 rows")
    frame.get_by_role("button", name="amount").click()
    frame.get_by_role("button", name="amount").click()
    expect(frame.locator("tbody tr").first.locator("td").nth(1)).to_have_text("1299")
    open_block(tab, "chart")
    expect(shown(tab).get_by_role("img", name="Sales").locator("rect")).to_have_count(2)
    open_block(tab, "svg")
    expect(shown(tab).locator("#dot")).to_be_visible()
    assert in_frame(tab, "() => window.pwned ?? null") is None

    tab.write("rate 15/s\n" + say("```markdown\n# It grows\n\n" + "word " * 40 + "\n\nAt last.\n```"))
    expect(tab.page.locator(".message.is-live figure.code")).to_be_visible()
    open_block(tab, "markdown")
    expect(shown(tab).get_by_role("heading")).to_have_text("It grows")
    assert "At last." not in shown(tab).locator("article").inner_text()
    expect(shown(tab).locator("article")).to_contain_text("At last.")
    tab.errors.clear()  # the policy names each thing that it refused
    assert {url.split("/")[2] for url in tab.foreign} <= {"evil.example"}
    tab.foreign.clear()


def test_a_hostile_page_reaches_nothing(open_tab: Any) -> None:
    with listening() as (port, requests):
        tab: ChatPage = open_tab("/c/new")
        opened: list[object] = []

        def refuse(dialog: Dialog) -> None:
            opened.append(dialog.message)
            dialog.dismiss()

        tab.page.context.on("page", lambda page: opened.append(page.url))
        tab.page.on("download", lambda download: opened.append(download.url))
        tab.page.on("dialog", refuse)
        tab.ask(say("```html\n" + ATTACK.replace("PORT", str(port)) + "\n```"))
        address = tab.page.url
        open_block(tab, "html")
        out = shown(tab).locator("#out")
        expect(out).to_contain_text("service worker", timeout=60_000)
        found = json.loads(out.inner_text())
        assert {name: found[name] for name in REFUSED} == dict.fromkeys(REFUSED, "refused")
        frames = tab.page.locator(".preview-frame")
        tab.until(
            lambda: "leaves" not in (in_frame(tab, "() => document.title") or "")
        )  # what it leaves for is refused by the page around it
        assert requests == []
        assert tab.page.url.split("?")[0] == address.split("?")[0]
        assert opened == []  # no window, no download, no dialog
        expect(frames).to_have_count(1)
        expect(tab.input).to_be_enabled()
        expect(tab.page.get_by_text("This can’t be shown")).to_have_count(0)
        tab.errors.clear()
        tab.foreign.clear()


def test_a_file_is_previewed_with_its_versions_and_the_network_only_when_allowed(
    open_tab: Any, live_product: LiveProduct
) -> None:
    tab: ChatPage = open_tab("/c/new")
    files = Files(tab, live_product)
    reached: list[str] = []

    def answer(route: Any) -> None:
        reached.append(route.request.url)
        route.fulfill(status=200, content_type="text/plain", body="there", headers={"Access-Control-Allow-Origin": "*"})

    tab.page.route("https://elsewhere.example/**", answer)
    files.open()
    asks = "fetch('https://elsewhere.example/a').then((r) => r.text(), () => 'refused').then((t) => b.append(t))"
    script = f"<script>{asks}</script>"
    files.put("/page.html", f"<div id=b style='height:3000px'>one </div>{script}")
    panel = files.open("&file=/page.html")
    expect(shown(tab).locator("#b")).to_have_text("one refused")
    panel.get_by_role("button", name="Allow the network").click()
    expect(panel).to_contain_text("may load from other servers")
    expect(shown(tab).locator("#b")).to_have_text("one there")
    assert reached == ["https://elsewhere.example/a"]

    in_frame(tab, "() => scrollTo(0, 700)")
    changed = {"path": "/page.html", "content": "<div id=b style=height:3000px>two</div>"}
    tab.ask(f"call tool write {json.dumps(changed)}\nsay: Written.")
    expect(tab.page.locator(".preview-frame")).to_have_count(1)
    tab.until(lambda: shown(tab).locator("#b").inner_text() == "two")
    assert in_frame(tab, "() => scrollY") == 700
    panel.get_by_role("button", name="Versions").click()
    panel.get_by_role("button", name="Until").click()
    expect(shown(tab).locator("#b")).to_contain_text("one")
    tab.errors.clear()
    tab.foreign.clear()
