"""A report of the kinds of code that can run on this machine, with reasons, for people who operate it."""

from dataclasses import dataclass

from tools_app.errors import CodeInvalid, SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.packages import allowed, missing_packages, python_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReport:
    """One kind of code. `reason`: what it runs behind, or why it cannot run."""

    tier: str
    is_available: bool
    reason: str


async def sandbox_report() -> list[TierReport]:
    """Try each kind of code; the first is the one that the others need. Starts a process and ends it."""
    sandbox = DenoSandbox(spare=False)
    try:
        walls = await sandbox.walls()
    except SandboxUnavailable as error:
        return [TierReport(tier="javascript", is_available=False, reason=error.message)]
    found = f"Deno without permissions, limits of the kernel, and: {walls.name}."
    return [TierReport(tier="javascript", is_available=True, reason=found), *_packages(), _python()]


def _packages() -> list[TierReport]:
    """Nothing where no package is allowed."""
    folder = sandbox_settings.packages_folder
    try:
        packages = allowed(sandbox_settings.packages)
    except CodeInvalid as error:
        return [TierReport(tier="packages", is_available=False, reason=error.message)]
    missing = missing_packages(folder, packages)
    reason = f"{', '.join(sorted(packages))}, in {folder}."
    if missing:
        names = ", ".join(sorted(missing))
        reason = f"{names}: not in {folder} yet. The first run fetches them; `manage.py install_sandbox_packages` now."
    return [TierReport(tier="packages", is_available=not missing, reason=reason)] if packages else []


def _python() -> TierReport:
    try:
        folder = python_folder(sandbox_settings.packages_folder)
    except SandboxUnavailable as error:
        return TierReport(tier="python", is_available=False, reason=error.message)
    return TierReport(tier="python", is_available=True, reason=f"Pyodide in {folder}, the standard library only.")
