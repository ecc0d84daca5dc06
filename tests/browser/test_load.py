"""Long conversations and long answers: the page stays quick. Figures are printed, what is asserted is structure."""

import json
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from tests.browser.chat_page import ChatPage
from tests.browser.main_thread import WATCH, blocking, metrics
from tests.browser.parts import message
from tests.browser.reading import history


def test_four_hundred_messages_and_fifteen_hundred_chunks(tab: ChatPage, live_product: Any) -> None:
    key = live_product.seed("Long", history(400))
    tab.open(f"/c/{key}")

    def has_all() -> bool:
        tab.page.evaluate("document.getElementById('scroller').scrollTop = 0")
        return tab.messages.count() == 400

    tab.until(has_all)
    tab.page.evaluate("document.getElementById('to-end').click()")
    tab.page.evaluate(WATCH)
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # CPU of the thread, not of busy neighbours
    before, began = metrics(session), time.monotonic()
    tab.write("rate 200/s\nstream 1500 words")
    expect(tab.page.locator(".message.is-live")).to_be_visible(timeout=20_000)
    expect(tab.stop_button).to_be_hidden(timeout=60_000)
    share = (metrics(session)["TaskDuration"] - before["TaskDuration"]) / (time.monotonic() - began)
    long_tasks, longest, touched = tab.page.evaluate("[busy, longest, touched]")
    print(f"main thread busy {share:.0%}, long tasks {long_tasks:.0f} ms in all, longest {longest:.0f} ms")  # noqa: T201 - the figure is the report
    assert touched == 0, "a message that is not being written was changed while another one streamed"
    assert len(tab.text_of_last().split()) == 1500


RICH = """Of {n}: $\\sum_{{k=1}}^{{{n}}} \\frac{{k^2}}{{\\sqrt{{k+{n}}}}}$ and $e^{{i\\pi}}+1=0$.

$$\\begin{{pmatrix}} a_{{{n}}} & b \\\\ c & d \\end{{pmatrix}} \\cdot \\int_0^1 x^{{{n}}}\\,dx = \\prod_j \\alpha_j$$

```python
def number_{n}(values: list[int]) -> int:
    \"\"\"The sum of squares.\"\"\"
    return sum(value ** 2 for value in values if value % {n} != 0)  # all of them
```

| a | b |
|---|---|
| {n} | $x_{n}$ |
"""


def rich_history(count: int) -> list[dict[str, Any]]:
    """A path of questions and of answers with formulas, code and tables."""
    texts = (RICH.format(n=number) * 2 if number % 2 else f"Question {number}?" for number in range(count))
    return [message(f"m{number}", "assistant" if number % 2 else "user", text) for number, text in enumerate(texts)]


ORDER = """() => {
    window.dressed = [];
    const isSeen = (element) => element.checkVisibility({ contentVisibilityAuto: true });
    new MutationObserver((list) => list.forEach(({ target }) => {
        if (target.matches?.(".math.is-shown")) dressed.push(isSeen(target));
    })).observe(document, { subtree: true, attributes: true, attributeFilter: ["class"] });
}"""


def test_two_thousand_messages_on_a_slow_machine(
    tab: ChatPage, live_product: Any, shared_chromium: Browser, tmp_path: Path
) -> None:
    key = live_product.seed("Rich", rich_history(2_000))
    tab.page.goto("about:blank")
    tab.page.add_init_script(f"({ORDER})()")
    shared_chromium.start_tracing(page=tab.page, path=str(tmp_path / "trace.json"), categories=["toplevel"])
    tab.open(f"/c/{key}")
    tab.rest()
    shared_chromium.stop_tracing()
    blocked, longest = blocking(json.loads((tmp_path / "trace.json").read_text()), slower=4)
    print(f"at a quarter of the speed blocked for {blocked:.0f} ms, longest task {longest:.0f} ms")  # noqa: T201 - the figure is the report
    assert blocked < 600
    dressed = tab.page.evaluate("dressed")
    unseen = [number for number, is_seen in enumerate(dressed) if not is_seen]
    assert dressed, "a formula is dressed after its text is drawn"
    assert not unseen or not any(dressed[unseen[0] :]), "what is seen comes first"
    expect(tab.messages).to_have_count(50)
    expect(tab.page.locator(".math:not(.is-shown)")).to_have_count(0)
