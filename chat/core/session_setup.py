"""What `configure_session` is given."""

from typing import Self

from chat.core.compaction_setup import CompactionSetup


class SessionSetup(CompactionSetup):
    """Choices about the session of a turn; every method returns the setup, so that calls chain."""

    def __init__(self) -> None:
        self.caches_prompt = False
        self.refreshes_prompt = False

    def with_cached_prompt(self) -> Self:
        """Render the system prompt once, keep it with the session and use that text from then on."""
        self.caches_prompt = True
        return self

    def refresh_system_prompt(self) -> Self:
        """Render the cached prompt once more in this turn. Without a cached prompt it changes nothing."""
        self.refreshes_prompt = True
        return self
