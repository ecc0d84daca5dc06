"""Fetches a page: a GET by the one way out (`exchange.py`), of which only an answer with 2xx is one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from yarl import URL

from tools_app.fetching.addresses import Network
from tools_app.fetching.exchange import Exchange
from tools_app.fetching.resolving import Resolve, resolve
from tools_app.fetching.urls import AllowRule, check_allowed, checked_url
from tools_app.fetching.values import FetchLimits, Outgoing

ACCEPT: Final = "text/markdown, text/plain;q=0.9, application/json;q=0.8, text/html;q=0.5, */*;q=0.1"
USER_AGENT: Final = "ThinkForDjango-fetch/1"


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
        self._exchange = Exchange(
            rules, limits=self.limits, private=private, resolver=resolver, only_success=True, user_agent=USER_AGENT
        )

    def check(self, text: str) -> URL:
        """The URL, as it may be fetched. Errors: `FetchFailed` for one that is none or not allowed."""
        url = checked_url(text)
        check_allowed(url, self._rules)
        return url

    async def fetch(self, text: str) -> Fetched:
        """Get a URL. Errors: `FetchFailed` with the reason."""
        answer = await self._exchange.send(Outgoing(url=text, headers=(("Accept", ACCEPT),)))
        return Fetched(
            url=answer.url,
            status=answer.status,
            media_type=answer.media_type,
            charset=answer.charset,
            body=answer.body,
        )
