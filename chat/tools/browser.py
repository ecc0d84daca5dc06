"""Tools with which a model drives a browser, within hosts that the agent's class allows."""

from tools_app.browser.tools import create_browser_tools

__all__ = ["create_browser_tools"]
