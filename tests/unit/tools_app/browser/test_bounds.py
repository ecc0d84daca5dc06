"""A browser that hangs, floods, grows or is killed harms its own call alone, and nothing of it stays."""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fibers.execution.worker_loop import run_on_shared_loop
from tests.unit.tools_app.browser.conftest import Site, browser_of, context
from tools_app.browser import starting, wire
from tools_app.browser.errors import BrowserGone, BrowserUnavailable
from tools_app.browser.pool import Pool, pool
from tools_app.browser.starting import PREFIX, browser_report, candidates, started, sweep, tree_of
from tools_app.sandbox.slots import FairSlots, SlotLimits

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.usefixtures("chromium")]

ROOT = Path(__file__).parents[4]
HANG = "<script>for (;;) ;</script>"


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - it is about processes of the system
            await asyncio.sleep(0.01)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def states(pids: list[int]) -> set[str]:
    found = set()
    for pid in pids:
        path = Path(f"/proc/{pid}/stat")
        if path.exists():
            found.add(path.read_text().rpartition(")")[2].split()[0])
    return found - {"Z"}


@pytest_asyncio.fixture(loop_scope="module", autouse=True)
async def nothing_stays() -> Any:
    """After each test no browser of it is left. The one that drives the page's tests may be this process's as well."""
    before = browsers_here()
    yield
    await pool().close()
    assert browsers_here() - before == set()


def browsers_here() -> set[int]:
    return {pid for pid in tree_of(os.getpid()) if is_running(pid) and "chrom" in name_of(pid)}


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def owner_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


async def test_a_browser_that_is_killed_under_a_call_is_an_error_and_the_next_call_has_a_new_one(site: Site) -> None:
    browser, asked = browser_of(site, session="reuse"), asyncio.Event()

    async def silent(_request: Any) -> Any:
        asked.set()
        await asyncio.sleep(60)  # a site that never answers

    site.answers["/silent"] = silent
    page = site.page("/fine", "fine")
    await browser("markdown", url=page)
    task = asyncio.create_task(browser("markdown", url=site.url("/silent")))
    await asyncio.wait_for(asked.wait(), 30)
    outermost_first = [pid for pid in tree_of(os.getpid())[::-1] if "chrom" in name_of(pid)]
    for pid in outermost_first:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with pytest.raises(BrowserGone, match="next call starts a new one"):
        await task
    assert (await browser("markdown", url=page))["markdown"] == "fine"


async def test_a_browser_runs_on_the_loop_of_workers(site: Site) -> None:
    browser, url = browser_of(site, session="reuse"), site.page("/fine", "fine")

    async def twice() -> list[str]:
        try:
            return [(await browser("markdown", url=url))["markdown"], (await browser("markdown"))["markdown"]]
        finally:
            await pool().close()

    assert await asyncio.to_thread(run_on_shared_loop, twice()) == ["fine", "fine"]


async def test_a_page_that_hangs_ends_its_call_in_time(site: Site, settings: Any) -> None:
    browser = browser_of(site, session="reuse")
    settings.THINK_BROWSER = {"seconds": 2.0}
    with pytest.raises(BrowserGone, match="took more than 2 s"):
        await browser("markdown", url=site.page("/hang", HANG))
    settings.THINK_BROWSER = {}
    assert (await browser("markdown", url=site.page("/fine", "fine")))["markdown"] == "fine"


async def test_a_page_that_grows_is_ended(site: Site, settings: Any) -> None:
    settings.THINK_BROWSER = {"memory_bytes": 300_000_000}
    grow = "<script>window.kept = []; for (let n = 0; n < 500; n++) kept.push(new Uint8Array(1e7).fill(n))</script>"
    with pytest.raises(BrowserGone, match="too much memory"):
        await browser_of(site)("markdown", url=site.page("/grow", grow))


