"""The work of quick actions on a page: go there, wait until it is there, and read it.

Our own scripts run in a world of their own within the page (`Page.createIsolatedWorld`): what the page's scripts did to
built-in functions does not reach them.
"""

import base64
import json
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.browser.errors import BrowserFailed
from tools_app.browser.policy import EMPTY
from tools_app.browser.proxy import LOGIN_URL
from tools_app.browser.session import BrowserContext, BrowserPage, Events
from tools_app.fetching.errors import FetchFailed

NO_PAGE: Final = EMPTY | {LOGIN_URL}
"""Addresses of a page that was sent nowhere yet. The last one is known for a moment after it has been left."""
LOAD_SECONDS: Final = 20.0
QUIET_SECONDS: Final = 0.2
SETTLE_SECONDS: Final = 3.0
"""After a page has loaded, what its scripts still fetch is waited for: until it is quiet, or this long."""

SCRIPT_SECONDS: Final = 10.0
MAX_HTML_CHARS: Final = 5_000_000
MAX_LINKS: Final = 500
MAX_ROWS: Final = 200
MAX_TEXT_CHARS: Final = 2_000
MAX_HEIGHT: Final = 8_000
WIDTHS: Final = (200, 2_000)

_HTML: Final = """(() => {
  const root = document.documentElement;
  if (!root) return "";
  const copy = root.cloneNode(true);
  const links = root.querySelectorAll("a[href]");
  copy.querySelectorAll("a[href]").forEach((link, at) => link.setAttribute("href", links[at].href));
  return copy.outerHTML.slice(0, %d);
})()"""
_LINKS: Final = """(() => {
  const found = new Map();
  for (const link of document.querySelectorAll("a[href], area[href]")) {
    if (!/^https?:$/.test(link.protocol) || found.has(link.href) || found.size >= %(links)d) continue;
    const text = (link.innerText || link.getAttribute("aria-label") || link.title || "").replace(/\\s+/g, " ").trim();
    found.set(link.href, text.slice(0, 200));
  }
  return [...found].map(([url, text]) => ({ text, url }));
})()"""
_EXTRACT: Final = """(({ fields, each }) => {
  const read = (root, wanted) => {
    const at = wanted.lastIndexOf("@");
    const selector = at < 0 ? wanted : wanted.slice(0, at);
    const attribute = at < 0 ? "" : wanted.slice(at + 1);
    const elements = selector === "" ? [root] : [...root.querySelectorAll(selector)].slice(0, %(rows)d);
    return elements.map((element) => {
      if (!attribute) return (element.innerText ?? element.textContent ?? "").trim().slice(0, %(chars)d);
      const value = element.getAttribute(attribute);
      if (value === null) return null;
      return String(/^(href|src)$/.test(attribute) ? element[attribute] ?? value : value).slice(0, %(chars)d);
    });
  };
  const names = Object.keys(fields);
  if (!each) return Object.fromEntries(names.map((name) => [name, read(document, fields[name])]));
  return [...document.querySelectorAll(each)].slice(0, %(rows)d).map((row) =>
    Object.fromEntries(names.map((name) => [name, read(row, fields[name])[0] ?? null])));
})(%(wanted)s)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A page that was gone to. `status`: of its document, 0 where it is not known. `is_whole`: it has loaded."""

    page: BrowserPage
    url: str
    title: str
    status: int
    is_whole: bool

    def to_json(self) -> JSONObject:
        """The fields that every quick action returns."""
        shown: JSONObject = {"url": self.url, "title": self.title}
        if self.status:
            shown["status"] = self.status
        if not self.is_whole:
            shown["note"] = "The page had not loaded completely."
        return shown


async def visit(session: BrowserContext, text: str) -> Visit:
    """Go to an address and wait until the page has loaded, or for a while. Empty: the page that is there.

    Errors: `FetchFailed` for an address that may not be read or cannot be; `BrowserFailed`.
    """
    if not text:
        page = session.current
        if page is None or page.url in NO_PAGE:
            raise BrowserFailed("There is no page yet: name an address.")
        return await _described(session, page, status=0, is_whole=True)
    url = str(session.policy.check_url(text))
    page = await session.page()
    control = await page.control
    for domain in ("Network.enable", "Page.enable"):
        await session.send(page, domain)
    await session.send(page, "Page.setLifecycleEventsEnabled", {"enabled": True})
    before = set(session.refused)
    old = (await _frame(session, page)).get("loaderId")
    async with session.events_of(control) as events:
        gone = await session.send(page, "Page.navigate", {"url": url}, seconds=LOAD_SECONDS)
        if gone.get("errorText"):
            raise _not_reached(session, before, url, str(gone["errorText"]))
        frame = gone.get("frameId")

        def is_load(event: JSONObject) -> bool:
            """Whether a document of this page has loaded, perhaps a further one that the first led to."""
            return event.get("name") == "load" and event.get("frameId") == frame and event.get("loaderId") != old

        is_whole = await events.wait("Page.lifecycleEvent", LOAD_SECONDS, is_load) is not None
        if is_whole:
            await events.quiet(QUIET_SECONDS, SETTLE_SECONDS)
    there = await _frame(session, page)
    if there.get("unreachableUrl"):
        raise _not_reached(session, before, str(there["unreachableUrl"]), "it led to a page that is not there")
    status = _status(events, there.get("loaderId"))
    return await _described(session, page, status=status, is_whole=is_whole)


