"""Run an action once: permission, ledger, function, ledger.

The ledger says pending before the function begins and settled after it returned. What a crash leaves pending has an
unknown outcome: it is reported as such, and only an explicit key runs again, under the same idempotency key.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from fibers.errors import Cancelled, FiberError, Parked
from sessions_app.core.messages.truncation import cut_text
from thinkproject.kernel.aio import call_tool_code, call_user_code, db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, fingerprint
from tools_app.actions.ledger import (
    BegunAction,
    Conflicting,
    Effect,
    PendingAction,
    Replayed,
    begin_effect,
    release_effect,
    settle_effect,
)
from tools_app.actions.shared import SharedRuns
from tools_app.core.action_rules import ActionRules, checked_key, error_output, key_of_arguments
from tools_app.core.call_check import to_json
from tools_app.core.tool import ToolContext
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import ToolError

logger = logging.getLogger(__name__)

MAX_OUTPUT_CHARS: Final = 20_000
ABORT_SECONDS: Final = 0.25
"""How long a function may take to end once it is cancelled."""

Authorize: TypeAlias = Callable[[ActionRules, JSONObject], Awaitable[str | None]]
"""Gives the reason why an action may not run, or `None`."""


class Replies(Protocol):
    """Parts that a call adds to the assistant's reply."""

    async def resolve(self) -> list[JSONObject]:
        """Store their bytes and give them as they are delivered. Safe to call again."""

    def restore(self, parts: list[JSONObject]) -> None:
        """Take parts that an earlier run had resolved."""

    def drop(self) -> None:
        """Deliver nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOutcome:
    """The result for the model. `value`: for the executor, where it is more than the output."""

    output: JSONValue
    reply: tuple[JSONObject, ...] = ()
    has_failed: bool = False
    value: Any = None


PENDING: Final = ActionOutcome(
    output=error_output(
        "ActionPending",
        "This action has begun before, and whether it took effect is not known. Do not repeat it; find out first.",
    ),
    has_failed=True,
)
CONFLICT: Final = ActionOutcome(
    output=error_output(
        "ActionConflict", "An action with the same idempotency key has other arguments. It was not run again."
    ),
    has_failed=True,
)
_shared: SharedRuns[ActionOutcome] = SharedRuns()
_left: set["asyncio.Task[Any]"] = set()  # so that they are not collected while they run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAction:
    """Runs actions for one call of one conversation: the `act` of a `ToolContext`. `turn_id`: that made the call."""

    scope: str
    owner_id: int | None
    turn_id: str
    authorize: Authorize
    replies: Replies

    async def __call__(self, rules: ActionRules, arguments: dict[str, Any], context: ToolContext) -> Any:
        """Run it, or replay it. Errors of the action are results: `{"error": {"name", "message"}}`.

        Errors: a lost lease; a park, which releases the key, as the action runs again from its beginning.
        """
        given = to_json(arguments)
        assert isinstance(given, dict), "arguments are an object"
        outcome = await self._outcome(rules, arguments, given, context)
        if outcome.has_failed:
            self.replies.drop()
        else:
            self.replies.restore(list(outcome.reply))
        return outcome.output if outcome.value is None else outcome.value

    async def _outcome(
        self, rules: ActionRules, arguments: dict[str, Any], given: JSONObject, context: ToolContext
    ) -> ActionOutcome:
        refusal = await self.authorize(rules, given)
        if refusal is not None:
            return ActionOutcome(output=error_output("ActionDenied", refusal), has_failed=True)
        own_key = await _key_of(rules, given)
        key = context.idempotency_key if own_key is None else own_key
        effect = Effect(
            scope=self.scope,
            owner_id=self.owner_id,
            action=rules.name,
            key=key,
            is_explicit=own_key is not None,
            input=given,
            timeout_seconds=rules.timeout_seconds,
            undo=rules.undo,
            turn_id=self.turn_id,
            call_id=context.call_id,
        )
        if own_key is not None:
            context = replace(context, idempotency_key=f"{self.scope}:{rules.name}:{own_key}")
        work = partial(self._once, rules, effect, arguments, context)
        place = (self.scope, rules.name, key)
        return await _shared.run(place, fingerprint(given), work, conflict=CONFLICT, lost=PENDING)

    async def _once(
        self, rules: ActionRules, effect: Effect, arguments: dict[str, Any], context: ToolContext
    ) -> ActionOutcome:
        match await db(begin_effect, effect):
            case BegunAction() as begun:
                return await self._perform(rules, begun, arguments, replace(context, attempt=begun.attempt))
            case Replayed(output=output, reply=reply):
                return ActionOutcome(output=output, reply=reply)
            case Conflicting():
                return CONFLICT
            case PendingAction():
                return PENDING

    async def _perform(
        self, rules: ActionRules, begun: BegunAction, arguments: dict[str, Any], context: ToolContext
    ) -> ActionOutcome:
        if rules.context_parameter:
            arguments = {**arguments, rules.context_parameter: context}
        work = asyncio.create_task(_call(rules.function, arguments))
        try:
            await asyncio.wait({work}, timeout=rules.timeout_seconds)
        except asyncio.CancelledError:
            self._leave(rules, begun, work)
            raise
        if not work.done():
            self._leave(rules, begun, work)
            await asyncio.wait({work}, timeout=ABORT_SECONDS)
        if not work.done() or work.cancelled():
            text = f"Action {rules.name!r} did not finish within {rules.timeout_seconds:g} s."
            return ActionOutcome(
                output=error_output("ActionTimeout", f"{text} Whether it took effect is not known."), has_failed=True
            )
        return await self._record(rules, begun, work)

    async def _record(self, rules: ActionRules, begun: BegunAction, work: "asyncio.Task[Any]") -> ActionOutcome:
        """Write how the function ended."""
        error = work.exception()
        if error is None:
            return await self._settle(begun, work.result())
        if isinstance(error, FiberError | Cancelled):
            raise error  # whether the effect happened is not known
        if not isinstance(error, Exception):
            if isinstance(error, Parked):
                await db(release_effect, begun, "It waited for an answer.")
            raise error
        logger.warning("action failed", exc_info=error, extra={"action": "action_failed", "tool": rules.name})
        message = error.message if isinstance(error, ThinkError) else str(error) or type(error).__name__
        output = error_output(type(error).__name__, cut_text(message, MAX_OUTPUT_CHARS))
        await db(release_effect, begun, output)
        return ActionOutcome(output=output, has_failed=True)

    async def _settle(self, begun: BegunAction, value: Any) -> ActionOutcome:
        given = value.value if isinstance(value, ToolOutput) else value
        output = safe_output(given)
        reply = await self.replies.resolve()
        settled = await db(settle_effect, begun, output, reply)
        if settled is not None:
            logger.warning("an action was settled by another attempt", extra={"action": "action_settled_twice"})
            return ActionOutcome(output=settled.output, reply=settled.reply)
        rich = replace(value, value=output) if isinstance(value, ToolOutput) else None
        return ActionOutcome(output=output, reply=tuple(reply), value=rich)

    def _leave(self, rules: ActionRules, begun: BegunAction, work: "asyncio.Task[Any]") -> None:
        """Let go of a function that runs too long or is not wanted any more.

        An async one is cancelled. A sync one goes on in its thread; its end is written when it comes.
        """
        if inspect.iscoroutinefunction(rules.function):
            work.cancel()
        late = asyncio.create_task(self._record_late(rules, begun, work))
        _left.add(late)
        late.add_done_callback(_left.discard)

    async def _record_late(self, rules: ActionRules, begun: BegunAction, work: "asyncio.Task[Any]") -> None:
        await asyncio.wait({work})
        if work.cancelled():
            return
        error = work.exception()
        is_known = error is None or (isinstance(error, Exception) and not inspect.iscoroutinefunction(rules.function))
        if is_known and not isinstance(error, FiberError):
            await self._record(rules, begun, work)


async def _call(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    return await call_tool_code(function, **arguments)


async def _key_of(rules: ActionRules, arguments: JSONObject) -> str | None:
    """The explicit key of a call; `None` where it has none. Errors: `ToolError`."""
    if rules.key is None:
        return None
    if not callable(rules.key):
        return checked_key(key_of_arguments(rules.key, arguments))
    try:
        async with asyncio.timeout(rules.timeout_seconds):
            key = await call_user_code(rules.key, arguments)
    except TimeoutError:
        raise ToolError(f"The key of action {rules.name!r} took too long.") from None
    return None if key is None else checked_key(key)


def safe_output(value: Any) -> JSONValue:
    """A result as JSON of a bounded length. An effect that happened never fails for what it returned.

    What JSON cannot carry becomes its text. Of more than 20,000 characters the beginning and the end stay; a structure
    becomes the text of its JSON then.
    """
    try:
        output = to_json(value)
    except (TypeError, ValueError):
        output = str(value)
    text = output if isinstance(output, str) else dump(output)
    return output if len(text) <= MAX_OUTPUT_CHARS else cut_text(text, MAX_OUTPUT_CHARS)