async def test_a_page_that_says_too_much_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "FLOOD_MESSAGES", 2_000)
    url = site.page("/flood", "<script>setInterval(() => { for (let n = 0; n < 500; n++) console.log(n) })</script>")
    code = f"""async () => {{
      const {{ targetId }} = await cdp.send({{ method: "Target.createTarget", params: {{ url: "{url}" }} }});
      const {{ sessionId }} = await cdp.attachToTarget({{ targetId }});
      await cdp.send({{ method: "Runtime.enable", sessionId }});
      await cdp.waitForEvent({{ method: "Page.never", timeoutMs: 30000 }});
    }}"""
    with pytest.raises(BrowserGone, match="said too much"):
        await browser_of(site)("execute", code=code)


@pytest.mark.long
async def test_a_page_that_opens_a_thousand_windows_is_ended_and_another_browser_goes_on(site: Site) -> None:
    fine, other = site.page("/fine", "fine"), browser_of(site, session="reuse")
    await other("markdown", url=fine, within=context(user_id=2))
    url = site.page("/windows", "<script>for (let n = 0; n < 1000; n++) window.open('/fine?' + n)</script>windows")
    code = f"""async () => {{
      await cdp.send({{ method: "Target.createTarget", params: {{ url: "{url}" }} }});
      await cdp.waitForEvent({{ method: "Page.never", timeoutMs: 30000 }});
    }}"""
    with pytest.raises(BrowserGone, match="too many windows"):
        await browser_of(site)("execute", code=code)
    assert (await other("markdown", within=context(user_id=2)))["markdown"] == "fine"


async def test_a_cancelled_call_leaves_no_browser(site: Site) -> None:
    site.page("/hang", HANG)
    task = asyncio.create_task(browser_of(site)("markdown", url=site.url("/hang")))
    await until(lambda: "/hang" in site.paths)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_kept_browser_does_nothing_between_two_calls(site: Site) -> None:
    url = site.page("/busy", "<script>setInterval(() => { for (let n = 0; n < 1e7; n++) ; })</script>busy")
    browser = browser_of(site, session="reuse")
    await browser("markdown", url=url)
    [kept] = pool().kept.values()
    assert kept.chrome is not None
    if not kept.chrome.walls.is_contained:
        pytest.skip("this machine makes no namespaces")
    pids = [pid for pid in tree_of(kept.chrome.pid) if "chrom" in name_of(pid)]
    assert len(pids) > 2
    await until(lambda: states(pids) == {"T"})
    assert (await browser("markdown"))["markdown"] == "busy"


async def test_a_kept_browser_that_nobody_uses_is_ended(site: Site, settings: Any) -> None:
    await browser_of(site, session="reuse")("markdown", url=site.page("/fine", "fine"))
    [kept] = pool().kept.values()
    await pool().close()
    settings.THINK_BROWSER = {"idle_seconds": 0.05}
    await browser_of(site, session="reuse")("markdown", url=site.page("/fine", "fine"))
    await until(lambda: not pool().kept)
    assert not kept.is_alive


async def test_of_many_kept_browsers_the_one_that_was_idle_longest_is_ended(site: Site, settings: Any) -> None:
    settings.THINK_BROWSER = {"kept": 1}
    browser, url = browser_of(site, session="reuse"), site.page("/fine", "fine")
    await browser("links", url=url, within=context(user_id=1))
    [first] = pool().kept.values()
    await browser("links", url=url, within=context(user_id=2))
    [second] = pool().kept.values()
    assert second is not first
    assert not first.is_alive


async def test_one_user_keeps_few_browsers_and_not_those_of_others(site: Site, settings: Any) -> None:
    settings.THINK_BROWSER = {"kept_per_user": 1}
    browser, url = browser_of(site, session="reuse"), site.page("/fine", "fine")
    await browser("links", url=url, within=context(user_id=2))
    await browser("links", url=url, within=context(instance="first"))
    await browser("links", url=url, within=context(instance="second"))
    assert [session.share for session in pool().kept.values()] == ["2", "1"]
    assert (await browser("markdown", within=context(instance="second")))["markdown"] == "fine"


