"""System checks of settings: workspaces, code of models, browsers, extensions, MCP servers.

Each id is in `docs/design/tools.md`.
"""

import os

from django.core import checks
from django.core.checks import CheckMessage, Error, register

from tools_app.browser.conf import BrowserLimits, BrowserSettings, browser_settings
from tools_app.errors import CodeInvalid
from tools_app.extensions.conf import extension_settings
from tools_app.extensions.services import check_networks
from tools_app.mcp.conf import mcp_settings
from tools_app.processes.conf import ProcessSettings
from tools_app.sandbox.conf import SandboxSettings, sandbox_settings
from tools_app.sandbox.packages import allowed
from tools_app.sandbox.walls import may_lack
from tools_app.workspace.conf import workspace_settings


@register("tools")
def check_workspaces(**_: object) -> list[CheckMessage]:
    """W001 files that are allowed and have no room."""
    room, largest = workspace_settings.quota_bytes, workspace_settings.file_max_bytes
    if type(room) is type(largest) is int and 0 < room < largest:
        hint = "Lower the largest file, or raise the room of a user."
        message = "THINK_WORKSPACE_FILE_MAX_BYTES is more than THINK_WORKSPACE_QUOTA_BYTES."
        return [checks.Warning(message, hint=hint, id="think_tools.W001")]
    return []


@register("tools")
def check_limits(**_: object) -> list[CheckMessage]:
    """E002 a limit under which nothing runs, W002 a limit that never counts: of code, commands and browsers."""
    found: list[CheckMessage] = []
    for settings in (SandboxSettings, ProcessSettings, BrowserSettings):
        try:
            limits = settings().limits
        except ValueError as error:
            found.append(Error(str(error), id="think_tools.E002"))
            continue
        pairs = [("runs_per_user", "runs")]
        if not isinstance(limits, BrowserLimits):
            pairs.append(("cpu_seconds", "seconds"))
        found += [
            checks.Warning(
                f"{vars(settings)['limits'].name}: {less!r} is more than {more!r}, and so never counts.",
                hint="Lower it, or raise the other.",
                id="think_tools.W002",
            )
            for less, more in pairs
            if getattr(limits, less) > getattr(limits, more)
        ]
    return found


@register("tools")
def check_sandbox(**_: object) -> list[CheckMessage]:
    """E003 wrong packages, E006 wrong walls."""
    found: list[CheckMessage] = []
    try:
        allowed(sandbox_settings.packages)
    except CodeInvalid as error:
        hint = "Name each as name@version, with a version of three numbers."
        found.append(Error(f"THINK_SANDBOX_PACKAGES: {error.message}", hint=hint, id="think_tools.E003"))
    try:
        may_lack(sandbox_settings.may_lack, root=False)
    except ValueError as error:
        hint = "Name `user`, `network` and `rights`, or `none` alone."
        found.append(Error(f"THINK_SANDBOX_MAY_LACK: {error}.", hint=hint, id="think_tools.E006"))
    return found


@register("tools")
def check_browser(**_: object) -> list[CheckMessage]:
    """E052 no program, W052 no walls."""
    found: list[CheckMessage] = []
    if browser_settings.path and not os.access(browser_settings.path, os.X_OK):
        message = f"THINK_BROWSER_PATH names no program that can be started: {browser_settings.path}"
        found.append(Error(message, hint="Leave it empty to take what is installed.", id="think_tools.E052"))
    if browser_settings.without_walls:
        message = "THINK_BROWSER_WITHOUT_WALLS lets pages run in a browser without any sandbox."
        hint = "Allow namespaces for the worker instead; `manage.py think_doctor` says what a browser runs behind."
        found.append(checks.Warning(message, hint=hint, id="think_tools.W052"))
    return found


@register("tools")
def check_mcp(**_: object) -> list[CheckMessage]:
    """E020 a private network of MCP servers that is none."""
    try:
        tuple(mcp_settings.private)
    except (ValueError, AttributeError, TypeError) as error:
        hint = "Name each network as 10.0.0.0/8 or fd00::/8."
        return [Error(f"THINK_MCP_PRIVATE_NETWORKS: {error}", hint=hint, id="think_tools.E020")]
    return []


@register("tools")
def check_extensions(**_: object) -> list[CheckMessage]:
    """E004 a network that is none, W003 a network that all extensions reach."""
    found: list[CheckMessage] = [
        Error(
            f"THINK_EXTENSIONS_PRIVATE_NETWORKS: {each!r} is no network.", hint="As 10.1.0.0/16.", id="think_tools.E004"
        )
        for each in check_networks()
    ]
    if extension_settings.any_host and extension_settings.private_networks:
        message = "Extensions that may reach every host also reach THINK_EXTENSIONS_PRIVATE_NETWORKS."
        hint = "Switch THINK_EXTENSIONS_ANY_HOST off, or name no private network."
        found.append(checks.Warning(message, hint=hint, id="think_tools.W003"))
    return found
