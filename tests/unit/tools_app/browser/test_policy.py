"""What tools declare, and which commands of the protocol code may send."""

from typing import Any

import pytest

from tools_app.browser.errors import BrowserFailed
from tools_app.browser.policy import checked_command, may_show
from tools_app.browser.tools import create_browser_tools
from tools_app.core.origins import Origin
from tools_app.errors import ToolDeclarationInvalid

OF_THE_BROWSER = """
Browser.close Browser.crash Browser.setDownloadBehavior Browser.grantPermissions Browser.getBrowserCommandLine
Target.createBrowserContext Target.getBrowserContexts Target.disposeBrowserContext Target.exposeDevToolsProtocol
Target.sendMessageToTarget Target.attachToBrowserTarget Target.setRemoteLocations Target.setDiscoverTargets
SystemInfo.getInfo Storage.getCookies Tracing.start IO.read Page.navigate Nothing.atAll
"""
BEYOND_A_PAGE = """
DOM.setFileInputFiles DOM.getFileInfo Input.dispatchDragEvent IO.read IO.resolveBlob Page.setDownloadBehavior
Page.setInterceptFileChooserDialog Page.setBypassCSP Page.startScreencast Page.getResourceContent
Network.loadNetworkResource Network.takeResponseBodyForInterceptionAsStream Network.setBypassServiceWorker
Fetch.enable Fetch.continueWithAuth Fetch.takeResponseBodyAsStream Security.setIgnoreCertificateErrors
Storage.getCookies Storage.getUsageAndQuota FileSystem.getDirectory Debugger.enable HeapProfiler.enable
HeapProfiler.takeHeapSnapshot Tracing.start Memory.simulatePressureNotification SystemInfo.getInfo Browser.close
Target.getTargets Target.createBrowserContext Target.sendMessageToTarget Target.exposeDevToolsProtocol
ServiceWorker.enable WebAuthn.enable Extensions.loadUnpacked PWA.install BluetoothEmulation.enable
"""


def test_tools_say_what_they_may_do() -> None:
    tools = {tool.name: tool for tool in create_browser_tools(["example.com"], needs_approval=True)}
    search, execute, markdown = (tools[f"browser_{name}"] for name in ("search", "execute", "markdown"))
    assert (search.origin, search.read_only, search.open_world) == (Origin.TOOL, True, False)
    assert (execute.origin, execute.read_only, execute.open_world) == (Origin.WEB, False, True)
    assert (markdown.origin, markdown.read_only, markdown.open_world) == (Origin.WEB, True, True)
    assert (execute.needs_approval, execute.reruns, markdown.needs_approval) == (True, False, False)
    assert markdown.input_schema["required"] == ["url"]
    reused = {tool.name: tool for tool in create_browser_tools(["example.com"], session="reuse")}
    assert "required" not in reused["browser_markdown"].input_schema
    assert "browser_execute" in reused


@pytest.mark.parametrize(
    ("allow", "options"),
    [
        ([], {}),
        (["example.com/docs"], {}),
        (["file:///etc"], {}),
        (["example.com"], {"session": "for ever"}),
        (["example.com"], {"cdp_url": "file:///tmp/browser"}),
        (["example.com"], {"allow_private": ["intranet"]}),
    ],
)
def test_options_that_are_none_are_refused_when_the_tools_are_made(allow: list[str], options: dict[str, Any]) -> None:
    with pytest.raises(ToolDeclarationInvalid):
        create_browser_tools(allow, **options)


@pytest.mark.parametrize("method", OF_THE_BROWSER.split())
def test_the_browser_itself_takes_few_commands(method: str) -> None:
    with pytest.raises(BrowserFailed):
        checked_command(method, {}, has_session=False)


@pytest.mark.parametrize("method", BEYOND_A_PAGE.split())
def test_a_page_takes_no_command_that_reaches_beyond_it(method: str) -> None:
    with pytest.raises(BrowserFailed):
        checked_command(method, {}, has_session=True)


def test_dangerous_parameters_are_replaced() -> None:
    stream = checked_command("Page.printToPDF", {"transferMode": "ReturnAsStream", "scale": 2}, has_session=True)
    assert stream == {"transferMode": "ReturnAsBase64", "scale": 2}
    world = {"frameId": "F", "grantUniveralAccess": True, "grantUniversalAccess": True}
    assert not any(
        value is True for value in checked_command("Page.createIsolatedWorld", world, has_session=True).values()
    )
    attach = {"autoAttach": True, "flatten": False, "waitForDebuggerOnStart": True}
    assert checked_command("Target.setAutoAttach", attach, has_session=True) == {
        "autoAttach": True,
        "flatten": True,
        "waitForDebuggerOnStart": False,
    }


@pytest.mark.parametrize("name", ["Host", "proxy-authorization", "Proxy-Connection", "Connection", "Sec-Fetch-Site"])
def test_headers_that_the_proxy_relies_on_cannot_be_set(name: str) -> None:
    with pytest.raises(BrowserFailed, match="cannot be set"):
        checked_command("Network.setExtraHTTPHeaders", {"headers": {name: "x"}}, has_session=True)
    assert checked_command("Network.setExtraHTTPHeaders", {"headers": {"X-A": "x"}}, has_session=True)


def test_pages_are_at_addresses_of_the_web_only() -> None:
    for url in ("about:blank", "https://example.com/", "blob:https://example.com/1", "chrome-error://chromewebdata/"):
        assert may_show(url)
    for url in (
        "file:///etc/passwd",
        "chrome://version",
        "devtools://x",
        "view-source:https://a.b",
        "FILE:///x",
        "ftp://a",
    ):
        assert not may_show(url)
