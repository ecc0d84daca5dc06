"""The walls of the system around code of models: which there are, in what order they are tried, which may be missing.

Deno without permissions and limits of the kernel stand always. The others need a system that allows them. A process
that is root needs another user most of all: a hole in Deno would be root of the machine. So as root no code runs
without, unless the operator allows it. A process that is not root cannot become another user, and code that gets out of
Deno has the rights of that user, as has every program that this user starts.
"""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from tools_app.errors import SandboxUnavailable
from tools_app.sandbox.conf import sandbox_settings

NOBODY: Final = "65534"
NONE: Final = "none"


class Wall(StrEnum):
    """A wall that not every system has, by its word in the setting."""

    USER = "user"  # another user than that of this process
    NETWORK = "network"  # a namespace without a network
    RIGHTS = "rights"  # no way to new rights, and an end by the kernel with the parent


ALL: Final = frozenset(Wall)
AS_ROOT: Final = frozenset({Wall.NETWORK})
"""Walls that may be missing by default where this process is root. Containers often forbid namespaces."""
NAMES: Final = {
    Wall.USER: "another user",
    Wall.NETWORK: "no network",
    Wall.RIGHTS: "no new rights",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """Programs that start the guest, outermost first; what they hold off, and the walls that are not among them."""

    name: str
    prefix: tuple[str, ...]
    lacks: frozenset[Wall] = frozenset()


def is_root() -> bool:
    """Whether this process has the rights of root, on the machine or in a container.

    A user who is alone in a user namespace is called root there, and has the rights of a user.
    """
    return os.geteuid() == 0 and not is_alone(_uid_map())


def is_alone(uid_map: str) -> bool:
    """Whether a user namespace has no other user than one who is not root outside. Shape: as `/proc/self/uid_map`."""
    rows = [[int(word) for word in line.split()] for line in uid_map.splitlines()]
    return len(rows) == 1 and rows[0][1] != 0 and rows[0][2] == 1


def candidates(*, root: bool | None = None) -> list[Walls]:
    """Ways to start a guest, the strongest first. Which of them work here is tried, not guessed."""
    becomes_another = is_root() if root is None else root
    no_caps = ("--inh-caps=-all", "--bounding-set=-all") if becomes_another or os.geteuid() == 0 else ()
    no_rights = (*no_caps, "--no-new-privs", "--pdeathsig", "KILL")
    another = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", *no_rights)
    network = ("unshare", "--net", "--ipc") if becomes_another else ("unshare", "--user", "--net", "--ipc")
    found = []
    if becomes_another:
        found = [
            Walls(name="no network, another user", prefix=(*network, *another)),
            Walls(name="another user", prefix=another, lacks=frozenset({Wall.NETWORK})),
        ]
    return [
        *found,
        Walls(name="no network", prefix=(*network, "setpriv", *no_rights), lacks=frozenset({Wall.USER})),
        Walls(name="no new rights", prefix=("setpriv", *no_rights), lacks=frozenset({Wall.USER, Wall.NETWORK})),
        Walls(name="limits", prefix=(), lacks=ALL),
    ]


def may_lack(words: str, *, root: bool) -> frozenset[Wall]:
    """The walls that may be missing, by the words of the setting. Errors: `ValueError` for a word that is none."""
    chosen = {word.strip() for word in words.split(",") if word.strip()}
    if not chosen:
        return AS_ROOT if root else ALL
    return frozenset() if chosen == {NONE} else frozenset(Wall(word) for word in chosen)


def allowed_to_lack() -> frozenset[Wall]:
    """The same for this process and its setting. Errors: `SandboxUnavailable` for a setting that names no wall."""
    try:
        return may_lack(sandbox_settings.may_lack, root=is_root())
    except ValueError as error:
        raise SandboxUnavailable(f"Code cannot run here: THINK_SANDBOX_MAY_LACK: {error}.") from error


def names(walls: frozenset[Wall]) -> str:
    """Walls in words, in their order."""
    return ", ".join(NAMES[wall] for wall in Wall if wall in walls)


def _uid_map() -> str:
    try:
        return Path("/proc/self/uid_map").read_text()
    except OSError:
        return ""
