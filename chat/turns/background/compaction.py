"""Compact the session of an agent: a summary by a model, or by a function of the developer's, stored as an overlay.

A failure leaves the conversation unchanged. Clients are notified with the frames `cf_agent_session` and
`cf_agent_session_error`.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, Final, Literal

from chat.agent.think import Think
from chat.conf import chat_settings
from chat.core.context.compaction_policy import V2, CompactionPolicy
from chat.core.context.session_setup import ContextUsage, SessionSetup
from chat.core.loop.totals import TurnTotals, totals_of
from chat.core.model.fallbacks import models_of
from chat.core.model.language_model import (
    Finish,
    LanguageModel,
    ModelRequest,
    ModelSettings,
    TextContent,
    Usage,
    UserMessage,
)
from chat.errors import ContextOverflow
from chat.instances.notifications import SessionFailed, SessionPhaseChanged, group_of, send_notification
from chat.llm.registry import guarded, inquire_of, limits_of, resolve_model
from chat.models import SideCallKind
from chat.turns.background.ask_model import ask
from chat.turns.background.costs import count_side_call, price_calls, usage_of_call
from chat.turns.policies import check_call
from chat.user_code.call_hook import call_hook, user_code_boundary
from chat.user_code.session_setup import configured_session, policy_of
from fibers.context import current_fiber
from sessions_app.compactions.services import CompactionDone, CompactOptions, SummaryAuthor, compact_path
from sessions_app.core.compaction.compaction import Bounds, CompactionResult, create_compact_function
from sessions_app.core.compaction.summary_form import SummaryForm, as_sections
from sessions_app.core.compaction.tokens import TokenCounter, counter_named, estimate_messages
from sessions_app.core.messages.shapes import Message
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import CompactionFailed
from sessions_app.models import CompactionTrigger
from thinkproject.kernel.aio import call_user_code, db, user_code
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject

logger = logging.getLogger(__name__)

SYSTEM: Final = "You write summaries of conversations. You answer with the summary alone."
COMPACTION_SECONDS: Final = 300.0
INPUT_TOKENS: Final = 60_000
"""Of a conversation in one request for a summary; more is summarised piece by piece."""
PIECE_SIZES: Final = (1, 4, 16)
"""A piece that is too long for the summariser is tried again as so many, for models of unknown context."""


async def compact_session(  # noqa: PLR0913 - one keyword for each thing a caller may decide
    agent: Think,
    session_id: str,
    *,
    leaf_id: str | Leaf = Leaf.ACTIVE,
    trigger: CompactionTrigger,
    instructions: str = "",
    user_id: Any = None,
    counter: TokenCounter | None = None,
    bounds: Bounds | None = None,
    also: Callable[[CompactionDone], None] | None = None,
) -> CompactionDone | None:
    """Summarise the middle of the path to a message; `None` when there is nothing to do.

    With the trigger `AUTO` there is nothing to do below the session's threshold. Inside a fiber the write carries its
    fence, and `also` runs in its transaction. `bounds` say what stays as it is; by default the agent's compaction
    policy does, by the threshold or else by the length of the history. Before each of its calls of a model the policies
    of turns are asked, as before those of a turn.
    Errors: `CompactionFailed`, with everything unchanged; the session's handler and the clients have been notified.
    """
    setup = await configured_session(agent)
    work = CompactionJob(
        agent=agent,
        session_id=session_id,
        setup=setup,
        counter=counter or _counter(setup),
        instructions=instructions,
        bounds=bounds,
    )
    options = CompactOptions(
        trigger=trigger,
        author=SummaryAuthor(user_id=user_id, via="code" if user_id is None else "api"),
        counter=work.counter,
        inside=_fenced,
        also=partial(_write_with, work, also),
    )
    try:
        if setup.compaction is None:
            work.policy = work.chosen_policy()
            work.model = await work.summariser()
            options = replace(options, model_name=work.model.name)
        function = work.when_full if trigger is CompactionTrigger.AUTO else work.compact
        done = await compact_path(session_id, function, leaf=leaf_id, options=options)
    except CompactionFailed as error:
        await db(work.write_usage_alone)
        await work.report_failure(error)
        raise
    except asyncio.CancelledError:
        work.report_end(None)
        raise
    work.report_end(done)
    return done


def context_usage(setup: SessionSetup, system: str, messages: Sequence[Message]) -> ContextUsage | None:
    """The context usage of a session with this history; `None` without a threshold."""
    if not setup.compacts:
        return None
    threshold, most = setup.compact_after_tokens, setup.compact_after_messages
    if threshold is None:
        return ContextUsage(tokens=0, threshold=0, count=len(messages), most=most or 0)
    counter = _counter(setup)
    tokens = estimate_messages(messages, counter, system_prompt=system)
    answers = [number for number, message in enumerate(messages[:-1], 1) if message["role"] == "assistant"]
    before = tokens - estimate_messages(messages[answers[-1] if answers else 0 :], counter)
    return ContextUsage(tokens=tokens, threshold=threshold, before=before, count=len(messages), most=most or 0)


def _counter(setup: SessionSetup) -> TokenCounter:
    return setup.token_counter or counter_named(chat_settings.token_counter)


def _fenced() -> AbstractContextManager[None]:
    fiber = current_fiber()
    return nullcontext() if fiber is None else fiber.fenced()


def _write_with(work: "CompactionJob", also: Callable[[CompactionDone], None] | None, done: CompactionDone) -> None:
    work.write_usage()
    if also is not None:
        also(done)


@contextmanager
def _failing() -> Iterator[None]:
    """Whatever foreseen goes wrong inside, the compaction has failed."""
    try:
        yield
    except CompactionFailed:
        raise
    except ThinkError as error:
        raise CompactionFailed(error.message) from error


async def _developers(name: str, function: Callable[..., Any], *args: Any) -> Any:
    with user_code_boundary(name):
        return await call_user_code(function, *args)


def _checked(value: Any) -> CompactionResult | None:
    if value is None:
        return None
    if isinstance(value, CompactionResult) and all(
        isinstance(text, str) for text in (value.first_id, value.last_id, value.summary)
    ):
        return value
    raise CompactionFailed(f"A compaction function must return a CompactionResult of texts or None, not {value!r:.80}.")


@dataclass(slots=True, kw_only=True)
class CompactionJob:
    """One compaction: the compact function for the history, and the notifications of clients."""

    agent: Think
    session_id: str
    setup: SessionSetup
    counter: TokenCounter
    instructions: str
    bounds: Bounds | None
    policy: CompactionPolicy = V2
    model: LanguageModel | None = None
    tokens: int = 0  # of the history as it was found
    used: Usage = field(default_factory=Usage)  # by the summary
    cost: Decimal = Decimal(0)
    answered_by: str = ""  # the model that wrote it, as its provider names it

    def chosen_policy(self) -> CompactionPolicy:
        """The summary's form, and the messages kept."""
        with _failing():
            return policy_of(self.agent)

    async def summariser(self) -> LanguageModel:
        """The model that writes the summary."""
        with _failing():
            chosen = self.agent.compaction_model
            model = resolve_model(await call_hook(self.agent, "get_model") if chosen is None else chosen)
            await inquire_of(models_of(model))
            return guarded(model, gap_seconds=self.agent.stall_timeout_seconds)

    async def when_full(self, history: Sequence[Message]) -> CompactionResult | None:
        """Compact if the threshold is still exceeded; an earlier compaction may have run meanwhile."""
        with _failing():
            context = await self.agent.instance.open_context(self.session_id)
            with user_code_boundary("configure_session"):
                system = await context.system_prompt()
            with user_code_boundary("token_counter"):
                found = await user_code(context_usage, self.setup, system, history)
        return await self.compact(history) if found is not None and found.is_over else None

    async def compact(self, history: Sequence[Message]) -> CompactionResult | None:
        """Have the summary made. Errors: `CompactionFailed`."""
        with _failing():
            with user_code_boundary("token_counter"):
                self.tokens = await user_code(estimate_messages, history, self.counter)
            self._notify_phase("compacting", self.tokens)
            limit = asyncio.timeout(COMPACTION_SECONDS)
            try:
                async with limit:
                    return await self._made(history)
            except TimeoutError as error:
                if not limit.expired():
                    raise CompactionFailed(
                        "The summary could not be made: something it needs took too long."
                    ) from error
                raise CompactionFailed(f"The summary took longer than {COMPACTION_SECONDS:g} s.") from error

    async def _made(self, history: Sequence[Message]) -> CompactionResult | None:
        if self.setup.compaction is not None:
            return _checked(await _developers("on_compaction", self.setup.compaction, list(history)))
        policy = self.policy
        form = SummaryForm(
            max_tokens=self._longest(),
            shown_chars=policy.shown_chars,
            text_chars=0 if self.model is None else limits_of(self.model).context_tokens * 2,
            lists_files=policy.lists_files,
            sections=as_sections(policy.sections),
        )
        for parts in PIECE_SIZES:
            function = create_compact_function(
                self._summarize,
                bounds=self.bounds or policy.bounds_when_asked(self.setup.compact_after_tokens or self.tokens),
                token_counter=self.counter,
                instructions=self.instructions,
                max_input_tokens=max(1, INPUT_TOKENS // parts),
                form=form,
            )
            try:
                return await function(history)
            except ContextOverflow:
                if parts == PIECE_SIZES[-1]:
                    raise
        raise AssertionError("unreachable")

    async def _summarize(self, prompt: str) -> str:
        """Ask the model. No tools are offered; calls it makes anyway are not run."""
        assert self.model is not None
        so_far = self._so_far()
        await db(check_call, self.agent.key, self.session_id, count=so_far.steps, cost=so_far.cost + self.cost)
        request = ModelRequest(
            system=SYSTEM,
            messages=(UserMessage(content=(TextContent(text=prompt),)),),
            settings=ModelSettings(max_output_tokens=self._longest() or None),
        )
        # The whole compaction has a limit of time, and a summary as many tokens as it may have.
        text, finish = await ask(self.model, request, seconds=None, max_characters=None)
        if finish is not None:
            self._count(finish)
        return text

    def _longest(self) -> int:
        """Tokens that the summary may have, 0 for no bound: a model is asked for no more than it is known to give."""
        assert self.model is not None
        wanted = self.policy.summary_tokens
        return min(wanted, limits_of(self.model).output_tokens or wanted)

    @staticmethod
    def _so_far() -> TurnTotals:
        """Usage of the turn that triggered the compaction; empty outside of a turn."""
        fiber = current_fiber()
        return TurnTotals() if fiber is None else totals_of(dict(fiber.records()))

    def _count(self, finish: Finish) -> None:
        assert self.model is not None
        self.answered_by = finish.model_name or self.model.name
        self.used += finish.usage
        self.cost += price_calls()((self.model.name, finish.model_name), finish.usage)

    def write_usage(self) -> None:
        """Count the summary's usage on the session, in the transaction that stores it."""
        used = usage_of_call(self.used, self.cost)
        count_side_call(self.session_id, SideCallKind.COMPACTION, self.answered_by, used)

    def write_usage_alone(self) -> None:
        """Count the usage of a discarded summary: it was paid for."""
        if self.used != Usage():
            with _fenced():
                self.write_usage()

    # Notifications

    def report_end(self, done: CompactionDone | None) -> None:
        """It is over, and this is how full the session is now."""
        compacted: JSONObject | None = None
        if done is not None:
            compacted = {"tokensBefore": done.tokens_before, "compactionId": done.compaction_id}
            if not done.helped:
                extra = {"action": "compaction_did_not_help", "session_id": self.session_id}
                logger.warning("a compaction made the history no shorter", extra=extra)
        self._notify_phase("idle", done.tokens_after if done else self.tokens, compacted)

    async def report_failure(self, error: CompactionFailed) -> None:
        """Notify the session's handler and the clients. The handler's errors are never raised."""
        extra = {"action": "compaction_failed", "session_id": self.session_id, "code": error.code}
        logger.warning("compaction failed", extra=extra)
        handler = self.setup.compaction_error
        if handler is not None:
            with suppress(ThinkError):  # logged where it was raised
                await _developers("on_compaction_error", handler, error)
        failed: SessionFailed = {
            "type": "session.failed",
            "session_id": self.session_id,
            "error": error.message[:500],
        }
        send_notification(group_of(self.agent.key), failed)
        self._notify_phase("idle", self.tokens)

    def _notify_phase(
        self, phase: Literal["idle", "compacting"], tokens: int, compacted: JSONObject | None = None
    ) -> None:
        event: SessionPhaseChanged = {
            "type": "session.phase",
            "session_id": self.session_id,
            "phase": phase,
            "tokens": tokens,
            "threshold": self.setup.compact_after_tokens,
        }
        if compacted is not None:
            event["compacted"] = compacted
        send_notification(group_of(self.agent.key), event)
