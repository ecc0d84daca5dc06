"""The methods and attributes of a class of agents about failures: its retries, and the recovery of its turns."""

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar

from chat.core.loop.hooks import ModelSwitch, RecoveryContext, RecoveryExhausted
from thinkproject.kernel.retry import RETRY, RetryPolicy, ShouldRetry, retry

T = TypeVar("T")


class RetryMethods:
    """`retry`, for every agent."""

    retry_policy: ClassVar[RetryPolicy] = RETRY
    """The policy of `self.retry`."""

    def retry(
        self,
        function: Callable[..., Awaitable[T]],
        *,
        attempts: int | None = None,
        first_seconds: float | None = None,
        max_seconds: float | None = None,
        should_retry: ShouldRetry | None = None,
    ) -> Awaitable[T]:
        """Call an async function until it succeeds, under the class's `retry_policy`; see `chat.think.retry`."""
        return retry(
            function,
            attempts=attempts,
            first_seconds=first_seconds,
            max_seconds=max_seconds,
            should_retry=should_retry,
            policy=self.retry_policy,
        )


class RecoveryMethods:
    """Budgets of recovery of turns, and hooks about it. See `docs/howto/recovery.md`."""

    max_recoveries: ClassVar[int | None] = None
    """How often in a row a turn whose worker was lost goes on, with nothing shown or settled in between; then it is
    given up. Losses within 30 seconds of the one before count as one. `None` asks settings
    (`THINK_FIBER_MAX_RECOVERIES`)."""

    no_progress_seconds: ClassVar[float | None] = None
    """How long a turn is recovered without progress, whatever attempts are left; then it is given up. `None`: 300."""

    max_recovery_work: ClassVar[int | None] = None
    """How many steps (model and tool calls) a turn may settle after it first lost its worker, if it keeps losing them.
    `None`: 1000."""

    max_memory_losses: ClassVar[int | None] = None
    """How often a turn may take a worker along that ran out of memory; then it is given up. `None`: 3."""

    chat_recovery: ClassVar[bool | str] = True
    """Whether turns that a crash cut go on by themselves. If not, they end as interrupted with what was shown kept, and
    a person asks again. `"paused"`: they end like that as soon as their worker is lost, and go on from there when a
    person resumes them. Turns are durable either way."""

    def should_keep_recovering(self, context: RecoveryContext) -> Any:
        """Decide whether a turn is recovered once more; `False` gives it up. Runs from the second recovery on."""

    def on_recovery_exhausted(self, context: RecoveryExhausted) -> Any:
        """Run once when a turn is given up after crashes, after its partial answer was stored."""

    def on_model_switch(self, switch: ModelSwitch) -> Any:
        """Run when the next model of a list takes over from one that failed. Runs again where a crash cut it."""
