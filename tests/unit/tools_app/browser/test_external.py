"""A browser elsewhere, which a developer names: its sessions are apart, and its pages are guarded from within."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.unit.tools_app.browser.conftest import LOOPBACK, Browser, Site, browser_of, context
from tests.unit.tools_app.browser.page_code import opened
from tools_app.browser import starting
from tools_app.browser.errors import BrowserFailed, BrowserGone, BrowserUnavailable
from tools_app.browser.pool import pool
from tools_app.browser.spec import PORT_FILE, _port
from tools_app.fetching.errors import FetchFailed

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cdp_url(chromium: str) -> AsyncIterator[str]:
    """A browser that listens on this machine, with no proxy and no guard of its own."""
    flags = ("--remote-debugging-port=0", "--proxy-server=direct://", "--host-resolver-rules=MAP other.test 127.0.0.1")
    chrome = await starting.started(chromium, starting.bare_walls(), flags=flags)
    yield f"http://127.0.0.1:{await _port(chrome.profile.folder / PORT_FILE)}"
    await pool().close()
    await chrome.end()


@pytest_asyncio.fixture(loop_scope="module")
async def outside_browser(cdp_url: str, site: Site) -> Browser:
    return browser_of(site, cdp_url=cdp_url, session="reuse")


async def test_a_browser_elsewhere_reads_pages_and_runs_code(outside_browser: Browser, site: Site) -> None:
    url = site.page("/there", "<h1>There</h1>")
    assert (await outside_browser("markdown", url=url))["markdown"] == "# There"
    assert await outside_browser.run(opened(f"await go('{url}'); return value('document.title')")) == "/there"
    search = "async () => (await spec.get()).domains.map((domain) => domain.name)"
    assert "Page" in (await outside_browser("search", code=search))["value"]


async def test_a_session_neither_sees_nor_reaches_the_pages_of_another(outside_browser: Browser, site: Site) -> None:
    url = site.page("/mine", "<script>document.cookie = 'mine=1; path=/'</script>")
    list_them = "async () => (await cdp.send({ method: 'Target.getTargets' })).targetInfos"
    await outside_browser("markdown", url=url, within=context(instance="mine"))
    [mine] = await outside_browser.run(list_them, within=context(instance="mine"))
    assert mine["url"] == url
    others = await outside_browser.run(list_them, within=context(user_id=2))
    assert mine["targetId"] not in [target["targetId"] for target in others]
    tries = [
        f"cdp.attachToTarget({{ targetId: '{mine['targetId']}' }})",
        *(
            f"cdp.send({{ method: 'Target.{name}', params: {{ targetId: '{mine['targetId']}' }} }})"
            for name in ("attachToTarget", "closeTarget", "activateTarget", "getTargetInfo")
        ),
        f"cdp.send({{ method: 'Page.enable', sessionId: '{mine['targetId']}' }})",
    ]
    code = opened(f"return [{', '.join(f'await tried(() => {each})' for each in tries)}]")
    for said in await outside_browser.run(code, within=context(user_id=2)):
        assert "No target with given id" in said or "none of this code's" in said
    cookies = await outside_browser.run(
        opened(f"await go('{url}x'); return value('document.cookie')"), within=context(user_id=2)
    )
    assert cookies == ""


PAGE = """
<img src="{to}/img"><script src="{to}/script"></script><iframe src="{to}/iframe"></iframe>
<iframe srcdoc="<img src='{to}/srcdoc'>"></iframe>
<script>
  fetch("{to}/fetch", {{ mode: "no-cors" }}).catch(() => 0);
  navigator.sendBeacon("{to}/beacon", "x");
  new Worker(URL.createObjectURL(new Blob(["fetch('{to}/worker', {{ mode: 'no-cors' }})"])));
  navigator.serviceWorker.register("/sw.js");
  window.open("{to}/window");
</script>"""


async def test_requests_to_other_addresses_are_held_back(outside_browser: Browser, site: Site, elsewhere: Site) -> None:
    elsewhere.paths.clear()
    script = f"fetch('{elsewhere.url('/serviceworker')}', {{ mode: 'no-cors' }})"
    site.put("/sw.js", text=script, content_type="text/javascript")
    answer = await outside_browser("markdown", url=site.page("/tries", PAGE.format(to=elsewhere.url(""))))
    assert elsewhere.url("/img") in answer["refused"]
    assert set(elsewhere.paths) <= {"/window"}  # it is closed, and never read
    pages = "async () => (await cdp.send({ method: 'Target.getTargets' })).targetInfos.map((target) => target.url)"
    assert elsewhere.url("/window") not in await outside_browser.run(pages)
    elsewhere.paths.clear()
    site.put("/moved", status=302, headers={"Location": elsewhere.url("/redirected")})
    with pytest.raises(FetchFailed):
        await outside_browser("markdown", url=site.url("/moved"))
    assert elsewhere.paths == []


async def test_a_web_socket_to_another_address_ends_the_session(
    outside_browser: Browser, site: Site, elsewhere: Site
) -> None:
    script = f"<script>new WebSocket('{elsewhere.url('/socket').replace('http', 'ws')}')</script>"
    code = opened(f"await go('{site.page('/socket', script)}'); await cdp.waitForEvent({{ method: 'Page.never' }})")
    with pytest.raises(BrowserGone, match="not allowed, and the browser was left"):
        await outside_browser.run(code, within=context(instance="socket"))


async def test_a_name_whose_address_is_not_public_is_held_back(cdp_url: str, site: Site) -> None:
    async def private(_host: str) -> list[str]:
        return ["10.0.0.1"]

    browser = browser_of(site, host="other.test", cdp_url=cdp_url, resolver=private)
    site.paths.clear()
    with pytest.raises(FetchFailed, match="not public"):
        await browser("markdown", url=site.url("/private", host="other.test"))
    # The worker of a page of an earlier test, on the same site, may be fetched late.
    assert [path for path in site.paths if path != "/sw.js"] == []


async def test_a_session_that_connected_to_an_address_that_is_not_public_is_left(cdp_url: str, site: Site) -> None:
    async def public(_host: str) -> list[str]:
        return ["1.1.1.1"]  # as this process sees it; the browser resolves the name itself

    browser = browser_of(site, host="other.test", cdp_url=cdp_url, resolver=public, allow_private=["10.0.0.0/8"])
    site.page("/secret", "secret")
    with pytest.raises(BrowserFailed, match="not public"):
        await browser("markdown", url=site.url("/secret", host="other.test"))


async def test_a_browser_that_is_not_there_is_unavailable(site: Site) -> None:
    for address in ("http://127.0.0.1:1", "ws://127.0.0.1:1/devtools/browser/x", site.url("")):
        browser = browser_of(site, cdp_url=address, allow_private=LOOPBACK)
        with pytest.raises(BrowserUnavailable):
            await browser("markdown", url=site.page("/x", "x"))
