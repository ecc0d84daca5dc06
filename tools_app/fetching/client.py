"""Fetches a URL within limits: redirects are followed by hand, and each is checked as the first URL was."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import aiohttp
from yarl import URL

from tools_app.fetching.addresses import Network
from tools_app.fetching.bodies import ENCODINGS, read_body
from tools_app.fetching.connecting import PinnedConnector
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import Resolve, checked_addresses, resolve
from tools_app.fetching.urls import AllowRule, check_allowed, checked_url
from tools_app.fetching.values import FetchLimits

ACCEPT: Final = "text/markdown, text/plain;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
USER_AGENT: Final = "ThinkForDjango-fetch/1"
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A response with status 2xx, its body decompressed. `charset`: as the header names it, or empty."""

    url: str
    status: int
    media_type: str
    charset: str
    body: bytes = field(repr=False)


class Fetcher:
    """Fetches what an allow-list allows. Holds no connection between two fetches."""

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

    def check(self, text: str) -> URL:
        """The URL, as it may be fetched. Errors: `FetchFailed` for one that is none or not allowed."""
        url = checked_url(text)
        check_allowed(url, self._rules)
        return url

    async def fetch(self, text: str) -> Fetched:
        """Get a URL. Errors: `FetchFailed` with the reason."""
        url = self.check(text)
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._follow(url)
        except TimeoutError:
            raise FetchFailed("timeout", f"There was no whole answer within {self.limits.seconds:g} s.") from None

    async def _follow(self, url: URL) -> Fetched:
        answer = await self._get(url)
        for _ in range(self.limits.max_redirects):
            if isinstance(answer, Fetched):
                return answer
            try:
                url = checked_url(answer)
                check_allowed(url, self._rules)
                answer = await self._get(url)
            except FetchFailed as error:
                if error.reason != "disallowed_url":
                    raise
                raise FetchFailed("disallowed_redirect", f"It redirects elsewhere. {error.message}") from error
        if isinstance(answer, Fetched):
            return answer
        raise FetchFailed(
            "request_failed", f"There were more than {self.limits.max_redirects} redirects.", url=str(url)
        )

    async def _get(self, url: URL) -> Fetched | str:
        """Get one URL: a response, or where it redirects to."""
        addresses = await checked_addresses(url, self._resolver, self._private)
        headers = {"Accept": ACCEPT, "Accept-Encoding": ENCODINGS, "User-Agent": USER_AGENT}
        try:
            async with (
                aiohttp.ClientSession(
                    connector=PinnedConnector(addresses),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    trust_env=False,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=None),  # the whole fetch has one
                ) as session,
                session.get(url, allow_redirects=False) as response,
            ):
                if response.status in _REDIRECTS and "Location" in response.headers:
                    return redirect_target(url, response.headers["Location"])
                return await self._read(url, response)
        except FetchFailed:
            raise
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            message = f"The request failed: {type(error).__name__}"
            raise FetchFailed("request_failed", message, url=str(url)) from error

    async def _read(self, url: URL, response: aiohttp.ClientResponse) -> Fetched:
        if not 200 <= response.status < 300:
            message = f"The server answered with status {response.status}."
            raise FetchFailed("non_2xx", message, status=response.status, url=str(url))
        encoding = response.headers.get("Content-Encoding", "")
        body = await read_body(body_chunks(response), encoding, self.limits.max_bytes)
        return Fetched(
            url=str(url),
            status=response.status,
            media_type=response.content_type.lower(),
            charset=response.charset or "",
            body=body,
        )


async def body_chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The body of a response in pieces, as it was sent."""
    async for chunk in response.content.iter_any():
        yield chunk


def redirect_target(url: URL, location: str) -> str:
    """The target of a redirect, as a text: it is checked like the text of a model, before it is parsed again."""
    if any(char <= " " or char == "\\" or not char.isprintable() for char in location):
        return location
    try:
        return str(url.join(URL(location)))
    except ValueError:
        return location
