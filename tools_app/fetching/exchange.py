"""Requests with a method, headers and a body, for code of strangers and for pages: the one way out.

A redirect is followed by hand, and checked as the first address was.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from tools_app.fetching.addresses import Network
from tools_app.fetching.bodies import ENCODINGS, read_body
from tools_app.fetching.connecting import PinnedConnector
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import Resolve, checked_addresses, resolve
from tools_app.fetching.urls import AllowRule, check_allowed, checked_url
from tools_app.fetching.values import Answered, FetchLimits, Outgoing

METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MAX_HEADERS: Final = 50
MAX_HEADER_CHARS: Final = 8_192
USER_AGENT: Final = "ThinkForDjango-extension/1"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "cookie2",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "via",
    }
)
"""Headers that the client sets, or that speak to what lies between."""
_SECRET: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
"""Headers that are not sent on to another origin."""


class Exchange:
    """Sends requests to what an allow-list allows. Holds no connection and no cookie between two of them.

    `only_success`: a status other than 2xx is `FetchFailed` (`non_2xx`); else whatever it is, it is the answer.
    """

    def __init__(
        self,
        rules: Sequence[AllowRule],
        *,
        limits: FetchLimits | None = None,
        private: Sequence[Network] = (),
        resolver: Resolve = resolve,
        only_success: bool = False,
        user_agent: str = USER_AGENT,
    ) -> None:
        self.limits = limits or FetchLimits()
        self._only_success = only_success
        self._user_agent = user_agent
        self._rules = rules
        self._private = private
        self._resolver = resolver

    async def send(self, request: Outgoing) -> Answered:
        """Send a request. Errors: `FetchFailed` with the reason; `disallowed_url` before anything is sent."""
        request = _checked(request)
        url = checked_url(request.url)
        check_allowed(url, self._rules)
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._follow(url, request)
        except TimeoutError:
            raise FetchFailed("timeout", f"There was no whole answer within {self.limits.seconds:g} s.") from None

    async def _follow(self, url: URL, request: Outgoing) -> Answered:
        answer = await self._once(url, request)
        for _ in range(self.limits.max_redirects):
            location = _location(answer)
            if location is None or request.redirect == "manual":
                return answer
            if request.redirect == "error":
                raise FetchFailed("disallowed_redirect", "It redirects, which the request does not want.", url=str(url))
            try:
                target = checked_url(redirect_target(url, location))
                check_allowed(target, self._rules)
                request, url = _redirected(request, answer.status, url, target), target
                answer = replace(await self._once(url, request), was_redirected=True)
            except FetchFailed as error:
                if error.reason != "disallowed_url":
                    raise
                raise FetchFailed("disallowed_redirect", f"It redirects elsewhere. {error.message}") from error
        if _location(answer) is None or request.redirect == "manual":
            return answer
        raise FetchFailed(
            "request_failed", f"There were more than {self.limits.max_redirects} redirects.", url=str(url)
        )

    async def _once(self, url: URL, request: Outgoing) -> Answered:
        addresses = await checked_addresses(url, self._resolver, self._private)
        headers: CIMultiDict[str] = CIMultiDict({"Accept-Encoding": ENCODINGS, "User-Agent": self._user_agent})
        for name, value in request.headers:
            headers[name] = value
        try:
            async with (
                aiohttp.ClientSession(
                    connector=PinnedConnector(addresses),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    trust_env=False,
                    timeout=aiohttp.ClientTimeout(total=None),
                ) as session,
                session.request(
                    request.method, url, headers=headers, data=request.body or None, allow_redirects=False
                ) as response,
            ):
                return await self._read(url, request, response)
        except FetchFailed:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            message = f"The request failed: {type(error).__name__}"
            raise FetchFailed("request_failed", message, url=str(url)) from error

    async def _read(self, url: URL, request: Outgoing, response: aiohttp.ClientResponse) -> Answered:
        answer = Answered(
            url=str(url),
            status=response.status,
            reason=response.reason or "",
            headers=_received(response.headers),
            body=b"",
            media_type=response.content_type.lower(),
            charset=response.charset or "",
        )
        leads_on = _location(answer) is not None and request.redirect == "follow"
        if self._only_success and not leads_on and not 200 <= answer.status < 300:
            message = f"The server answered with status {answer.status}."
            raise FetchFailed("non_2xx", message, status=answer.status, url=str(url))
        if leads_on or request.method == "HEAD":
            return answer
        encoding = response.headers.get("Content-Encoding", "")
        return replace(answer, body=await read_body(_chunks(response), encoding, self.limits.max_bytes))


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body of a response in pieces, as it was sent."""
    async for chunk in response.content.iter_any():
        yield chunk


def _location(answer: Answered) -> str | None:
    """The address that an answer redirects to."""
    named = [value for name, value in answer.headers if name.lower() == "location" and value]
    return named[0] if named and answer.status in _REDIRECTS else None


def redirect_target(url: URL, location: str) -> str:
    """The target of a redirect, as a text: it is checked like the text of a model, before it is parsed again."""
    if any(char <= " " or char == "\\" or not char.isprintable() for char in location):
        return location
    try:
        return str(url.join(URL(location)))
    except ValueError:
        return location


def _checked(request: Outgoing) -> Outgoing:
    """The request with its method in capitals and without headers that are ours. Errors: `FetchFailed`."""
    method = request.method.upper()
    if method not in METHODS:
        raise FetchFailed("request_failed", f"The method {method[:20]!r} cannot be used.")
    if len(request.headers) > MAX_HEADERS or sum(len(n) + len(v) for n, v in request.headers) > MAX_HEADER_CHARS:
        raise FetchFailed("too_large", "The request has too many headers.")
    for name, value in request.headers:
        if not name.isascii() or any(char <= " " or char in ':"(),/;<=>?@[]{}\\' for char in name) or not name:
            raise FetchFailed("request_failed", "A header has an impossible name.")
        if any(char in "\r\n\x00" for char in value):
            raise FetchFailed("request_failed", "A header has an impossible value.")
    kept = tuple((n, v) for n, v in request.headers if n.lower() not in _OURS and not n.lower().startswith("proxy-"))
    return replace(request, method=method, headers=kept)


def _redirected(request: Outgoing, status: int, url: URL, target: URL) -> Outgoing:
    """The request that follows a redirect, as browsers make it."""
    headers = request.headers
    if url.origin() != target.origin():
        headers = tuple((name, value) for name, value in headers if name.lower() not in _SECRET)
    becomes_get = (status == 303 and request.method != "HEAD") or (status in {301, 302} and request.method == "POST")
    if not becomes_get:
        return replace(request, headers=headers)
    headers = tuple((name, value) for name, value in headers if not name.lower().startswith("content-"))
    return replace(request, method="GET", headers=headers, body=b"")


def _received(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Headers of an answer, without cookies and without how the body was packed."""
    left_out = {"set-cookie", "set-cookie2", "content-encoding", "content-length", "transfer-encoding"}
    return tuple((str(n), str(v)) for n, v in headers.items() if n.lower() not in left_out)[:100]
