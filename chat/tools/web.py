"""Tools that read the web, from addresses that the agent's class allows."""

from tools_app.fetching.tools import create_fetch_tools
from tools_app.fetching.values import FetchLimits

__all__ = ["FetchLimits", "create_fetch_tools"]
