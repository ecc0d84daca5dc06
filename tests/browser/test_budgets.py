"""What a first visit costs: bytes, and times on a slow machine behind a slow line.

Times are printed; sizes and the shift are asserted.

The reading machine is four times slower than this one and has 10 Mbit/s with 40 ms of latency, as Chromium emulates it.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.reading import history

SCRIPT_BUDGET = 112_000
"""Bytes of script, compressed, that a first visit may load before the page can be used."""
SHIFT_BUDGET = 0.005
"""Cumulative layout shift: what moves without being asked to. Fonts of a system may move a line by a pixel."""
WATCH = """() => {
    window.shift = 0;
    window.paints = {};
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.paints[entry.name] = entry.startTime;
    }).observe({ type: "paint", buffered: true });
    window.policyBroken = [];
    addEventListener("securitypolicyviolation", (event) => policyBroken.push(event.violatedDirective));
}"""
READY = """() => new Promise((resolve) => {
    const isReady = () => document.documentElement.dataset.ready;
    const look = () => isReady() ? resolve(performance.now()) : requestAnimationFrame(look);
    look();
})"""


@pytest.mark.smoke("desktop")
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_first_visit(
    new_context: Callable[..., BrowserContext], live_product: LiveProduct, shape: dict[str, Any]
) -> None:
    context = new_context(shape)
    key = live_product.seed("Budget", history(50))
    page = context.new_page()
    page.add_init_script(f"({WATCH})()")
    session = context.new_cdp_session(page)
    received = _count_bytes(session)
    session.send(
        "Network.emulateNetworkConditions",
        {"offline": False, "latency": 40, "downloadThroughput": 10e6 / 8, "uploadThroughput": 10e6 / 8},
    )
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    page.goto(f"http://127.0.0.1:{live_product.port}/c/{key}", wait_until="commit")
    interactive = page.evaluate(READY)
    page.wait_for_timeout(400)  # the last reports of the line
    at_first = dict(received)
    page.wait_for_timeout(4_000)  # only time shows what else moves or is loaded
    paints, shift, broken = page.evaluate("[window.paints, window.shift, window.policyBroken]")
    print(  # noqa: T201 - the figures are the report
        f"first paint {paints.get('first-contentful-paint', 0):.0f} ms, interactive {interactive:.0f} ms, "
        f"shift {shift:.4f}, at first {json.dumps(at_first)}, when quiet {json.dumps(received)}"
    )
    assert paints["first-contentful-paint"] > 0
    assert 0 < at_first["Script"] < SCRIPT_BUDGET, at_first
    assert shift <= SHIFT_BUDGET
    assert broken == []


def _count_bytes(session: Any) -> dict[str, int]:
    """Bytes on the line by kind of resource, counted as they come."""
    kinds: dict[str, str] = {}
    received = {"Document": 0, "Script": 0, "Stylesheet": 0}

    def note_kind(event: dict[str, Any]) -> None:
        kinds[event["requestId"]] = event["type"]

    def note_end(event: dict[str, Any]) -> None:
        kind = kinds.get(event["requestId"], "Other")
        received[kind] = received.get(kind, 0) + int(event["encodedDataLength"])

    session.on("Network.responseReceived", note_kind)
    session.on("Network.loadingFinished", note_end)
    session.send("Network.enable")
    return received


def test_second_visit_loads_no_script(new_context: Callable[..., BrowserContext], live_product: LiveProduct) -> None:
    context = new_context()
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{live_product.port}/c/new")
    page.wait_for_selector("html[data-ready]", state="attached")
    again = context.new_page()
    received = _count_bytes(context.new_cdp_session(again))
    again.goto(f"http://127.0.0.1:{live_product.port}/c/new")
    again.wait_for_selector("html[data-ready]", state="attached")
    assert received["Script"] == 0, received
    assert received["Stylesheet"] == 0, received
