"""Tools that read the web, from addresses that the agent's class allows."""

from tools_app.fetching.client import FetchLimits
from tools_app.fetching.tools import create_fetch_tools

__all__ = ["FetchLimits", "create_fetch_tools"]
