"""The `SessionSetup` that `configure_session` receives: context blocks and compaction. Its calls have no order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from sessions_app.core.compaction.tokens import TokenCounter
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.core.messages.shapes import Message

CompactionHook: TypeAlias = Callable[[list[Message]], Any]
"""Gets the history as the model gets it; gives a `CompactionResult`, or `None` for nothing to do. Sync or async."""

ErrorHandler: TypeAlias = Callable[[Exception], Any]
"""Called with the failure. Sync or async; its exceptions are logged and change nothing."""


WARNINGS: Final = (25, 50, 75)
"""Percents of a threshold at which clients are warned that a session fills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage:
    """Usage of a session with a threshold. Units: tokens of its counter, and messages; a threshold of 0 is none.

    `before`: tokens without its last turn.
    """

    tokens: int
    threshold: int
    before: int = 0
    count: int = 0
    most: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it has outgrown a threshold."""
        return 0 < self.threshold < self.tokens or 0 < self.most < self.count

    @property
    def warning(self) -> int | None:
        """The highest of 25, 50 and 75 percent of the threshold that the last turn has passed, if any: once each."""
        passed = (each for each in WARNINGS if self.before * 100 < self.threshold * each <= self.tokens * 100)
        return max(passed, default=None)


class CompactionSetup:
    """Choices about the compaction of a session; every method returns the setup, so that calls chain."""

    compaction: CompactionHook | None = None
    compaction_error: ErrorHandler | None = None
    compact_after_tokens: int | None = None
    compact_after_messages: int | None = None
    token_counter: TokenCounter | None = None

    def on_compaction(self, function: CompactionHook) -> Self:
        """Compact by a function of your own instead of a summary by the model (`create_compact_function` makes one)."""
        self.compaction = function
        return self

    def compact_after(self, tokens: int, *, token_counter: TokenCounter | None = None) -> Self:
        """Compact after a turn when the history, the prompt included, has more than so many tokens.

        The same counter decides what is left as it is. Without one it is `THINK_TOKEN_COUNTER`.
        """
        self.compact_after_tokens = tokens
        self.token_counter = token_counter or self.token_counter
        return self

    def compact_after_count(self, messages: int) -> Self:
        """Compact after a turn when the model would read more than so many messages; a summary counts as one."""
        self.compact_after_messages = messages
        return self

    @property
    def compacts(self) -> bool:
        """Whether the session has a threshold."""
        return self.compact_after_tokens is not None or self.compact_after_messages is not None

    def on_compaction_error(self, handler: ErrorHandler) -> Self:
        """Set a handler for failed compactions. The conversation stays unchanged."""
        self.compaction_error = handler
        return self


class SessionSetup(ContextSetup, CompactionSetup):
    """Choices about the session of a turn; every method returns the setup, so that calls chain."""
