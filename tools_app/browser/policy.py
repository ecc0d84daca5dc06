"""The commands of the DevTools protocol that code of models may send, and with which parameters. Pure.

Everything else is refused: what reaches files, other pages, the browser itself or other people's sessions, and what is
not known here. Commands to the browser are answered by the session (`session.py`), which knows what belongs to it.
"""

from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.browser.errors import BrowserFailed

BROWSER_COMMANDS: Final = frozenset(
    {
        "Browser.getVersion",
        "Target.activateTarget",
        "Target.attachToTarget",
        "Target.closeTarget",
        "Target.createTarget",
        "Target.detachFromTarget",
        "Target.getTargetInfo",
        "Target.getTargets",
    }
)
"""Commands without a session."""

_PAGE_COMMANDS: Final = {
    "Accessibility": "disable enable getAXNodeAndAncestors getChildAXNodes getFullAXTree getPartialAXTree "
    "getRootAXNode queryAXTree",
    "CSS": "disable enable getBackgroundColors getComputedStyleForNode getInlineStylesForNode "
    "getMatchedStylesForNode getMediaQueries getPlatformFontsForNode getStyleSheetText",
    "DOM": "collectClassNamesFromSubtree describeNode disable discardSearchResults enable focus getAttributes "
    "getBoxModel getContentQuads getDocument getFlattenedDocument getFrameOwner getNodeForLocation "
    "getOuterHTML getSearchResults moveTo performSearch pushNodesByBackendIdsToFrontend querySelector "
    "querySelectorAll removeAttribute removeNode requestChildNodes requestNode resolveNode "
    "scrollIntoViewIfNeeded setAttributeValue setAttributesAsText setNodeName setNodeValue setOuterHTML",
    "DOMDebugger": "getEventListeners",
    "DOMSnapshot": "captureSnapshot disable enable",
    "DOMStorage": "clear disable enable getDOMStorageItems removeDOMStorageItem setDOMStorageItem",
    "Emulation": "clearDeviceMetricsOverride clearGeolocationOverride setDefaultBackgroundColorOverride "
    "setDeviceMetricsOverride setEmulatedMedia setGeolocationOverride setLocaleOverride "
    "setScriptExecutionDisabled setTimezoneOverride setTouchEmulationEnabled setUserAgentOverride",
    "Input": "cancelDragging dispatchKeyEvent dispatchMouseEvent dispatchTouchEvent emulateTouchFromMouseEvent "
    "imeSetComposition insertText synthesizeScrollGesture synthesizeTapGesture",
    "Log": "clear disable enable",
    "Network": "clearBrowserCache clearBrowserCookies deleteCookies disable emulateNetworkConditions enable "
    "getCookies getRequestPostData getResponseBody searchInResponseBody setBlockedURLs setCacheDisabled "
    "setCookie setCookies setExtraHTTPHeaders setUserAgentOverride",
    "Page": "addScriptToEvaluateOnNewDocument bringToFront captureScreenshot captureSnapshot close "
    "createIsolatedWorld disable enable getAppManifest getFrameTree getLayoutMetrics getNavigationHistory "
    "handleJavaScriptDialog navigate navigateToHistoryEntry printToPDF reload "
    "removeScriptToEvaluateOnNewDocument resetNavigationHistory setDocumentContent "
    "setLifecycleEventsEnabled stopLoading",
    "Performance": "disable enable getMetrics",
    "Runtime": "awaitPromise callFunctionOn compileScript disable enable evaluate getProperties "
    "globalLexicalScopeNames releaseObject releaseObjectGroup runIfWaitingForDebugger runScript "
    "terminateExecution",
    "Target": "setAutoAttach",
}
PAGE_COMMANDS: Final = frozenset(
    f"{domain}.{command}" for domain, commands in _PAGE_COMMANDS.items() for command in commands.split()
)
"""Commands to the session of a page, a frame or a worker."""

ABOUT_BLANK: Final = "about:blank"
EMPTY: Final = frozenset({"", ABOUT_BLANK, "about:srcdoc", ":"})
"""Addresses of a page that has gone nowhere; a new one has the last of them for a moment."""
_FORCED: Final[dict[str, JSONObject]] = {
    "Page.printToPDF": {"transferMode": "ReturnAsBase64"},  # a stream would be read with IO
    "Page.createIsolatedWorld": {"grantUniveralAccess": False, "grantUniversalAccess": False},
    "Target.setAutoAttach": {"flatten": True, "waitForDebuggerOnStart": False},
}
_HEADERS: Final = frozenset({"host", "connection", "upgrade", "transfer-encoding", "content-length", "te", "trailer"})


def is_allowed(method: str) -> bool:
    """Whether code may send this command at all."""
    return method in BROWSER_COMMANDS or method in PAGE_COMMANDS


def checked_command(method: str, params: JSONObject, *, has_session: bool) -> JSONObject:
    """The parameters with which a command may be sent. Errors: `BrowserFailed` for one that may not.

    URLs in them are the session's to check (`url_of`).
    """
    if method not in (PAGE_COMMANDS if has_session else BROWSER_COMMANDS):
        if is_allowed(method):
            raise BrowserFailed(
                f"{method} goes to the browser, without a sessionId."
                if has_session
                else f"{method} goes to a page: it needs the sessionId of cdp.attachToTarget."
            )
        raise BrowserFailed(f"{method} is not allowed here, or does not exist. browser_search lists what is.")
    if method == "Network.setExtraHTTPHeaders":
        _check_headers(params.get("headers"))
    return {**params, **_FORCED.get(method, {})}


def url_of(method: str, params: JSONObject) -> str | None:
    """The address that a command wants to be loaded; `None` for a command that names none."""
    if method not in {"Page.navigate", "Target.createTarget"}:
        return None
    url = params.get("url", "")
    return url if isinstance(url, str) else ""


def may_show(url: str) -> bool:
    """Whether a page may be at this address, wherever it came from: never at files or the browser's own pages."""
    scheme, _, rest = url.partition(":")
    return url in EMPTY or (scheme.lower() in {"http", "https", "blob", "data", "chrome-error"} and bool(rest))


def _check_headers(headers: object) -> None:
    if not isinstance(headers, dict):
        raise BrowserFailed("headers is an object of names and values.")
    for name in headers:
        if str(name).lower() in _HEADERS or str(name).lower().startswith(("proxy-", "sec-")):
            raise BrowserFailed(f"The header {name} cannot be set.")
