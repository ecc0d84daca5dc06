"""A call that keeps what was noted in it."""

from dataclasses import dataclass, field

from tools_app.core.guard.rules import SeenText
from tools_app.core.origins import Origin


@dataclass
class Notes:
    """The reach of a test. `origin`: of what is written."""

    origin: Origin | None = None
    session_id: str = ""
    found: list[tuple[Origin, str]] = field(default_factory=list)

    def note(self, origin: Origin, source: str) -> None:
        self.found.append((origin, source))

    def written(self) -> Origin | None:
        return self.origin

    def texts(self) -> list[SeenText]:
        return [SeenText(origin, source) for origin, source in self.found]
