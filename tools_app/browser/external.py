"""Browsers that run elsewhere, which a developer names: joined over a socket, and guarded from within.

The wall is weaker than the proxy of a browser of our own. Each request of a page is held back until its address was
checked here (`Fetch`), but the browser resolves the name itself: the address that it connected to is known only
afterwards, and ends the session if it is not allowed. Web sockets are seen when they are made, not before. Windows that
pages open are closed, but the first request of one may have been sent.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from yarl import URL

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.browser.errors import BrowserFailed, BrowserUnavailable
from tools_app.browser.proxy import NetworkPolicy
from tools_app.browser.session import BrowserContext, BrowserPage
from tools_app.browser.wire import MAX_MESSAGE_BYTES, BrowserConnection, SocketTransport
from tools_app.errors import ToolDeclarationInvalid
from tools_app.fetching.addresses import is_allowed, parse_address
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import checked_addresses

JOIN_SECONDS: Final = 15.0
_SCHEMES: Final = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
_HARMLESS: Final = ("data:", "blob:", "about:")


def check_cdp_url(text: str) -> None:
    """Errors: `ToolDeclarationInvalid` for what is no address of a browser; empty is none, which is right."""
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if text and (url.scheme not in _SCHEMES or not url.raw_host):
        raise ToolDeclarationInvalid("cdp_url is an address with http, https, ws or wss.")


def http_base(cdp_url: str) -> str:
    """The address at which a browser answers to HTTP; empty for none."""
    url = URL(cdp_url)
    return str(url.origin().with_scheme(_SCHEMES[url.scheme])) if cdp_url else ""


async def join(cdp_url: str, policy: NetworkPolicy) -> BrowserContext:
    """Open a session in a browser elsewhere. Errors: `BrowserUnavailable`."""
    client = aiohttp.ClientSession(trust_env=False)
    try:
        async with asyncio.timeout(JOIN_SECONDS):
            address = await _socket_address(client, cdp_url)
            socket = await client.ws_connect(address, max_msg_size=MAX_MESSAGE_BYTES, heartbeat=30)
    except (aiohttp.ClientError, OSError, ValueError, KeyError) as error:
        await client.close()
        raise BrowserUnavailable("The browser elsewhere could not be reached.") from error
    except BaseException:
        await client.close()
        raise
    session = BrowserContext(
        connection=BrowserConnection(SocketTransport(client, socket)), policy=policy, guard=FetchGuard()
    )
    try:
        await session.begin()
    except BaseException:
        await session.close()
        raise
    return session


async def _socket_address(client: aiohttp.ClientSession, cdp_url: str) -> str:
    """The address of the socket; a browser that is named by http says which one, on the same host."""
    url = URL(cdp_url)
    if url.scheme in {"ws", "wss"}:
        return cdp_url
    async with client.get(url.joinpath("json", "version")) as answer:
        answer.raise_for_status()
        path = URL((await answer.json(content_type=None))["webSocketDebuggerUrl"]).path
    return str(url.origin().with_scheme("wss" if url.scheme == "https" else "ws").with_path(path))


@dataclass(eq=False)
class FetchGuard:
    """Holds back each request of the pages of a session until it was checked."""

    _tasks: set["asyncio.Task[Any]"] = field(default_factory=set)
    _watched: set[str] = field(default_factory=set)

    async def watch(self, session: BrowserContext, page: BrowserPage, control: str) -> None:  # noqa: ARG002 - a page is its control here
        """Begin to hold back requests. Errors: `BrowserFailed`."""
        if not self._watched:
            session.connection.listeners.append(lambda *event: self._take(session, *event))
        await self._begin(session, control)

    async def _begin(self, session: BrowserContext, control: str) -> None:
        self._watched.add(control)
        send = session.connection.send
        await send("Network.enable", {}, control)
        await send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}, control)
        within = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
        await send("Target.setAutoAttach", within, control)

    def _take(self, session: BrowserContext, method: str, params: JSONObject, session_id: str) -> None:
        if session_id not in self._watched:
            return
        if method == "Fetch.requestPaused":
            self._do(self._decide(session, params, session_id))
        elif method == "Network.responseReceived":
            self._check_peer(session, str(params.get("response", {}).get("remoteIPAddress", "")))
        elif method == "Network.webSocketCreated":
            self._do(self._check_socket(session, str(params.get("url", ""))))
        elif method == "Target.attachedToTarget":  # a frame, a worker or a window: it waits until it is watched as well
            self._do(self._follow(session, str(params.get("sessionId", ""))))

    async def _follow(self, session: BrowserContext, control: str) -> None:
        with contextlib.suppress(BrowserFailed):
            await self._begin(session, control)
        await session.connection.send("Runtime.runIfWaitingForDebugger", {}, control)

    async def _decide(self, session: BrowserContext, params: JSONObject, control: str) -> None:
        request = {"requestId": params["requestId"]}
        address = str(params.get("request", {}).get("url", ""))
        if await self._may_load(session, address):
            await session.connection.send("Fetch.continueRequest", request, control)
        else:
            await session.connection.send("Fetch.failRequest", {**request, "errorReason": "BlockedByClient"}, control)

    async def _may_load(self, session: BrowserContext, address: str) -> bool:
        if address.startswith(_HARMLESS):
            return True
        try:
            url = session.policy.check_url(address)
            await checked_addresses(url, session.policy.resolver, session.policy.private)
        except FetchFailed as error:
            session.block(address, error.message)
            return False
        return True

    async def _check_socket(self, session: BrowserContext, address: str) -> None:
        if not await self._may_load(session, "http" + address.removeprefix("ws")):
            session.end("A page connected to an address that is not allowed, and the browser was left.")

    def _check_peer(self, session: BrowserContext, text: str) -> None:
        address = parse_address(text.strip("[]"))
        if address is not None and not is_allowed(address, session.policy.private):
            session.end("The browser connected to an address that is not public, and was left.")

    def _do(self, work: Any) -> None:
        task = asyncio.create_task(_quietly(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _quietly(work: Any) -> None:
    with contextlib.suppress(BrowserFailed):
        await work
