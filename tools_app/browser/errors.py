"""Errors of browsers."""

from tools_app.errors import SandboxUnavailable, ToolError


class BrowserFailed(ToolError):
    """The browser could not do what it was asked for."""


class BrowserGone(BrowserFailed):
    """The browser ended under a call. The next call starts a new one."""


class BrowserUnavailable(SandboxUnavailable):
    """There is no browser here, or none soon enough."""
