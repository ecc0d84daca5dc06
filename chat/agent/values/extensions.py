"""The extensions of one agent object, once they were looked up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tools_app.extensions.loaded import LoadedExtension


class HookWatcher(Protocol):
    """Hears of the hooks of an agent after the agent itself. Never raises."""

    def watches(self, hook: str) -> bool:
        """Whether anything listens to this hook of the agent's class."""

    async def notify(self, hook: str, argument: Any) -> None:
        """Report that a hook was called, with its argument."""

    async def flush(self) -> None:
        """Report what was collected."""


@dataclass(slots=True)
class ExtensionState:
    """The extensions of one agent object, once they were looked up.

    `labels`: of the context blocks that they brought, each with the prefix of its extension.
    """

    loaded: "tuple[LoadedExtension, ...] | None" = None
    labels: Mapping[str, str] = field(default_factory=dict)
    watcher: HookWatcher | None = None