async def test_a_call_that_finds_no_slot_in_time_fails(site: Site, settings: Any) -> None:
    settings.THINK_BROWSER = {"queue_seconds": 0.05}

    async def never() -> Any:
        raise AssertionError("it has no slot")

    async def another() -> None:
        async with narrow.session(never, share="1"):
            pass

    narrow = Pool(FairSlots(lambda: SlotLimits(total=2, per_share=1, seconds=1)))
    async with narrow.slots.slot("1"):
        with pytest.raises(BrowserUnavailable, match="Too many browsers"):
            await asyncio.create_task(another(), context=Context())  # no call of the one that holds the slot


WORKER = """
import asyncio, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings_test"
import django
django.setup()
from tests.unit.tools_app.browser.conftest import browser_of, serving
from tools_app.browser.pool import pool
from tools_app.browser.starting import tree_of

async def main():
    async for site in serving():
        browser = browser_of(site, session="reuse")
        await browser("markdown", url=site.page("/kept", "kept"))  # stopped
        task = asyncio.create_task(browser_of(site)("markdown", url=site.page("/hang", "<script>for (;;) ;</script>")))
        while "/hang" not in site.paths:
            await asyncio.sleep(0.01)
        print(*tree_of(os.getpid()), flush=True)
        await task

asyncio.run(main())
"""


def folders(within: Path) -> list[Path]:
    return list(within.glob(f"{PREFIX}*"))


@pytest.fixture
def profiles_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place for profiles that no test beside this one uses."""
    with tempfile.TemporaryDirectory(prefix="thk-own-") as name:
        Path(name).chmod(0o755)  # the browser is another user
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


async def test_nothing_stays_of_browsers_whose_worker_is_killed(profiles_folder: Path) -> None:
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", WORKER),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(profiles_folder)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert worker.stdout is not None
    async with asyncio.timeout(60):
        pids = [int(each) for each in (await worker.stdout.readline()).split()]
        assert sum("chrom" in name_of(pid) for pid in pids) > 6  # two browsers
        os.kill(worker.pid, signal.SIGKILL)
        await worker.wait()
        await until(lambda: not any(map(is_running, pids)))
    assert len(folders(profiles_folder)) == 2
    sweep()
    assert folders(profiles_folder) == []


@pytest.mark.parametrize("at", range(4))
async def test_a_browser_answers_behind_each_of_the_walls(at: int, settings: Any) -> None:
    settings.THINK_BROWSER_WITHOUT_WALLS = True
    walls = candidates()[at]
    try:
        chrome = await started(starting.browser_path(), walls)
    except BrowserUnavailable:
        pytest.skip(f"these walls cannot be had here: {walls.name}")
    try:
        assert "userAgent" in await chrome.connection.send("Browser.getVersion")
        uids = {owner_of(pid) for pid in tree_of(chrome.pid) if "chrom" in name_of(pid)}
        assert os.geteuid() != 0 or 0 not in uids
    finally:
        await chrome.end()
    assert not is_running(chrome.pid)
    assert not chrome.profile.top.exists()


async def test_a_browser_without_any_wall_needs_the_consent_of_a_setting(settings: Any) -> None:
    settings.THINK_BROWSER_WITHOUT_WALLS = False
    assert all(walls.has_sandbox or walls.is_contained for walls in candidates())
    settings.THINK_BROWSER_WITHOUT_WALLS = True
    last = candidates()[-1]
    assert (last.has_sandbox, last.is_contained) == (False, False)


async def test_a_browser_that_its_user_cannot_read_is_refused_with_the_reason(settings: Any, tmp_path: Path) -> None:
    program = tmp_path / "private" / "chromium"
    program.parent.mkdir(mode=0o700)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    settings.THINK_BROWSER_PATH = str(program)
    reason = "another user, who cannot read" if os.geteuid() == 0 else "does not start here"
    with pytest.raises(BrowserUnavailable, match=reason):
        await starting.start()


async def test_the_report_names_the_browser_and_its_walls_or_what_is_missing(settings: Any) -> None:
    [report] = await browser_report()
    assert report.is_available
    assert "Chrom" in report.reason
    settings.THINK_BROWSER_PATH = "/nowhere/chromium"
    [report] = await browser_report()
    assert (report.is_available, "THINK_BROWSER_PATH" in report.reason) == (False, True)
