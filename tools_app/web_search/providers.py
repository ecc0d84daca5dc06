"""Services that search the web: how each is asked, and how its answer is read.

A provider makes a request and reads JSON; it reaches nothing itself. Its key is in no result, no error and no `repr`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import urlencode

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.errors import ToolDeclarationInvalid
from tools_app.fetching.values import Outgoing
from tools_app.web_search.results import SearchResult, Unanswered, plain, read_results

_JSON: Final = (("Accept", "application/json"),)


class SearchProvider(Protocol):
    """A service that searches the web."""

    @property
    def name(self) -> str:
        """Its name, for people and models."""

    @property
    def base_url(self) -> str:
        """The address that it is reached at; requests go to no other origin."""

    def request(self, query: str, count: int) -> Outgoing:
        """The request for so many results; of a provider that has no such number, for a page of them."""

    def read(self, answer: JSONObject) -> list[SearchResult]:
        """The results in an answer with status 2xx, best first. What is no result is left out. Errors: `Unanswered`."""

    def refusal(self, status: int) -> str:
        """A sentence for a status of its own meaning; empty where the general one does."""


@dataclass(frozen=True, slots=True)
class SearXNG:
    """A SearXNG, mostly one of one's own. `base_url`: as `http://127.0.0.1:8888`. `headers`: for a proxy before it.

    Its settings must list `json` under `search.formats`; by itself it gives pages alone.
    Source: https://docs.searxng.org/dev/search_api
    """

    base_url: str
    language: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    name: str = "SearXNG"

    def request(self, query: str, count: int) -> Outgoing:  # noqa: ARG002 - it has pages of its own size
        """GET /search."""
        fields = {"q": query, "format": "json", **({"language": self.language} if self.language else {})}
        return Outgoing(url=_at(self, "/search", fields), headers=(*_JSON, *self.headers.items()), redirect="error")

    def read(self, answer: JSONObject) -> list[SearchResult]:
        """`results[]` with `url`, `title`, `content`, `publishedDate`; `unresponsive_engines[]` of name and reason."""
        found = read_results(answer.get("results"), text="content", published="publishedDate")
        silent = answer.get("unresponsive_engines")
        if silent and isinstance(silent, list) and not found:
            names = ", ".join(plain(each[0] if isinstance(each, list) and each else each, 40) for each in silent[:5])
            raise Unanswered(f"Nothing was found, but engines of it did not answer ({names}). Try again later.")
        return found

    def refusal(self, status: int) -> str:
        """403: the format is switched off."""
        return "It gives no JSON: its settings must list `json` under `search.formats`." if status == 403 else ""


@dataclass(frozen=True, slots=True)
class Brave:
    """Brave Search. `key`: of a subscription. `country`: two letters.

    Source: https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
    """

    key: str = field(repr=False)
    country: str = ""
    base_url: str = "https://api.search.brave.com"
    name: str = "Brave Search"

    MOST = 20

    def __post_init__(self) -> None:
        _check_key(self.name, self.key)

    def request(self, query: str, count: int) -> Outgoing:
        """GET /res/v1/web/search."""
        fields = {"q": query, "count": str(min(count, self.MOST)), "text_decorations": "false"}
        fields |= {"country": self.country} if self.country else {}
        headers = (*_JSON, ("X-Subscription-Token", self.key))
        return Outgoing(url=_at(self, "/res/v1/web/search", fields), headers=headers, redirect="error")

    def read(self, answer: JSONObject) -> list[SearchResult]:
        """`web.results[]` with `url`, `title`, `description`, `page_age`; no `web` where nothing was found."""
        web: JSONValue = answer.get("web")
        entries = web.get("results") if isinstance(web, dict) else None
        return read_results(entries, text="description", published="page_age")

    def refusal(self, status: int) -> str:
        """422: a query that is too long, or a key that is none."""
        return "It refused the query (at most 400 characters and 50 words) or the key." if status == 422 else ""


@dataclass(frozen=True, slots=True)
class Tavily:
    """Tavily. `key`: of an account.

    Source: https://docs.tavily.com/documentation/api-reference/endpoint/search
    """

    key: str = field(repr=False)
    base_url: str = "https://api.tavily.com"
    name: str = "Tavily"

    MOST = 20

    def __post_init__(self) -> None:
        _check_key(self.name, self.key)

    def request(self, query: str, count: int) -> Outgoing:
        """POST /search."""
        body = dump({"query": query, "max_results": min(count, self.MOST), "search_depth": "basic"})
        headers = (*_JSON, ("Content-Type", "application/json"), ("Authorization", f"Bearer {self.key}"))
        return Outgoing(url=_at(self, "/search"), method="POST", headers=headers, body=body.encode(), redirect="error")

    def read(self, answer: JSONObject) -> list[SearchResult]:
        """`results[]` with `url`, `title`, `content`, `published_date` (of news)."""
        return read_results(answer.get("results"), text="content", published="published_date")

    def refusal(self, status: int) -> str:
        """432 and 433: what was paid for is used up."""
        return "The searches of its plan are used up." if status in {432, 433} else ""


def _at(provider: SearchProvider, path: str, fields: Mapping[str, str] | None = None) -> str:
    return f"{provider.base_url.rstrip('/')}{path}" + (f"?{urlencode(fields)}" if fields else "")


def _check_key(name: str, key: str) -> None:
    """Errors: `ToolDeclarationInvalid` for a key that is empty or could be in no header."""
    if not key.strip() or not key.isascii() or any(char <= " " for char in key.strip()):
        raise ToolDeclarationInvalid(f"{name} needs a key, of printable characters: is its environment variable set?")
