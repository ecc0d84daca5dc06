"""Tools that search the web, and that read it from addresses that the agent's class allows."""

from tools_app.fetching.tools import create_fetch_tools
from tools_app.fetching.values import FetchLimits, Outgoing
from tools_app.web_search.providers import Brave, SearchProvider, SearXNG, Tavily
from tools_app.web_search.results import SearchResult
from tools_app.web_search.tools import create_search_tools

__all__ = [
    "Brave",
    "FetchLimits",
    "Outgoing",
    "SearXNG",
    "SearchProvider",
    "SearchResult",
    "Tavily",
    "create_fetch_tools",
    "create_search_tools",
]
