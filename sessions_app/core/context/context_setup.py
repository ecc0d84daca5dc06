"""The declaration of a session's context: blocks and prompt. Pure; the order of calls does not matter."""

from typing import Literal, Self

from sessions_app.core.context.context_blocks import Declaration, Provider, SearchableHistory, StoredText, declare
from sessions_app.errors import BlockExists
from thinkproject.kernel.phrases import Phrase


class ContextSetup:
    """Choices about the context of a session; every method returns the setup, so that calls chain."""

    def __init__(self) -> None:
        self.caches_prompt = False
        self.refreshes_prompt = False
        self.blocks: dict[str, Declaration] = {}
        self.searches: SearchableHistory | None = None

    def with_context(
        self, label: str, *, description: str = "", max_tokens: int | None = None, provider: Provider = None
    ) -> Self:
        """Add a context block. With any block the system prompt is made of the blocks, in the order of their adding.

        `provider`: a text; a function that gives one; an object with `get()` and perhaps `set()`, `load()`, `search()`,
        sync or async; `StoredText`, `StoredSkills` or `StoredSearch`. Without one it is a writable text of the session.
        Errors: `BlockExists` for a label that was used before, `ContextInvalid`.
        """
        if label in self.blocks:
            raise BlockExists(Phrase("There is a context block {label!r} already.", label=label))
        self.blocks[label] = declare(label, description=description, max_tokens=max_tokens, provider=provider)
        return self

    def with_memory(
        self,
        label: str = "memory",
        *,
        description: str = "What to remember about this person, in all conversations.",
        max_tokens: int | None = 1000,
    ) -> Self:
        """Add a writable text of the user's: it is the same in all of that person's conversations.

        A session without an owner keeps a text of its own instead.
        """
        return self.with_context(label, description=description, max_tokens=max_tokens, provider=StoredText(of="user"))

    def with_searchable_history(
        self,
        label: str = "history",
        *,
        description: str = "What was said in other conversations.",
        of: Literal["user", "scope"] = "user",
    ) -> Self:
        """Add a read-only block for searching other sessions: all of the owner's, or those of the scope."""
        return self.with_context(label, description=description, provider=SearchableHistory(of))

    def with_session_search(self, *, of: Literal["user", "scope"] = "user") -> Self:
        """Offer the tool `session_search`, which finds messages of all of the owner's sessions, or of the scope's."""
        self.searches = SearchableHistory(of)
        return self

    def with_cached_prompt(self) -> Self:
        """Render the system prompt once, keep it with the session and use that text from then on."""
        self.caches_prompt = True
        return self

    def refresh_system_prompt(self) -> Self:
        """Render the cached prompt once more in this turn. Without a cached prompt it changes nothing."""
        self.refreshes_prompt = True
        return self
