"""What keeps the main thread of a page busy."""

from typing import Any

WATCH = """() => {
    window.busy = 0;
    window.longest = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => {
        busy += entry.duration;
        longest = Math.max(longest, entry.duration);
    })).observe({ type: "longtask", buffered: false });
    window.touched = 0;
    const frozen = [...document.querySelectorAll(".message")];
    new MutationObserver((list) => {
        const isIn = ({ target }) => frozen.some((node) => node !== target && node.contains(target));
        touched += list.filter(isIn).length;
    }).observe(document.getElementById("messages"), { subtree: true, childList: true, characterData: true });
}"""


def metrics(session: Any) -> dict[str, float]:
    """Chromium's own counters of the main thread, in seconds."""
    return {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
