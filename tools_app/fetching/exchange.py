"""Requests with a method, headers and a body, for code of strangers: the same policy of addresses as for pages.

A redirect is followed by hand, and checked as the first address was. Whatever the answer's status is, it is the answer.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from tools_app.fetching.addresses import Network
from tools_app.fetching.bodies import ENCODINGS, read_body
from tools_app.fetching.client import body_chunks, redirect_target
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
    """Sends requests to what an allow-list allows. Holds no connection and no cookie between two of them."""

    def __init__(
        self,
        rules: Sequence[AllowRule],
        *,
        limits: FetchLimits | None = None,
        private: Sequence[Network] = (),
        resolver: Resolve = resolve,
    ) -> None:
        self.limits = limits or FetchLimits()
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
        for hop in range(self.limits.max_redirects + 1):
            answer = await self._once(url, request)
            location = {name.lower(): value for name, value in answer.headers}.get("location")
            if request.redirect == "manual" or answer.status not in _REDIRECTS or not location:
                return replace(answer, was_redirected=hop > 0)
            if request.redirect == "error":
                raise FetchFailed("disallowed_redirect", "It redirects, which the request does not want.", url=str(url))
            try:
                target = checked_url(redirect_target(url, location))
                check_allowed(target, self._rules)
            except FetchFailed as error:
                raise FetchFailed("disallowed_redirect", f"It redirects elsewhere. {error.message}") from error
            request, url = _redirected(request, answer.status, url, target), target
        raise FetchFailed(
            "request_failed", f"There were more than {self.limits.max_redirects} redirects.", url=str(url)
        )

    async def _once(self, url: URL, request: Outgoing) -> Answered:
        addresses = await checked_addresses(url, self._resolver, self._private)
        headers: CIMultiDict[str] = CIMultiDict({"Accept-Encoding": ENCODINGS, "User-Agent": USER_AGENT})
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
                encoding = response.headers.get("Content-Encoding", "")
                body = (
                    b""
                    if request.method == "HEAD"
                    else await read_body(body_chunks(response), encoding, self.limits.max_bytes)
                )
                return Answered(
                    url=str(url),
                    status=response.status,
                    reason=response.reason or "",
                    headers=_received(response.headers),
                    body=body,
                )
        except FetchFailed:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            message = f"The request failed: {type(error).__name__}"
            raise FetchFailed("request_failed", message, url=str(url)) from error


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
