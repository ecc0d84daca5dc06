"""Room in the model's context for a turn under way: measured by what is known of the model, made by a compaction.

Whatever goes wrong here leaves the conversation and the turn as they were: the error that the turn then ends with is
the provider's own.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from chat.agent.think import Think
from chat.conf import chat_settings
from chat.core.context.compaction_policy import CompactionPolicy
from chat.core.model.language_model import LanguageModel, ModelRequest, Usage
from chat.core.model.overflow import Count, counted, estimate_request
from chat.llm.registry import limits_of
from chat.turns.execution.prompting import Prompt
from sessions_app.core.compaction.compaction import Bounds
from sessions_app.core.messages.shapes import Message
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError

logger = logging.getLogger(__name__)

Compact: TypeAlias = Callable[[Bounds | None], Awaitable[bool]]
"""Summarise the path of the turn but for what stays by these bounds; `None` leaves them to the policy.

False when there is nothing to summarise. Errors: `ThinkError`.
"""

ReadAgain: TypeAlias = Callable[[], Awaitable[list[Message]]]
"""Read the history of the turn anew."""


@dataclass(slots=True, kw_only=True)
class TurnRoom:
    """The loop's `RoomMaker` for one turn."""

    agent: Think
    session_id: str
    prompt: Prompt
    policy: CompactionPolicy
    compact: Compact
    read_again: ReadAgain
    _refusals: int = field(init=False, default=0)

    def is_full(self, model: LanguageModel, request: ModelRequest, usage: Usage | None) -> bool:
        """Ask the formula, of what was counted and of what is about to be sent. Nothing known: not full."""
        limits = limits_of(model)
        if not limits.context_tokens:
            return False
        if usage is not None and self.policy.overflows(counted(usage), limits):
            return True
        return self.policy.overflows(Count(input_tokens=estimate_request(request), is_estimate=True), limits)

    async def make_room(self, model: LanguageModel, *, was_refused: bool) -> bool:
        """Summarise; leave the pictures out of what was refused, and where that does not do, most of what tools gave.

        False where it is switched off.
        """
        if not await db(auto_compaction_is_on, self.agent, self.session_id):
            return False
        self._refusals += was_refused
        is_lighter = was_refused and self.prompt.drop_media()
        is_smaller = await self._is_shorter(model, was_refused=was_refused) or is_lighter
        if was_refused and (self._refusals > 1 or not is_smaller):
            return self.prompt.cut_outputs() or is_smaller
        return is_smaller

    def resume(self, *, was_refused: bool) -> None:
        """A compaction is in what was read already; what was left out or cut is not.

        Whether anything had to be cut is not known any more: too little is better than the same refusal again.
        """
        if was_refused:
            self._refusals += 1
            self.prompt.drop_media()
            self.prompt.cut_outputs()

    async def _is_shorter(self, model: LanguageModel, *, was_refused: bool) -> bool:
        if not self.prompt.follows_history:
            return False
        try:
            # What was refused has to become shorter, even where by count all of it might stay.
            is_shorter = await self.compact(self._bounds(model)) or (
                was_refused and await self.compact(self.policy.least_bounds())
            )
            if is_shorter:
                self.prompt.history[:] = await self.read_again()
        except ThinkError as error:
            extra = {"action": "overflow_compaction_failed", "session_id": self.session_id, "code": error.code}
            logger.warning("no room was made", extra={**extra, "model": model.name})
            return False
        return is_shorter

    def _bounds(self, model: LanguageModel) -> Bounds | None:
        usable = self.policy.usable_tokens(limits_of(model))
        return self.policy.bounds_when_full(usable) if usable else None


def auto_compaction_is_on(agent: Think, session_id: str) -> bool:
    """Whether this conversation is summarised without being asked: the session says, else the class, else the site."""
    chosen = selectors.auto_compaction(session_id)
    if chosen is None:
        chosen = agent.auto_compaction
    return chat_settings.auto_compaction if chosen is None else chosen
