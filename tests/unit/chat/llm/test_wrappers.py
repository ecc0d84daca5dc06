"""Retries and the stall guard, against a real server that misbehaves on demand."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace

import pytest

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    LanguageModel,
    ModelEvent,
    ModelRequest,
    RetryNotice,
    TextDelta,
)
from chat.errors import (
    ContextOverflow,
    ModelAuth,
    ModelError,
    NetworkLost,
    Overloaded,
    RateLimited,
    StreamStalled,
)
from chat.llm.scripted import ScriptedServer
from chat.llm.testing import collect, collect_until_error, make_request, text_of
from chat.llm.wrappers import POLICY, Retrying, StallGuard, may_retry
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.retry import RetryPolicy

QUICK = replace(POLICY, first_seconds=0.01)


def notices(events: Sequence[ModelEvent]) -> list[tuple[int, int, float, str]]:
    """Attempt, attempts, delay and code of each announced retry."""
    found = [event for event in events if isinstance(event, RetryNotice)]
    return [(event.attempt, event.attempts, event.delay_seconds, event.code) for event in found]


class SlowModel:
    """Yields numbered texts with a pause before each; knows when it was closed."""

    name = "slow/model"
    accepts_images = False
    accepts_documents = False

    def __init__(self, *pauses: float) -> None:
        self.pauses = pauses
        self.closed = False

    def describe(self, request: ModelRequest) -> JSONObject:
        return {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        try:
            for number, pause in enumerate(self.pauses):
                await asyncio.sleep(pause)  # a model that is slow: what the guard measures
                yield TextDelta(text=str(number))
            yield Finish(reason=FinishReason.STOP)
        finally:
            self.closed = True


def sent(server: ScriptedServer) -> int:
    return len(server.log("request"))


@pytest.mark.parametrize(
    ("error", "allowed"),
    [
        (RateLimited(), True),
        (Overloaded(), True),
        (NetworkLost(), True),
        (StreamStalled(), True),
        (ModelAuth(), False),
        (ContextOverflow(), False),
        (RateLimited(should_retry=False), False),
        (ModelAuth(should_retry=True), True),
    ],
)
def test_only_what_may_pass_is_retried(error: ModelError, allowed: bool) -> None:
    assert may_retry(RetryPolicy(attempts=2), 1, error) is allowed
    assert may_retry(RetryPolicy(attempts=2), 2, error) is False


async def test_a_wait_that_a_person_can_sit_out_is_waited_as_asked(http_model: LanguageModel) -> None:
    async with aclosing(Retrying(http_model).stream(make_request("error 429 retry-after 90\nsay: late"))) as events:
        assert notices([await anext(events)]) == [(2, 3, 90.0, "rate_limited")]


@pytest.mark.parametrize("status", [429, 503])
async def test_a_wait_of_hours_is_shown_at_once_with_the_moment(
    http_model: LanguageModel, server: ScriptedServer, status: int
) -> None:
    with pytest.raises((RateLimited, Overloaded), match=r"in 3 h 0 min, at \d\d:\d\d on"):
        await collect(Retrying(http_model), make_request(f"error {status} retry-after 10800\nsay: late"))
    assert sent(server) == 1


async def test_a_limited_request_succeeds_after_the_given_wait(
    http_model: LanguageModel, server: ScriptedServer
) -> None:
    start = time.monotonic()
    events = await collect(Retrying(http_model), make_request("error 429 retry-after-ms 60 times 2\nsay: at last"))
    assert text_of(events) == "at last"
    assert notices(events) == [(2, 3, 0.06, "rate_limited"), (3, 3, 0.06, "rate_limited")]
    assert time.monotonic() - start >= 0.12
    assert sent(server) == 3


async def test_seconds_of_the_header_are_waited(http_model: LanguageModel) -> None:
    start = time.monotonic()
    events = await collect(Retrying(http_model), make_request("error 503 retry-after 1 times 1\nsay: x"))
    assert notices(events) == [(2, 3, 1.0, "overloaded")]
    assert time.monotonic() - start >= 1.0


async def test_attempts_are_bounded(http_model: LanguageModel, server: ScriptedServer) -> None:
    with pytest.raises(Overloaded):
        await collect(Retrying(http_model, policy=QUICK), make_request("error 500"))
    assert sent(server) == 3


@pytest.mark.parametrize(
    "script", ["error 401", "error 400", "error 404", "context overflow", "error 429 code insufficient_quota"]
)
async def test_what_will_not_pass_is_asked_once(http_model: LanguageModel, server: ScriptedServer, script: str) -> None:
    with pytest.raises(ModelError):
        await collect(Retrying(http_model, policy=QUICK), make_request(script))
    assert sent(server) == 1


async def test_a_break_before_any_output_is_retried(http_model: LanguageModel, server: ScriptedServer) -> None:
    events = await collect(Retrying(http_model, policy=QUICK), make_request("say: one two\ndrop after 0"))
    assert text_of(events) == "one two"
    assert sent(server) == 2


@pytest.mark.parametrize("output", ["say: one two three", "reason: one two three", 'call tool read {"path": "a.txt"}'])
async def test_nothing_is_retried_once_something_was_yielded(
    http_model: LanguageModel, server: ScriptedServer, output: str
) -> None:
    with pytest.raises(NetworkLost):
        await collect(Retrying(http_model, policy=QUICK), make_request(f"{output}\ndrop after 2"))
    assert sent(server) == 1


async def test_a_wait_ends_at_once_when_it_is_cancelled(http_model: LanguageModel, server: ScriptedServer) -> None:
    waiting = asyncio.Event()

    async def ask() -> None:
        async for _notice in Retrying(http_model).stream(make_request("error 429 retry-after 30")):
            waiting.set()

    task = asyncio.create_task(ask())
    await asyncio.wait_for(waiting.wait(), 15)
    start = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start < 10  # of thirty
    assert sent(server) == 1


async def test_a_stall_closes_the_connection(http_model: LanguageModel, server: ScriptedServer) -> None:
    guard = StallGuard(http_model, gap_seconds=0.2, first_seconds=10)
    start = time.monotonic()
    seen, error = await collect_until_error(guard, make_request("say: one two three\nstall after 2"))
    assert isinstance(error, StreamStalled)
    assert text_of(seen) == "one two "
    assert time.monotonic() - start < 8  # the limit of the first piece is ten
    for _ in range(100):
        if server.log("end"):
            break
        await asyncio.sleep(0.01)
    assert [line["how"] for line in server.log("end")] == ["closed"]


async def test_silence_before_the_first_event_has_its_own_limit_and_is_retried(
    http_model: LanguageModel, server: ScriptedServer
) -> None:
    model = Retrying(StallGuard(http_model, gap_seconds=30, first_seconds=1.5), policy=QUICK)
    assert text_of(await collect(model, make_request("hang\nsay: here"))) == "here"
    assert sent(server) == 2


async def test_the_first_event_may_take_longer_than_a_gap() -> None:
    guard = StallGuard(SlowModel(0.8, 0, 0), gap_seconds=0.5, first_seconds=15)
    assert text_of(await collect(guard, make_request("x"))) == "012"


async def test_each_gap_starts_anew() -> None:
    guard = StallGuard(SlowModel(*[0.1] * 8), gap_seconds=0.6, first_seconds=15)
    assert text_of(await collect(guard, make_request("x"))) == "01234567"


async def test_a_slow_consumer_is_no_stall() -> None:
    guard = StallGuard(SlowModel(0, 0, 0.05), gap_seconds=0.5, first_seconds=0.5)
    seen: list[ModelEvent] = []
    async for event in guard.stream(make_request("x")):
        if not seen:
            await asyncio.sleep(0.6)  # the consumer is slower than a gap may last
        seen.append(event)
    assert text_of(seen) == "012"


async def test_zero_switches_the_guard_off() -> None:
    guard = StallGuard(SlowModel(0.1, 0.1), gap_seconds=0, first_seconds=0)
    assert text_of(await collect(guard, make_request("x"))) == "01"


async def test_another_tasks_cancel_is_not_taken_for_a_stall() -> None:
    slow = SlowModel(0, 30)
    task = asyncio.create_task(collect(StallGuard(slow, gap_seconds=20, first_seconds=20), make_request("x")))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slow.closed


async def test_a_stall_leaves_the_task_uncancelled() -> None:
    slow = SlowModel(0, 30)
    with pytest.raises(StreamStalled):
        await collect(StallGuard(slow, gap_seconds=0.05, first_seconds=5), make_request("x"))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert slow.closed
    await asyncio.sleep(0)


async def test_closing_a_wrapped_stream_closes_the_model() -> None:
    slow = SlowModel(0, 30)
    stream = Retrying(StallGuard(slow, gap_seconds=20, first_seconds=20)).stream(make_request("x"))
    await anext(stream)
    await stream.aclose()
    assert slow.closed
