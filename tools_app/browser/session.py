"""One browser as one user's call or conversation has it: a context of its own, its pages, and what ends them.

Pages cannot do more than their session survives: dialogs are dismissed, windows beyond a number are closed, pages at
addresses that no page may have are closed, and a browser that needs too much memory is ended.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.browser import starting
from tools_app.browser.conf import browser_settings
from tools_app.browser.errors import BrowserFailed, BrowserGone, BrowserUnavailable
from tools_app.browser.policy import ABOUT_BLANK, may_show
from tools_app.browser.proxy import LOGIN_URL, MAX_REFUSED, USER, NetworkPolicy, Proxy
from tools_app.browser.wire import BrowserConnection
from tools_app.errors import ToolError
from tools_app.processes.memory import memory_of

logger = logging.getLogger(__name__)

MAX_PAGES: Final = 10
MAX_WINDOWS: Final = 200
MEMORY_CHECK_SECONDS: Final = 0.2
LOGIN_SECONDS: Final = 15.0
EXHAUSTED: Final = "The browser has used up its {} bytes of the network, and was ended."


@dataclass(eq=False, kw_only=True)
class BrowserPage:
    """A page of a session. `control`: our own session with it, there once the browser has attached us."""

    target_id: str
    url: str
    control: "asyncio.Future[str]"
    title: str = ""


class BrowserGuard(Protocol):
    """A guard between pages and the network where there is no proxy."""

    async def watch(self, session: "BrowserContext", page: BrowserPage, control: str) -> None:
        """Begin to watch a page. Errors: `BrowserFailed`."""


_BEGINS: Final = "Network.requestWillBeSent"
_ENDS: Final = frozenset({"Network.loadingFinished", "Network.loadingFailed"})


Fits: TypeAlias = Callable[[JSONObject], bool]
"""Whether an event with these parameters is the one."""


class Events:
    """The events of one session with a page, from a moment on."""

    def __init__(self, connection: BrowserConnection) -> None:
        self._connection = connection
        self.seen: list[tuple[str, JSONObject]] = []
        self._more = asyncio.Event()

    def take(self, method: str, params: JSONObject) -> None:
        """Note one."""
        self.seen.append((method, params))
        self._more.set()

    def wake(self) -> None:
        """Let those who wait look again."""
        self._more.set()

    async def wait(self, method: str, seconds: float, fits: Fits = lambda _params: True) -> JSONObject | None:
        """The first of this kind that fits; `None` when none comes in time. Errors: `BrowserGone`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                at = 0
                while True:
                    for each, params in self.seen[at:]:
                        if each == method and fits(params):
                            return params
                    at = len(self.seen)
                    self._check()
                    self._more.clear()
                    await self._more.wait()
        return None

    async def quiet(self, pause: float, most: float) -> None:
        """Wait until no request has been under way for so long, and at most so long. Errors: `BrowserGone`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most):
                while True:
                    self._check()
                    self._more.clear()
                    if self._under_way():
                        await self._more.wait()
                        continue
                    try:
                        async with asyncio.timeout(pause):
                            await self._more.wait()
                    except TimeoutError:
                        return

    def _check(self) -> None:
        if self._connection.is_closed:
            raise BrowserGone(self._connection.end_reason)

    def _under_way(self) -> bool:
        going: set[object] = set()
        for method, params in self.seen:
            if method == _BEGINS:
                going.add(params.get("requestId"))
            elif method in _ENDS:
                going.discard(params.get("requestId"))
        return bool(going)


@dataclass(eq=False, kw_only=True)
class BrowserContext:
    """A browser context with its pages. Made by `open_session` and `external.join`; ended by `close`, always."""

    connection: BrowserConnection
    policy: NetworkPolicy
    chrome: starting.Chrome | None = None
    proxy: Proxy | None = None
    guard: BrowserGuard | None = None
    context_id: str = ""
    pages: dict[str, BrowserPage] = field(default_factory=dict)
    last_used: float = 0.0
    share: str = ""  # whose it is, while it is kept
    blocked: dict[str, str] = field(default_factory=dict)  # what a guard did not let through
    _main: str = ""
    _windows: "_Windows" = field(init=False)
    _tasks: set["asyncio.Task[Any]"] = field(default_factory=set)
    _events: dict[str, list[Events]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._windows = _Windows(self)

    @property
    def is_alive(self) -> bool:
        """Whether it can be used."""
        return not self.connection.is_closed and (self.chrome is None or self.chrome.is_alive)

    @property
    def refused(self) -> dict[str, str]:
        """Addresses that were not let through, with the reasons."""
        return {**self.blocked, **(self.proxy.refused if self.proxy else {})}

    @property
    def current(self) -> BrowserPage | None:
        """The page that quick actions use, if it is there."""
        return self.pages.get(self._main)

    async def begin(self) -> None:
        """Make the context and its first page. Errors: `BrowserFailed`."""
        self.connection.listeners.append(self._take)
        if self.chrome is not None:
            self.do(_watch_memory(self, self.chrome))
        made = await self.connection.send("Target.createBrowserContext", {"disposeOnDetach": True})
        self.context_id = str(made.get("browserContextId", ""))
        no_files = {"behavior": "deny", "browserContextId": self.context_id}
        await self.connection.send("Browser.setDownloadBehavior", no_files)
        await self.connection.send("Target.setDiscoverTargets", {"discover": True})
        if self.proxy is not None:
            await _log_in(self, self.proxy, await (await self.page()).control)

    async def close(self) -> None:
        """End it with all of its pages. Safe to call again."""
        if self.chrome is not None:
            self.chrome.kill()  # at once, also if this is cancelled while it waits
        if self.chrome is None and not self.connection.is_closed:
            with contextlib.suppress(BrowserFailed):
                await self.connection.send("Target.disposeBrowserContext", {"browserContextId": self.context_id})
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.proxy is not None:
            await self.proxy.close()
        if self.chrome is not None:
            await self.chrome.end()
        else:
            await self.connection.close()

    async def page(self) -> BrowserPage:
        """The page that quick actions use; a new one where there is none. Errors: `BrowserFailed`."""
        page = self.current
        if page is None:
            page = await self.new_page()
            self._main = page.target_id
        await page.control
        return page

    async def new_page(self, params: JSONObject | None = None) -> BrowserPage:
        """Open an empty page. Errors: `BrowserFailed`."""
        wanted = {**(params or {}), "url": ABOUT_BLANK, "browserContextId": self.context_id}
        page = self.pages.get(await self._windows.open(wanted))
        if page is None:
            raise BrowserFailed(f"There are at most {MAX_PAGES} pages at a time.")
        await page.control
        return page

    async def send(
        self, page: BrowserPage, method: str, params: JSONObject | None = None, **options: Any
    ) -> JSONObject:
        """Send a command to a page, for ourselves. Errors: `BrowserFailed`."""
        return await self.connection.send(method, params, await page.control, **options)

    @asynccontextmanager
    async def events_of(self, session_id: str) -> AsyncIterator[Events]:
        """The events of a session from here on."""
        events = Events(self.connection)
        self._events.setdefault(session_id, []).append(events)
        self.connection.on_end.append(events.wake)
        try:
            yield events
        finally:
            self.connection.on_end.remove(events.wake)
            self._events[session_id].remove(events)

    def end(self, reason: str) -> None:
        """End the browser now, or leave one elsewhere, for a reason that becomes the error of its calls."""
        self.connection.end_reason = reason
        if self.chrome is not None:
            self.chrome.kill()
        else:
            self.do(self.connection.close())

    def block(self, address: str, reason: str) -> None:
        """Note an address that was not let through."""
        if len(self.blocked) < MAX_REFUSED:
            self.blocked[address[:200]] = reason

    def pause(self) -> None:
        """Let its pages do nothing until `resume`, where that is possible."""
        self.last_used = time.monotonic()
        if self.chrome is not None:
            self.chrome.pause()

    def resume(self) -> None:
        """Let its pages go on."""
        self.connection.allow_more()
        self.blocked.clear()
        self._windows.count = 0
        if self.proxy is not None:
            self.proxy.refused.clear()
        if self.chrome is not None:
            self.chrome.resume()

    def _take(self, method: str, params: JSONObject, session_id: str) -> None:
        for events in self._events.get(session_id, ()):
            events.take(method, params)
        if method == "Page.javascriptDialogOpening" and self._is_control(session_id):
            accept = {"accept": params.get("type") == "beforeunload"}
            self.do(self.connection.send("Page.handleJavaScriptDialog", accept, session_id))
        elif not session_id and method.startswith("Target."):
            self._windows.take(method, params)

    def _is_control(self, session_id: str) -> bool:
        ready = [page.control for page in self.pages.values() if page.control.done() and not page.control.exception()]
        return session_id in {control.result() for control in ready}

    def do(self, work: Coroutine[Any, Any, Any]) -> None:
        """Do something without waiting for it. What the browser refuses is no matter: it is about pages that go."""
        task = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Windows:
    """The windows of a session as the browser reports them: each becomes one of its pages, or is closed."""

    def __init__(self, session: BrowserContext) -> None:
        self.count = 0  # since the session was resumed
        self._session = session
        self._creating = asyncio.Lock()

    async def open(self, wanted: JSONObject) -> str:
        """Open one of ours; returns its id."""
        async with self._creating:
            made = await self._session.connection.send("Target.createTarget", wanted)
            if self._session.guard is not None:
                self._created(str(made.get("targetId")), ABOUT_BLANK)
        return str(made.get("targetId"))

    def take(self, method: str, params: JSONObject) -> None:
        """Take an event about a window."""
        session, info = self._session, params.get("targetInfo")
        if method == "Target.targetDestroyed":
            session.pages.pop(str(params.get("targetId")), None)
        elif isinstance(info, dict) and info.get("browserContextId") == session.context_id:
            target_id, url = str(info["targetId"]), str(info.get("url", ""))
            if method == "Target.targetCreated" and info.get("type") == "page":
                if session.guard is None:
                    self._created(target_id, url)
                else:
                    session.do(self._close_unless_ours(target_id))
            if target_id in session.pages:
                session.pages[target_id].url, session.pages[target_id].title = url, str(info.get("title", ""))
            if not may_show(url):
                session.block(url, "No page may be at this address.")
                self._close(target_id)

    def _created(self, target_id: str, url: str) -> None:
        self.count += 1
        if self.count > MAX_WINDOWS:
            self._session.end("The pages of the browser opened too many windows, and it was ended.")
        elif len(self._session.pages) >= MAX_PAGES:
            self._close(target_id)
        else:
            page = BrowserPage(target_id=target_id, url=url, control=asyncio.get_running_loop().create_future())
            self._session.pages[target_id] = page
            self._session.do(self._attach(page))

    def _close(self, target_id: str) -> None:
        self._session.do(self._session.connection.send("Target.closeTarget", {"targetId": target_id}))

    async def _close_unless_ours(self, target_id: str) -> None:
        """Close a window that a page opened by itself: a guard sees it too late to hold back its first request."""
        async with self._creating:
            if target_id not in self._session.pages:
                await self._session.connection.send("Target.closeTarget", {"targetId": target_id})

    async def _attach(self, page: BrowserPage) -> None:
        session = self._session
        try:
            wanted = {"targetId": page.target_id, "flatten": True}
            control = str((await session.connection.send("Target.attachToTarget", wanted))["sessionId"])
            if session.guard is not None:
                await session.guard.watch(session, page, control)
            await session.connection.send("Page.enable", {}, control)
        except (ToolError, KeyError):
            page.control.set_exception(BrowserFailed("The page is gone."))
            page.control.exception()  # read once, so that it may be left alone
        else:
            page.control.set_result(control)


async def _log_in(session: BrowserContext, proxy: Proxy, control: str) -> None:
    """Present the credential of the proxy, which the browser then sends with every request of this context."""
    send = session.connection.send
    await send("Fetch.enable", {"handleAuthRequests": True, "patterns": [{"urlPattern": LOGIN_URL}]}, control)
    login = {"response": "ProvideCredentials", "username": USER, "password": proxy.password}
    async with session.events_of(control) as events:
        going = asyncio.create_task(send("Page.navigate", {"url": LOGIN_URL}, control, seconds=LOGIN_SECONDS))
        try:
            if paused := await events.wait("Fetch.requestPaused", LOGIN_SECONDS):
                await send("Fetch.continueRequest", {"requestId": paused["requestId"]}, control)
            if asked := await events.wait("Fetch.authRequired", LOGIN_SECONDS):
                answer = {"requestId": asked["requestId"], "authChallengeResponse": login}
                await send("Fetch.continueWithAuth", answer, control)
            gone = await going
        finally:
            going.cancel()
    if gone.get("errorText") or not proxy.has_login:
        raise BrowserFailed("The browser could not be connected to its proxy.")
    await send("Fetch.disable", {}, control)
    async with session.events_of(control) as events:
        await send("Page.navigate", {"url": ABOUT_BLANK}, control)
        await events.wait("Page.loadEventFired", LOGIN_SECONDS)


async def _watch_memory(session: BrowserContext, chrome: starting.Chrome) -> None:
    while chrome.is_alive:
        most = browser_settings.limits.memory_bytes
        if await asyncio.to_thread(memory_of, chrome.pid, most=most) > most:
            session.end("The browser needed too much memory, and was ended.")
            return
        await asyncio.sleep(MEMORY_CHECK_SECONDS)


async def _quietly(work: Coroutine[Any, Any, Any]) -> None:
    with contextlib.suppress(BrowserFailed):
        await work


async def open_session(policy: NetworkPolicy) -> BrowserContext:
    """Start a browser with its proxy, and open a session in it. Errors: `BrowserUnavailable`."""
    chrome = await starting.start()
    proxy = Proxy(policy)
    session = BrowserContext(connection=chrome.connection, policy=policy, chrome=chrome, proxy=proxy)
    try:
        proxy.on_exhausted = lambda: session.end(EXHAUSTED.format(policy.max_bytes))
        await proxy.serve(chrome.listener)
        await session.begin()
    except BrowserGone as error:
        await session.close()
        raise BrowserUnavailable("The browser ended while it was started.") from error
    except BaseException:
        await session.close()
        raise
    return session
