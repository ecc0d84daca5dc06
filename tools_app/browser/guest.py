"""The part of a browser that code of a model has: commands of the protocol, in the sandbox, under the policy.

The code runs in Deno without permissions; each of its calls arrives here, and is checked here.
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size, dump, load
from tools_app.browser.errors import BrowserFailed, BrowserGone
from tools_app.browser.pages import picture_of
from tools_app.browser.policy import checked_command, url_of
from tools_app.browser.session import BrowserContext
from tools_app.browser.wire import COMMAND_SECONDS
from tools_app.core.tool_output import Media
from tools_app.errors import CodeInvalid, ToolError
from tools_app.sandbox.contract import Answer

RING: Final = 400
MAX_STEPS: Final = 100
MAX_PICTURES: Final = 8
MAX_COMMAND_SECONDS: Final = 30.0
MAX_ENTRY_BYTES: Final = 4_000


@dataclass(eq=False, kw_only=True)
class GuestCalls:
    """Answers the calls of one run of code. `steps`: the commands that were sent, for people."""

    session: BrowserContext
    steps: list[JSONObject] = field(default_factory=list)
    pictures: list[Media] = field(default_factory=list)
    _attached: dict[str, str] = field(default_factory=dict)  # sessions with pages, by session
    _log: deque[JSONObject] = field(default_factory=lambda: deque(maxlen=RING))
    _events: deque[JSONObject] = field(default_factory=lambda: deque(maxlen=RING))
    _more: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> "GuestCalls":
        self.session.connection.listeners.append(self._take)
        self.session.connection.on_end.append(self._more.set)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.session.connection.listeners.remove(self._take)
        self.session.connection.on_end.remove(self._more.set)
        for session_id in list(self._attached):
            if self.session.is_alive:
                await self._quietly("Target.detachFromTarget", {"sessionId": session_id})

    async def answer(self, name: str, args: list[JSONValue]) -> Answer:
        """Answer one call. Errors: `CodeInvalid` for what is no call, `ToolError` for one that failed."""
        value = args[0] if args and args[0] is not None else {}
        if not isinstance(value, dict) or len(args) > 1:
            raise CodeInvalid(f"{name} takes one object with named fields, as {name}({{field: value}}).")
        calls = {
            "cdp.send": self._send,
            "cdp.attachToTarget": self._attach,
            "cdp.waitForEvent": self._wait,
            "cdp.screenshot": self._picture,
            "cdp.getDebugLog": self._read_log,
            "cdp.clearDebugLog": self._clear_log,
        }
        if name not in calls:
            raise CodeInvalid(f"There is no function {name}.")
        return Answer(value=await calls[name](value))

    async def _send(self, value: JSONObject) -> JSONValue:
        method, params, session_id = value.get("method"), value.get("params") or {}, value.get("sessionId") or ""
        if not isinstance(method, str) or not isinstance(params, dict) or not isinstance(session_id, str):
            raise CodeInvalid("cdp.send takes {method, params, sessionId?, timeoutMs?}.")
        began = time.monotonic()
        step: JSONObject = {"method": method[:100], "ok": False, "ms": 0}
        if len(self.steps) < MAX_STEPS:
            self.steps.append(step)
        self._note("command", {"method": method, "params": params, "sessionId": session_id})
        try:
            result = await self._run(method, params, session_id, _seconds(value))
            step["ok"] = True
        except ToolError as error:
            step["error"] = error.message[:300]
            self._note("error", {"method": method, "message": error.message})
            raise
        finally:
            step["ms"] = int((time.monotonic() - began) * 1000)
            if address := url_of(method, params):
                step["url"] = address[:300]
        self._note("result", {"method": method, "result": result})
        return result

    async def _run(self, method: str, params: JSONObject, session_id: str, seconds: float) -> JSONObject:
        if session_id and session_id not in self._attached:
            raise BrowserFailed("This sessionId is none of this code's: attach with cdp.attachToTarget first.")
        params = checked_command(method, params, has_session=bool(session_id))
        url = url_of(method, params)
        if url not in {None, "", "about:blank"}:
            params["url"] = str(self.session.policy.check_url(str(url)))
        if session_id:
            result = await self.session.connection.send(method, params, session_id, seconds=seconds)
            return self._without_credential(method, result)
        return await self._run_on_browser(method, params, url or "")

    async def _run_on_browser(self, method: str, params: JSONObject, url: str) -> JSONObject:
        """A command to the browser itself, as far as it is about this session's own pages."""
        send = self.session.connection.send
        match method:
            case "Target.getTargets":
                found = await send(method)
                return {"targetInfos": [each for each in found["targetInfos"] if self._is_own(each)]}
            case "Target.createTarget":
                size = {name: params[name] for name in ("width", "height") if isinstance(params.get(name), int)}
                page = await self.session.new_page(size)
                if url and url != "about:blank":
                    await self.session.send(page, "Page.navigate", {"url": params["url"]})
                return {"targetId": page.target_id}
            case "Target.attachToTarget":
                return await self._attach(params)
            case "Target.detachFromTarget":
                if params.get("sessionId") not in self._attached:
                    raise BrowserFailed("This sessionId is none of this code's.")
                return await send(method, {"sessionId": params["sessionId"]})
            case "Browser.getVersion":
                return await send(method)
        target_id = await self._own_target(params)
        return await send(method, {"targetId": target_id})

    async def _attach(self, value: JSONObject) -> JSONObject:
        target_id = await self._own_target(value)
        made = await self.session.connection.send("Target.attachToTarget", {"targetId": target_id, "flatten": True})
        self._attached[str(made["sessionId"])] = target_id
        return {"sessionId": made["sessionId"]}

    async def _own_target(self, value: JSONObject) -> str:
        """Errors: `BrowserFailed` for a target of another session, which looks like one that is not there."""
        target_id = str(value.get("targetId", ""))
        found = await self.session.connection.send("Target.getTargets")
        if not any(each.get("targetId") == target_id and self._is_own(each) for each in found["targetInfos"]):
            raise BrowserFailed("No target with given id found")
        return target_id

    def _is_own(self, info: JSONObject) -> bool:
        is_page = info.get("type") == "page"
        return info.get("browserContextId") == self.session.context_id and (
            not is_page or info.get("targetId") in self.session.pages
        )

    async def _wait(self, value: JSONObject) -> JSONObject:
        """The first event of a kind that this run has not been given yet. Errors: `BrowserFailed` without one."""
        method, session_id, seconds = str(value.get("method", "")), value.get("sessionId"), _seconds(value)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    for event in self._events:
                        if event["method"] == method and session_id in {None, "", event["sessionId"]}:
                            self._events.remove(event)
                            return event
                    if self.session.connection.is_closed:
                        raise BrowserGone(self.session.connection.end_reason)
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            raise BrowserFailed(f"There was no {method} within {seconds:g} s.") from None

    async def _picture(self, value: JSONObject) -> JSONObject:
        session_id = str(value.get("sessionId", ""))
        if session_id not in self._attached:
            raise BrowserFailed("cdp.screenshot takes {sessionId, fullPage?}, a session of cdp.attachToTarget.")
        if len(self.pictures) >= MAX_PICTURES:
            raise BrowserFailed(f"There are at most {MAX_PICTURES} pictures in one call.")
        data = await picture_of(self.session, session_id, full_page=value.get("fullPage") is True)
        name = f"screenshot-{len(self.pictures) + 1}.png"
        self.pictures.append(Media(data=data, name=name))
        return {"file": name, "bytes": len(data)}

    async def _read_log(self, value: JSONObject) -> list[JSONObject]:
        limit = value.get("limit", RING)
        return list(self._log)[-limit:] if isinstance(limit, int) and limit > 0 else []

    async def _clear_log(self, _value: JSONObject) -> None:
        self._log.clear()

    def _take(self, method: str, params: JSONObject, session_id: str) -> None:
        if session_id not in self._attached:
            return
        if method == "Target.attachedToTarget":  # a frame or a worker of a page that is attached
            self._attached[str(params.get("sessionId"))] = str(params.get("targetInfo", {}).get("targetId"))
        elif method == "Target.detachedFromTarget":
            self._attached.pop(str(params.get("sessionId")), None)
        params = self._without_credential(method, params)
        self._note("event", {"method": method, "params": params, "sessionId": session_id})
        self._events.append({"method": method, "params": params, "sessionId": session_id})
        self._more.set()

    def _without_credential(self, method: str, value: JSONObject) -> JSONObject:
        """Events of the network show headers as they were sent, the proxy's among them, which is not the code's."""
        if self.session.proxy is None or not method.startswith("Network."):
            return value
        text, credential = dump(value), self.session.proxy.credential
        return load(text.replace(credential, "-")) if credential in text else value

    def _note(self, kind: str, facts: dict[str, Any]) -> None:
        if byte_size(facts) > MAX_ENTRY_BYTES:
            facts = {name: value for name, value in facts.items() if isinstance(value, str)} | {"cut": True}
        self._log.append({"kind": kind, **facts})

    async def _quietly(self, method: str, params: JSONObject) -> None:
        try:
            await self.session.connection.send(method, params)
        except BrowserFailed:
            return  # it is gone already


def _seconds(value: JSONObject) -> float:
    given = value.get("timeoutMs")
    if isinstance(given, bool) or not isinstance(given, int | float) or given <= 0:
        return COMMAND_SECONDS
    return min(given / 1000, MAX_COMMAND_SECONDS)
