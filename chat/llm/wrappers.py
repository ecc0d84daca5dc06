"""Wrappers around any model: retries, a guard against silence, a way round refused schemas.

Each is a `LanguageModel` itself.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from chat.core.model.language_model import (
    LanguageModel,
    ModelEvent,
    ModelRequest,
    ModelSettings,
    RetryNotice,
    Spent,
)
from chat.errors import AnswerFailed, ModelError, SchemaRefused, StreamStalled
from chat.llm.answer_tool import AnswerCalls, by_tool
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.retry import RetryPolicy

POLICY: Final = RetryPolicy(attempts=3, jitter_share=0.25, asked_cap_seconds=120.0)
"""A provider that asks for a longer wait than the cap is not asked again: people learn the moment at once."""


def may_retry(policy: RetryPolicy, attempt: int, error: ModelError, max_retries: int | None = None) -> bool:
    """Whether another attempt may follow the failed attempt `attempt` (from 1). A request may have a limit of its own.

    What the provider says about it counts for more than the kind of the error, and a wait that it asks for is never
    cut short: it would refuse again. An answer without a word is asked for once more, not as often as an outage.
    """
    if (error.data.get("retry_after_seconds") or 0.0) > policy.asked_cap_seconds:
        return False
    should = error.data.get("should_retry")
    wanted = should if isinstance(should, bool) else error.retryable
    most = attempts_of(policy, max_retries)
    return wanted and attempt < (min(most, 2) if isinstance(error, AnswerFailed) else most)


def attempts_of(policy: RetryPolicy, max_retries: int | None) -> int:
    """Maximum number of requests. `max_retries`: the request's own limit, if any."""
    return policy.attempts if max_retries is None else max_retries + 1


class _Wrapper:
    """Base of model wrappers: passes everything on."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self._model.name

    @property
    def accepts_images(self) -> bool:
        """Whether the wrapped model takes pictures."""
        return self._model.accepts_images

    @property
    def accepts_documents(self) -> bool:
        """Whether the wrapped model takes PDF documents."""
        return self._model.accepts_documents

    def describe(self, request: ModelRequest) -> JSONObject:
        """The wrapped model's body."""
        return self._model.describe(request)


class Preset(_Wrapper):
    """A model with settings of its own; those of a request go before them."""

    def __init__(self, model: LanguageModel, settings: ModelSettings) -> None:
        super().__init__(model)
        self._settings = settings

    def describe(self, request: ModelRequest) -> JSONObject:
        """The wrapped model's body, with the settings."""
        return self._model.describe(self._with_settings(request))

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Ask with the settings. Errors: the model's own."""
        async with contextlib.aclosing(self._model.stream(self._with_settings(request))) as events:
            async for event in events:
                yield event

    def _with_settings(self, request: ModelRequest) -> ModelRequest:
        return replace(request, settings=request.settings.over(self._settings))


class Retrying(_Wrapper):
    """Retry transient failures until the first event: shown output is never repeated."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        policy: RetryPolicy = POLICY,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(model)
        self._policy = policy
        self._jitter = jitter

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the first attempt that yields anything, and a `RetryNotice` before each wait for another one.

        Cancelling while it waits ends the wait at once.
        """
        attempt = 0
        while True:
            attempt += 1
            yielded = False
            try:
                async with contextlib.aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        yielded = True
                        yield event
                return
            except ModelError as error:
                if yielded or not may_retry(self._policy, attempt, error, request.settings.max_retries):
                    raise
                notice, spent = self._notice(attempt, error, request), Spent.on(error)
            for used in spent:
                yield used
            yield notice
            await asyncio.sleep(notice.delay_seconds)

    def _notice(self, attempt: int, error: ModelError, request: ModelRequest) -> RetryNotice:
        asked = error.data.get("retry_after_seconds")
        delay = self._policy.delay_seconds(attempt, jitter=self._jitter(), asked_seconds=asked)
        return RetryNotice(
            attempt=attempt + 1,
            attempts=attempts_of(self._policy, request.settings.max_retries),
            delay_seconds=delay,
            retry_at=datetime.now(UTC) + timedelta(seconds=delay),
            code=error.code,
        )


