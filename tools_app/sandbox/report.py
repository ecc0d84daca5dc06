"""A report of the kinds of code that can run on this machine, with reasons, for people who operate it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tools_app.errors import CodeInvalid, SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings
from tools_app.sandbox.deno import DenoSandbox
from tools_app.sandbox.packages import allowed, missing_packages, python_folder
from tools_app.sandbox.walls import Wall, candidates

WITHOUT: Final = {
    Wall.USER: "another user (beyond Deno it has the rights of this process)",
    Wall.NETWORK: "a network namespace (Deno alone keeps it off the network)",
    Wall.RIGHTS: "a bar to new rights",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TierReport:
    """One kind of code. `reason`: what it runs behind, or why it cannot run. `is_weak`: without walls of the best."""

    tier: str
    is_available: bool
    reason: str
    is_weak: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStanding:
    """The walls around code of models in this process, as they were found by a trial.

    `walls`: their name. `fault`: why no code runs, for operators. `lacks`: the walls that a process like this one can
    have and this one has not; that a user who is not root cannot become another one is no news.
    """

    walls: str = ""
    fault: str = ""
    lacks: frozenset[Wall] = frozenset()

    @property
    def caution(self) -> str:
        """A sentence for operators about what is missing; empty where all is as it should be."""
        return self.fault or (f"Code of models runs without {in_words(self.lacks)}." if self.lacks else "")


def in_words(lacks: Iterable[Wall]) -> str:
    """Walls that are missing, and what that means."""
    return ", ".join(WITHOUT[wall] for wall in Wall if wall in set(lacks))


async def standing_walls() -> ReportStanding:
    """Find the walls. Starts a process and ends it."""
    try:
        walls = await DenoSandbox(spare=False).walls()
    except SandboxUnavailable as error:
        cause = error.__cause__
        reason = f" {cause.message}" if isinstance(cause, SandboxUnavailable) else ""
        return ReportStanding(fault=f"{error.message}{reason}")
    return ReportStanding(walls=walls.name, lacks=walls.lacks - candidates()[0].lacks)


async def sandbox_report() -> list[TierReport]:
    """Try each kind of code; the first is the one that the others need. Starts a process and ends it."""
    found = await standing_walls()
    if found.fault:
        return [TierReport(tier="javascript", is_available=False, reason=found.fault)]
    reason = f"Deno without permissions, limits of the kernel, and: {found.walls}."
    if found.lacks:
        reason += f" {found.caution} THINK_SANDBOX_MAY_LACK says what may be missing."
    javascript = TierReport(tier="javascript", is_available=True, reason=reason, is_weak=bool(found.lacks))
    return [javascript, *_packages(), _python()]


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
