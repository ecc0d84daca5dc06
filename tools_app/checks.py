"""System checks of the settings of workspaces, of models' code and of MCP servers.

Each id is in `docs/design/tools.md`.
"""

from django.core import checks
from django.core.checks import CheckMessage, Error, register

from tools_app.errors import CodeInvalid
from tools_app.mcp.conf import mcp_settings
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.packages import allowed
from tools_app.workspace.conf import workspace_settings


@register("tools")
def check_workspaces(**_: object) -> list[CheckMessage]:
    """E001 a size that is no number from 0, W001 files that are allowed and have no room."""
    sizes = {
        "THINK_WORKSPACE_INLINE_BYTES": workspace_settings.inline_bytes,
        "THINK_WORKSPACE_FILE_MAX_BYTES": workspace_settings.file_max_bytes,
        "THINK_WORKSPACE_QUOTA_BYTES": workspace_settings.quota_bytes,
        "THINK_WORKSPACE_QUOTA_ENTRIES": workspace_settings.quota_entries,
        "THINK_WORKSPACE_ARCHIVE_MAX_ENTRIES": workspace_settings.archive_max_entries,
        "THINK_WORKSPACE_ARCHIVE_MAX_BYTES": workspace_settings.archive_max_bytes,
        "THINK_WORKSPACE_BACKUP_DAYS": workspace_settings.backup_days,
    }
    found: list[CheckMessage] = [
        Error(f"{name} must be a whole number from 0, not {value!r}.", id="think_tools.E001")
        for name, value in sizes.items()
        if type(value) is not int or value < 0
    ]
    if not found and 0 < workspace_settings.quota_bytes < workspace_settings.file_max_bytes:
        hint = "Lower the largest file, or raise the room of a user."
        message = "THINK_WORKSPACE_FILE_MAX_BYTES is more than THINK_WORKSPACE_QUOTA_BYTES."
        found.append(checks.Warning(message, hint=hint, id="think_tools.W001"))
    return found


@register("tools")
def check_sandbox(**_: object) -> list[CheckMessage]:
    """E002 a limit under which no code can run, E003 packages that are none, W002 limits of which one never counts."""
    limits: dict[str, object] = {
        "THINK_SANDBOX_RUNS": sandbox_settings.runs,
        "THINK_SANDBOX_RUNS_PER_USER": sandbox_settings.runs_per_user,
        "THINK_SANDBOX_SECONDS": sandbox_settings.seconds,
        "THINK_SANDBOX_CPU_SECONDS": sandbox_settings.cpu_seconds,
        "THINK_SANDBOX_MEMORY_BYTES": sandbox_settings.memory_bytes,
        "THINK_SANDBOX_PYTHON_MEMORY_BYTES": sandbox_settings.python_memory_bytes,
    }
    found: list[CheckMessage] = [
        Error(f"{name} must be a number above 0, not {value!r}: no code could run.", id="think_tools.E002")
        for name, value in limits.items()
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0
    ]
    found += _check_packages()
    if found:
        return found
    if sandbox_settings.runs_per_user > sandbox_settings.runs:
        message = "THINK_SANDBOX_RUNS_PER_USER is more than THINK_SANDBOX_RUNS: one user can keep all others waiting."
        found.append(checks.Warning(message, hint="Lower it, or raise the other.", id="think_tools.W002"))
    if sandbox_settings.cpu_seconds > sandbox_settings.seconds:
        message = "THINK_SANDBOX_CPU_SECONDS is more than THINK_SANDBOX_SECONDS, and so never counts."
        found.append(checks.Warning(message, hint="Lower it, or raise the other.", id="think_tools.W002"))
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


def _check_packages() -> list[CheckMessage]:
    try:
        allowed(sandbox_settings.packages)
    except CodeInvalid as error:
        hint = "Name each as name@version, with a version of three numbers."
        return [Error(f"THINK_SANDBOX_PACKAGES: {error.message}", hint=hint, id="think_tools.E003")]
    return []