def _status(events: Events, loader_id: object) -> int:
    """The status of the document that a navigation loaded; 0 where the browser did not say."""
    for method, params in events.seen:
        if method == "Network.responseReceived" and params.get("loaderId") == params.get("requestId") == loader_id:
            return int(params["response"].get("status", 0))
    return 0


def _not_reached(session: BrowserContext, before: set[str], url: str, text: str) -> FetchFailed:
    """The error of a page that was not reached: of what the proxy refused, or as the browser says."""
    new = [reason for address, reason in session.refused.items() if address not in before]
    if new:
        return FetchFailed("disallowed_url", f"It led to an address that may not be reached. {new[-1]}", url=url)
    return FetchFailed("request_failed", f"The page could not be loaded: {text}", url=url)


async def _described(session: BrowserContext, page: BrowserPage, *, status: int, is_whole: bool) -> Visit:
    frame = await _frame(session, page)
    url = str(frame.get("url", "")) + str(frame.get("urlFragment", ""))
    title = await run(session, page, "document.title.slice(0, 300)")
    return Visit(page=page, url=url, title=str(title), status=status, is_whole=is_whole)


async def _frame(session: BrowserContext, page: BrowserPage) -> JSONObject:
    """The main frame of a page: `id`, `loaderId` (of its document), `url`, and `unreachableUrl` of an error."""
    tree = await session.send(page, "Page.getFrameTree")
    return dict(tree["frameTree"]["frame"])


async def run(session: BrowserContext, page: BrowserPage, expression: str) -> JSONValue:
    """The value of an expression in our own world within the page. Errors: `BrowserFailed`."""
    frame_id = (await _frame(session, page))["id"]
    made = await session.send(page, "Page.createIsolatedWorld", {"frameId": frame_id, "worldName": "think"})
    wanted = {"expression": expression, "contextId": made["executionContextId"], "returnByValue": True}
    answer = await session.send(page, "Runtime.evaluate", wanted, seconds=SCRIPT_SECONDS)
    details = answer.get("exceptionDetails")
    if isinstance(details, dict):
        words = details.get("exception", {}).get("description") or details.get("text")
        raise BrowserFailed(str(words)[:500])
    return answer.get("result", {}).get("value")


async def html_of(session: BrowserContext, page: BrowserPage) -> str:
    """The document as it is now. Errors: `BrowserFailed`."""
    return str(await run(session, page, _HTML % MAX_HTML_CHARS))


async def links_of(session: BrowserContext, page: BrowserPage) -> list[JSONObject]:
    """The links of a page: text and address. Errors: `BrowserFailed`."""
    found = await run(session, page, _LINKS % {"links": MAX_LINKS})
    return found if isinstance(found, list) else []


async def extracted(session: BrowserContext, page: BrowserPage, fields: dict[str, str], each: str) -> JSONValue:
    """The texts and attributes that selectors find. Errors: `BrowserFailed`, also for a selector that is none."""
    wanted = json.dumps({"fields": fields, "each": each})
    return await run(session, page, _EXTRACT % {"rows": MAX_ROWS, "chars": MAX_TEXT_CHARS, "wanted": wanted})


async def picture_of(session: BrowserContext, control: str, *, full_page: bool) -> bytes:
    """A picture (PNG) of what is seen of a page, or of all of it down to a height. Errors: `BrowserFailed`."""
    wanted: JSONObject = {"format": "png", "optimizeForSpeed": True}
    if full_page:
        metrics = await session.connection.send("Page.getLayoutMetrics", {}, control)
        size = metrics.get("cssContentSize", {})
        width, height = min(int(size.get("width", 1280)), WIDTHS[1]), min(int(size.get("height", 800)), MAX_HEIGHT)
        clip = {"x": 0, "y": 0, "width": max(1, width), "height": max(1, height), "scale": 1}
        wanted |= {"captureBeyondViewport": True, "clip": clip}
    answer = await session.connection.send("Page.captureScreenshot", wanted, control, seconds=LOAD_SECONDS)
    return base64.b64decode(str(answer.get("data", "")))
