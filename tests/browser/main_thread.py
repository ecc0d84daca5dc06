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


def blocking(trace: dict[str, Any], *, slower: float) -> tuple[float, float]:
    """Milliseconds for which a page would be blocked on a machine so much slower, and its longest task.

    Of each task what is beyond 50 ms counts. By the thread's own time, so that busy neighbours do not count.
    """
    events = trace["traceEvents"]
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = [event for event in events if event["ph"] == "X" and event["name"].endswith("RunTask") and "tdur" in event]
    sums: dict[Any, list[float]] = {}
    for thread in threads:
        end = 0.0
        own = (task for task in tasks if (task["pid"], task["tid"]) == thread)
        for task in sorted(own, key=lambda task: float(task["ts"])):
            if task["ts"] >= end:  # what runs within another task is counted with it
                end = task["ts"] + task["dur"]
                sums.setdefault(thread, []).append(task["tdur"] / 1000 * slower)
    busiest = max(sums.values(), key=sum)
    return sum(max(0.0, each - 50) for each in busiest), max(busiest)