class StallGuard(_Wrapper):
    """Give up on a model that falls silent: close its connection and raise `StreamStalled`.

    `first_seconds` bounds the wait for the first event, `gap_seconds` each later one; 0 switches a limit off. The time
    in which the consumer does not ask does not count.
    """

    def __init__(self, model: LanguageModel, *, gap_seconds: float, first_seconds: float) -> None:
        super().__init__(model)
        self._gap_seconds = gap_seconds
        self._first_seconds = first_seconds

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Pass the events on. Errors: `StreamStalled`, and the model's own."""
        watch = _Watch()
        limit = self._first_seconds
        try:
            async with contextlib.aclosing(self._model.stream(request)) as events:
                while True:
                    watch.start(limit)
                    try:
                        event = await anext(events)
                    except StopAsyncIteration:
                        return
                    except asyncio.CancelledError:
                        if watch.claim():
                            raise StreamStalled(
                                f"{self.name} sent nothing for {limit:g} s.", provider=self.name
                            ) from None
                        raise
                    finally:
                        watch.stop()
                    yield event
                    limit = self._gap_seconds
        finally:
            watch.close()


class _Watch:
    """One timer for a whole stream: an event costs two stores, not a timer of its own.

    When the timer finds that a wait began too long ago, it cancels the waiting task; `claim` distinguishes that
    cancellation from anybody else's, as `asyncio.timeout` does.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._fired = False

    def start(self, limit: float) -> None:
        if limit <= 0:
            return
        # With the loop given: looking for the running one is a system call, for each token.
        task = asyncio.current_task(self._loop)
        self._task = task
        self._cancelling = task.cancelling() if task is not None else 0
        self._deadline = self._loop.time() + limit
        if self._timer is None or self._timer.when() > self._deadline:
            self._arm(self._deadline)

    def stop(self) -> None:
        self._task = None

    def claim(self) -> bool:
        """Whether the cancellation now being handled is ours alone."""
        task = asyncio.current_task()
        return self._fired and task is not None and task.uncancel() <= self._cancelling

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._task is None:
            return  # no wait is pending; the next one arms the timer again
        if self._loop.time() + 0.001 < self._deadline:
            self._arm(self._deadline)
            return
        self._fired = True
        self._task.cancel()


class SchemaByTool(_Wrapper):
    """Ask for a structured answer as a tool call, where the provider refuses its schema or the request wants it so.

    What the model calls that tool with becomes the text of the answer, in one piece. `passes_over`: whether the model
    of a name is known to refuse a schema in such a request, or to give it no heed and to call tools.
    """

    def __init__(
        self, model: LanguageModel, *, passes_over: Callable[[str, ModelRequest], bool] = lambda _name, _request: False
    ) -> None:
        super().__init__(model)
        self._passes_over = passes_over

    def describe(self, request: ModelRequest) -> JSONObject:
        """The body as it is sent now."""
        return self._model.describe(by_tool(request) if self._must(request) else request)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Pass events on, translating those that need it."""
        return self._model.stream(request) if request.settings.response_schema is None else self._answer(request)

    def _must(self, request: ModelRequest) -> bool:
        settings = request.settings
        if settings.response_schema is None:
            return False
        return settings.response_by_tool or self._passes_over(self.name, request)

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if not self._must(request):
            try:
                async with contextlib.aclosing(self._model.stream(request)) as events:
                    async for event in events:
                        yield event
                return
            except SchemaRefused:  # its adapter remembers it
                pass
        assert request.settings.response_schema is not None
        translate = AnswerCalls(request.settings.response_schema)
        async with contextlib.aclosing(self._model.stream(by_tool(request))) as events:
            async for event in events:
                for item in translate(event):
                    yield item
