"""The loop shortens a prompt: by count, by estimate, after a refusal; at most twice a turn, crashes included."""

from collections.abc import Callable

import pytest

from chat.core.loop.context_window import MAX_COMPACTIONS_PER_TURN, SUMMARISED_TEXT
from chat.core.model.language_model import (
    AssistantMessage,
    Finish,
    LanguageModel,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    TextContent,
    TextDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from chat.errors import ContextOverflow
from sessions_app.core.messages.shapes import Message
from tests.unit.chat.core.loop_world import Crash, Model, World, finish, prompt_of, says, texts, two_rounds

Events = list[ModelEvent | Exception]
SUMMARY = AssistantMessage(content=(TextContent(text="summary"),))


class Reducer:
    """Marks each reduction with a summary in front of the prompt; works a given number of times."""

    def __init__(self, world: World, *, works: int = 10) -> None:
        self.world = world
        self.works = works
        self.attempts: list[bool] = []
        self.resumed: list[bool] = []
        self.is_over: Callable[[ModelRequest, Usage | None], bool] = lambda request, usage: False
        self.usages: list[Usage | None] = []
        self.crashes = False
        world.reducer = self
        world.prompt = self.prompt

    @property
    def rounds(self) -> int:
        return len(self.attempts) + len(self.resumed)

    def prompt(self, message: Message) -> tuple[ModelMessage, ...]:
        return (*([SUMMARY] * self.rounds), *prompt_of(message))

    def is_over_limit(self, model: LanguageModel, request: ModelRequest, usage: Usage | None) -> bool:
        self.usages.append(usage)
        return self.is_over(request, usage)

    async def reduce(self, model: LanguageModel, *, was_refused: bool) -> bool:
        if self.crashes:
            raise Crash
        if len(self.attempts) >= self.works:
            return False
        self.attempts.append(was_refused)
        return True

    def resume(self, *, was_refused: bool) -> None:
        self.resumed.append(was_refused)


def summaries(request: ModelRequest) -> int:
    return sum(message == SUMMARY for message in request.messages)


def refuses_until(rounds: int, then: Callable[[ModelRequest], Events]) -> Callable[[ModelRequest], Events]:
    return lambda request: [ContextOverflow()] if summaries(request) < rounds else then(request)


async def test_a_refused_call_is_repeated_with_a_shorter_prompt() -> None:
    world = World(Model(refuses_until(1, says("Hello"))))
    reducer = Reducer(world)
    assert texts(await world.run()) == ["Hello"]
    assert reducer.attempts == [True]
    assert [summaries(request) for request in world.model.requests] == [0, 1]
    assert [chunk["type"] for chunk in world.log].count("start-step") == 1
    assert world.loop.totals.steps == 1


async def test_the_usage_of_a_step_shortens_the_next_prompt() -> None:
    world = World(Model(two_rounds))
    reducer = Reducer(world)
    reducer.is_over = lambda request, usage: usage is not None and usage.input_tokens >= 10
    assert texts(await world.run()) == ["Let me add.", "The sum is 10."]
    assert reducer.attempts == [False]
    assert reducer.usages == [None, Usage(input_tokens=10, output_tokens=5)]
    assert [summaries(request) for request in world.model.requests] == [0, 1]


async def test_an_estimate_shortens_the_first_prompt() -> None:
    world = World(Model(says("Hello")))
    reducer = Reducer(world)
    reducer.is_over = lambda request, usage: summaries(request) < 1
    assert texts(await world.run()) == ["Hello"]
    assert [summaries(request) for request in world.model.requests] == [1]


async def test_the_instruction_to_continue_is_never_stored() -> None:
    world = World(Model(two_rounds))
    reducer = Reducer(world)
    reducer.is_over = lambda request, usage: usage is not None
    message = await world.run()
    last = world.model.requests[-1].messages
    assert isinstance(last[-2], ToolMessage)
    assert last[-1] == UserMessage(content=(TextContent(text=SUMMARISED_TEXT),))
    assert SUMMARISED_TEXT not in str(message)


async def test_a_users_message_is_repeated_without_an_instruction() -> None:
    world = World(Model(refuses_until(1, says("Hello"))))
    Reducer(world)
    await world.run()
    assert world.model.requests[-1].messages[-1] == UserMessage(content=(TextContent(text="hi"),))


async def test_a_model_that_always_overflows_ends_the_turn() -> None:
    world = World(Model(lambda request: [ContextOverflow()]))
    reducer = Reducer(world)
    with pytest.raises(ContextOverflow):
        await world.run()
    assert len(reducer.attempts) == MAX_COMPACTIONS_PER_TURN == 2
    assert len(world.model.requests) == 3


async def test_reductions_by_count_have_the_same_limit() -> None:
    world = World(Model(two_rounds))
    reducer = Reducer(world)
    reducer.is_over = lambda request, usage: True
    await world.run()
    assert len(reducer.attempts) == 2


async def test_a_useless_reduction_leaves_one_for_a_refusal() -> None:
    def answer(request: ModelRequest) -> Events:
        return two_rounds(request) if len(world.model.requests) < 2 else [ContextOverflow()]

    world = World(Model(answer))
    reducer = Reducer(world, works=0)
    reducer.is_over = lambda request, usage: True
    with pytest.raises(ContextOverflow):
        await world.run()
    assert [key for key in world.journal.rows if key.startswith("room:")] == ["room:0", "room:1"]
    assert len(reducer.usages) == 1


async def test_without_a_reducer_an_overflow_is_final() -> None:
    world = World(Model(lambda request: [ContextOverflow()]))
    with pytest.raises(ContextOverflow):
        await world.run()
    assert len(world.model.requests) == 1


async def test_an_answer_continues_after_its_shown_part() -> None:
    def answer(request: ModelRequest) -> Events:
        return [TextDelta(text="lo"), finish()] if summaries(request) else [TextDelta(text="Hel"), ContextOverflow()]

    world = World(Model(answer))
    Reducer(world)
    assert texts(await world.run()) == ["Hello"]
    assert world.journal.rows["model:0"]["sealed"]


@pytest.mark.parametrize("crash_after", range(1, 30))
async def test_a_recovered_turn_counts_earlier_reductions(crash_after: int) -> None:
    world = World(Model(refuses_until(1, two_rounds)))
    reducer = Reducer(world)
    try:
        message = await world.run(crash_after=crash_after)
    except Crash:
        again = Reducer(world)
        message = await world.run()
        assert again.resumed == reducer.attempts
        reducer.attempts += again.attempts
    assert texts(message) == ["Let me add.", "The sum is 10."]
    assert len(reducer.attempts) == 1


async def test_a_crash_during_a_reduction_counts_as_one() -> None:
    world = World(Model(lambda request: [ContextOverflow()]))
    Reducer(world).crashes = True
    with pytest.raises(Crash):
        await world.run()
    again = Reducer(world)
    with pytest.raises(ContextOverflow):
        await world.run()
    assert (again.resumed, again.attempts) == ([True], [True])


async def test_usage_counts_again_after_the_next_call() -> None:
    world = World(Model(two_rounds))
    reducer = Reducer(world)
    limit = iter([True, False])
    reducer.is_over = lambda request, usage: next(limit)
    await world.run()
    assert reducer.usages == [None, Usage(input_tokens=10, output_tokens=5)]


async def test_usage_from_before_a_reduction_is_ignored() -> None:
    def answer(request: ModelRequest) -> Events:
        is_second = isinstance(request.messages[-1], ToolMessage)
        return [ContextOverflow()] if is_second and not summaries(request) else two_rounds(request)

    world = World(Model(answer))
    reducer = Reducer(world)
    await world.run()
    assert reducer.attempts == [True]
    assert reducer.usages == [None, Usage(input_tokens=10, output_tokens=5), None]


async def test_a_call_without_reports_sends_none() -> None:
    world = World(Model(lambda request: [*two_rounds(request)[:-1], Finish(reason=finish().reason)]))
    reducer = Reducer(world)
    await world.run()
    assert reducer.usages == [None, None]
