"""Shortens the context of a running turn: compares requests with the model's limits, and compacts the session.

A failure here leaves the conversation and the turn unchanged. The turn then ends with the provider's own error.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from chat.agent.think import Think
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.context.too_large import Share, too_large
from chat.core.model.language_model import LanguageModel, ModelRequest, Usage
from chat.core.model.overflow import Count, counted, estimate_request, estimate_tools
from chat.errors import ContextOverflow
from chat.llm.registry import cuts_silently, limits_of
from chat.turns.conf import turn_settings
from chat.turns.execution.prompting import Prompt
from sessions_app.core.compaction.compaction import Bounds
from sessions_app.core.compaction.tokens import CHARS_PER_TOKEN
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError

logger = logging.getLogger(__name__)

Compact: TypeAlias = Callable[[Bounds | None], Awaitable[bool]]
"""Summarise the turn's path, except what these bounds keep; `None` uses the policy's.

False when there is nothing to summarise. Errors: `ThinkError`.
"""

ReadAgain: TypeAlias = Callable[[], Awaitable[list[Message]]]
"""Read the turn's history again."""


@dataclass(slots=True, kw_only=True)
class TurnContextReducer:
    """The loop's `ContextReducer` for one turn."""

    agent: Think
    session_id: str
    prompt: Prompt
    policy: CompactionPolicy
    compact: Compact
    read_again: ReadAgain
    _refusals: int = field(init=False, default=0)
    _request: ModelRequest | None = field(init=False, default=None)  # the last one that was judged

    def is_over_limit(self, model: LanguageModel, request: ModelRequest, usage: Usage | None) -> bool:
        """Apply the policy's formula to the counted usage and to an estimate of the request.

        False if no limit is known.
        """
        self._request = request
        limits = limits_of(model)
        if not limits.context_tokens:
            return False
        if usage is not None and self.policy.overflows(counted(usage), limits):
            return True
        return self.policy.overflows(Count(input_tokens=estimate_request(request), is_estimate=True), limits)

    async def reduce(self, model: LanguageModel, *, was_refused: bool) -> bool:
        """Shorten single things that take much of the window, else compact the session; after a refusal drop media too.

        Nothing is done, and no model asked, where the question and the instructions alone are too large. With automatic
        compaction switched off only single things are shortened, after a refusal.
        """
        is_on = await db(auto_compaction_is_on, self.agent, self.session_id)
        self._refusals += was_refused
        is_lighter = is_on and was_refused and self.prompt.drop_media()
        share = self._share(model)
        if share.is_hopeless(was_refused=was_refused):
            self._refuse_a_silent_cut(model, was_refused=was_refused)
            return is_lighter
        if (was_refused or is_on) and share.has_giants and self.prompt.cut_long(share.max_chars):
            return True
        if not is_on:
            return False
        is_smaller = await self._is_shorter(model, was_refused=was_refused) or is_lighter
        if was_refused and (self._refusals > 1 or not is_smaller):
            return self.prompt.cut_long(texts=False) or is_smaller
        return is_smaller

    def _share(self, model: LanguageModel) -> Share:
        question, earlier, outputs = self.prompt.sizes()
        instructions = 0
        if self._request is not None:
            instructions = len(self._request.system) + estimate_tools(self._request) * CHARS_PER_TOKEN
        return Share(
            context_chars=limits_of(model).context_tokens * CHARS_PER_TOKEN,
            fixed=question + instructions,
            earlier=tuple(earlier),
            outputs=tuple(outputs),
        )

    def _refuse_a_silent_cut(self, model: LanguageModel, *, was_refused: bool) -> None:
        """Errors: `ContextOverflow` for a model whose server cuts what is too large and says nothing."""
        if was_refused or self._request is None or not cuts_silently(model):
            return
        raise ContextOverflow(too_large(self._request, model.name, limits_of(model).context_tokens, is_cut=True))

    def resume(self, *, was_refused: bool) -> None:
        """Drop and shorten again; a compaction is already part of the history that was read.

        Whether the earlier attempt had to shorten outputs is not recorded. Too short a prompt is better than another
        refusal.
        """
        if was_refused:
            self._refusals += 1
            self.prompt.drop_media()
            self.prompt.cut_long()

    async def _is_shorter(self, model: LanguageModel, *, was_refused: bool) -> bool:
        if not self.prompt.follows_history:
            return False
        try:
            # A refused request has to become shorter, even if all of it could stay by count.
            is_shorter = await self.compact(self._bounds(model)) or (
                was_refused and await self.compact(self.policy.least_bounds())
            )
            if is_shorter:
                self.prompt.history[:] = await self.read_again()
        except ThinkError as error:
            extra = {"action": "overflow_compaction_failed", "session_id": self.session_id, "code": error.code}
            logger.warning("compaction failed", extra={**extra, "model": model.name})
            return False
        return is_shorter

    def _bounds(self, model: LanguageModel) -> Bounds | None:
        usable = self.policy.usable_tokens(limits_of(model))
        return self.policy.bounds_when_full(usable) if usable else None


def auto_compaction_is_on(agent: Think, session_id: str) -> bool:
    """Whether this conversation is compacted automatically: by its session, else its class, else the site."""
    chosen = selectors.auto_compaction(session_id)
    if chosen is None:
        chosen = agent.auto_compaction
    return turn_settings.auto_compaction if chosen is None else chosen
