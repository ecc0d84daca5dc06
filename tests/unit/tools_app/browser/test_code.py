"""Code of models that looks up the protocol and drives a browser by it."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.unit.tools_app.browser.conftest import Browser, Site, context
from tests.unit.tools_app.browser.page_code import opened
from tools_app.browser.guest import RING
from tools_app.browser.pool import pool
from tools_app.browser.spec import spec_of
from tools_app.browser.tools import EXECUTE, SEARCH
from tools_app.errors import ToolError

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def _few_pages() -> AsyncIterator[None]:
    """Each test begins without pages: a session has ten at most, and tests run in any order."""
    yield
    await pool().close()


GUIDE = Path(__file__).parents[4] / "docs" / "howto" / "browser.md"


# browser_search


async def test_the_example_of_browser_search_lists_commands_of_pages(browser: Browser) -> None:
    example = SEARCH.splitlines()[3]
    found = (await browser("search", code=example))["value"]
    assert "Page.navigate" in found
    assert "Page.setDownloadBehavior" not in found


async def test_the_specification_is_the_browsers_own_without_what_is_refused(browser: Browser) -> None:
    code = """async () => {
      const { version, domains } = await spec.get();
      const page = domains.find((domain) => domain.name === "Page");
      const navigate = page.commands.find((command) => command.method === "Page.navigate");
      return { version, names: domains.map((domain) => domain.name), parameters: navigate.parameters.map((p) => p.name),
        events: page.events.map((event) => event.method), hasTypes: page.types.length > 0 };
    }"""
    found = (await browser("search", code=code))["value"]
    assert found["version"] == "1.3"
    assert "url" in found["parameters"]
    assert "Page.loadEventFired" in found["events"]
    assert found["hasTypes"]
    assert {"Page", "Runtime", "DOM", "Target"} <= set(found["names"])
    assert not {"IO", "Fetch", "Storage", "SystemInfo", "Tracing"} & set(found["names"])


async def test_the_specification_is_read_once_for_a_while(browser: Browser) -> None:
    assert await spec_of() is await spec_of()


async def test_code_of_browser_search_reaches_no_browser(browser: Browser) -> None:
    with pytest.raises(ToolError, match="cdp is not defined"):
        await browser("search", code="async () => cdp.send({ method: 'Target.getTargets' })")


# browser_execute


async def test_the_example_of_browser_execute_reads_a_title(browser: Browser, site: Site) -> None:
    url = site.page("/title", "Hello")
    example = EXECUTE.partition("async () => {")[2].partition("\n}\n")[0].replace("https://example.com/", url)
    noted: list[tuple[str, str]] = []
    result = await browser("execute", code=f"async () => {{{example}\n}}", within=context(noted=noted))
    assert result.value["value"] == "/title"
    assert url in result.value["pages"]
    assert ("web", url) in noted
    steps = [(step["method"], step["ok"], step.get("url")) for step in result.value["steps"]]
    assert steps == [
        ("Target.createTarget", True, "about:blank"),
        ("Page.enable", True, None),
        ("Page.navigate", True, url),
        ("Runtime.evaluate", True, None),
    ]


async def test_the_code_of_the_guide_reads_a_title_and_takes_a_picture(browser: Browser, site: Site) -> None:
    url = site.page("/guide", "Hello")
    [code] = re.findall(r"```javascript\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    result = await browser("execute", code=code.replace("https://docs.python.org/3/", url))
    assert result.value["value"] == "/guide"
    assert len(result.media) == 1


async def test_pictures_that_code_takes_come_with_the_result(browser: Browser, site: Site) -> None:
    url = site.page("/picture", "<h1>Seen</h1>")
    result = await browser("execute", code=opened(f"await go('{url}'); return cdp.screenshot({{ sessionId }})"))
    [media] = result.media
    assert media.data.startswith(b"\x89PNG")
    assert result.value["value"] == {"file": media.name, "bytes": len(media.data)}


async def test_code_clicks_and_types(browser: Browser, site: Site) -> None:
    url = site.page("/form", "<input id=i autofocus style='position:fixed;left:0;top:0;width:200px;height:50px'>")
    code = f"""await go("{url}");
      const at = {{ x: 20, y: 20, button: "left", clickCount: 1 }};
      await send("Input.dispatchMouseEvent", {{ ...at, type: "mousePressed" }});
      await send("Input.dispatchMouseEvent", {{ ...at, type: "mouseReleased" }});
      await send("Input.insertText", {{ text: "typed" }});
      return value("document.querySelector('#i').value")"""
    assert await browser.run(opened(code)) == "typed"


async def test_console_and_errors_of_code_are_told(browser: Browser) -> None:
    result = await browser("execute", code="async () => { console.log('one'); return 2 }")
    assert (result.value["value"], result.value["console"]) == (2, [{"level": "log", "text": "one"}])
    with pytest.raises(ToolError, match=r"(?s)Code execution failed: Error: broken.*one"):
        await browser("execute", code="async () => { console.log('one'); throw new Error('broken') }")


async def test_the_log_keeps_the_last_commands_results_and_events(browser: Browser, site: Site) -> None:
    url = site.page("/log", "log")
    code = f"""await go("{url}"); await tried(() => send("No.such"));
      const kinds = (await cdp.getDebugLog()).map((entry) => entry.kind + " " + entry.method);
      for (let n = 0; n < 250; n++) await send("Page.enable");
      const all = (await cdp.getDebugLog()).length, last = (await cdp.getDebugLog({{ limit: 2 }})).length;
      await cdp.clearDebugLog();
      return {{ kinds, all, last, left: (await cdp.getDebugLog()).length }}"""
    found = await browser.run(opened(code))
    assert {"command Page.navigate", "result Page.navigate", "event Page.loadEventFired", "error No.such"} <= set(
        found["kinds"]
    )
    assert (found["all"], found["last"], found["left"]) == (RING, 2, 0)


async def test_a_command_without_an_answer_fails_in_its_time(browser: Browser) -> None:
    code = """return [
      await tried(() => cdp.send({ method: "Runtime.evaluate", sessionId, timeoutMs: 50,
        params: { expression: "new Promise(() => {})", awaitPromise: true } })),
      await tried(() => cdp.waitForEvent({ method: "Page.never", sessionId, timeoutMs: 50 }))]"""
    assert await browser.run(opened(code)) == [
        "Runtime.evaluate had no answer within 0.05 s.",
        "There was no Page.never within 0.05 s.",
    ]


async def test_an_event_is_given_once_also_if_it_came_before(browser: Browser, site: Site) -> None:
    url = site.page("/event", "event")
    code = f"""await go("{url}"); await value("1");
      return tried(() => cdp.waitForEvent({{ method: "Page.loadEventFired", sessionId, timeoutMs: 50 }}))"""
    assert "no Page.loadEventFired" in await browser.run(opened(code))


async def test_code_finds_its_pages_again_in_the_next_call(browser: Browser, site: Site) -> None:
    url, whose = site.page("/again", "again"), context(instance="again")
    await browser.run(opened(f"await go('{url}')"), within=whose)
    code = "async () => (await cdp.send({ method: 'Target.getTargets' })).targetInfos.map((target) => target.url)"
    assert url in await browser.run(code, within=whose)
    assert url not in await browser.run(code, within=context(instance="somebody"))


async def test_code_does_not_see_the_credential_of_the_proxy(browser: Browser, site: Site) -> None:
    url = site.page("/headers", "headers")
    code = f"""await send("Network.enable"); await go("{url}"); await go("{url}?2");
      return (await cdp.getDebugLog()).filter((entry) => entry.method.startsWith("Network.requestWillBeSent"))"""
    seen = json.dumps(await browser.run(opened(code)))
    assert "requestWillBeSentExtraInfo" in seen
    assert "User-Agent" in seen
    assert set(re.findall(r'"Proxy-Authorization": "Basic ([^"]*)"', seen)) == {"-"}


# what is refused


REFUSED = {
    "another session's id": ("cdp.send({ method: 'Page.enable', sessionId: 'ABC' })", "none of this code's"),
    "a page that is not there": ("cdp.attachToTarget({ targetId: 'ABC' })", "No target with given id"),
    "closing the browser": ("cdp.send({ method: 'Browser.close' })", "not allowed"),
    "other contexts": ("cdp.send({ method: 'Target.getBrowserContexts' })", "not allowed"),
    "the whole protocol for a page": ("cdp.send({ method: 'Target.exposeDevToolsProtocol' })", "not allowed"),
    "messages around the policy": ("send('Target.sendMessageToTarget', { message: '{}' })", "not allowed"),
    "files": ("send('DOM.setFileInputFiles', { files: ['/etc/passwd'] })", "not allowed"),
    "streams": ("send('IO.read', { handle: '1' })", "not allowed"),
    "downloads": ("send('Page.setDownloadBehavior', { behavior: 'allow', downloadPath: '/tmp' })", "not allowed"),
    "a session where none belongs": ("send('Target.getTargets')", "without a sessionId"),
    "no session where one belongs": ("cdp.send({ method: 'Page.enable' })", "needs the sessionId"),
    "no method": ("cdp.send({})", "takes"),
    "no such function": ("cdp.close()", "no function"),
}


async def test_code_cannot_leave_its_pages(browser: Browser) -> None:
    tries = ", ".join(f"await tried(() => {call})" for call, _ in REFUSED.values())
    found = await browser.run(opened(f"return [{tries}]"))
    for what, (_, expected), said in zip(REFUSED, REFUSED.values(), found, strict=True):
        assert expected in said, f"{what}: {said}"


ADDRESSES = (
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "file://localhost/etc/passwd",
    "chrome://version/",
    "chrome-devtools://devtools/bundled/inspector.html",
    "devtools://devtools/bundled/inspector.html",
    "view-source:file:///etc/passwd",
    "filesystem:file:///etc/",
    "data:text/html,<h1>x",
    "javascript:location='file:///etc/passwd'",
    "blob:null/1",
    "ftp://127.0.0.1/",
    "about:version",
    "//169.254.169.254/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::ffff:169.254.169.254]/",
    "http://metadata.google.internal/",
    "http://user:password@127.0.0.1/",
    "http://2130706433/",
    "http://127.0.0.1:1/",
    "https://example.com/",
)


async def test_code_cannot_go_to_addresses_that_are_not_allowed(browser: Browser) -> None:
    going = ", ".join(
        f"await tried(() => send('Page.navigate', {{ url: {url!r} }})), "
        f"await tried(() => cdp.send({{ method: 'Target.createTarget', params: {{ url: {url!r} }} }}))"
        for url in ADDRESSES
    )
    found = await browser.run(opened(f"return [{going}]"))
    assert [said for said in found if said == "done"] == []
    assert all(re.search(r"URL|host|port", said) for said in found)


async def test_scripts_of_a_page_cannot_go_to_files_or_the_browsers_own_pages(browser: Browser, site: Site) -> None:
    url = site.page("/goes", "goes")
    code = f"""await go("{url}");
      for (const address of ["file:///etc/passwd", "chrome://version/", "view-source:{url}"]) {{
        await tried(() => value(`void window.open("${{address}}"); void (location = "${{address}}"); 1`));
        await tried(() => value(`fetch("${{address}}").then((r) => r.text())`));
        await tried(() => value(`void document.body.append(Object.assign(document.createElement("iframe"),
          {{ src: "${{address}}" }}))`));
      }}
      const targets = (await cdp.send({{ method: "Target.getTargets" }})).targetInfos.map((target) => target.url);
      return {{ targets, text: await value("document.body.innerText") }}"""
    found: dict[str, Any] = await browser.run(opened(code), within=context(instance="goes"))
    assert found["text"].strip() == "goes"
    assert [address for address in found["targets"] if not address.startswith(("http:", "about:"))] == []
