"""The loop makes room: by count, by estimate, by the provider's error; at most twice in a turn, crashes included."""

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
from tests.unit.chat.core.test_loop import Crash, Model, World, _finish, _prompt, says, texts, two_rounds

Events = list[ModelEvent | Exception]
SUMMARY = AssistantMessage(content=(TextContent(text="summary"),))


class Maker:
    """Makes room by a line in front of the prompt, so many times."""

    def __init__(self, world: World, *, works: int = 10) -> None:
        self.world = world
        self.works = works
        self.made: list[bool] = []
        self.resumed: list[bool] = []
        self.fills_up: Callable[[ModelRequest, Usage | None], bool] = lambda request, usage: False
        self.usages: list[Usage | None] = []
        self.crashes = False
        world.room = self
        world.prompt = self.prompt

    @property
    def rounds(self) -> int:
        return len(self.made) + len(self.resumed)

    def prompt(self, message: Message) -> tuple[ModelMessage, ...]:
        return (*([SUMMARY] * self.rounds), *_prompt(message))

    def is_full(self, model: LanguageModel, request: ModelRequest, usage: Usage | None) -> bool:
        self.usages.append(usage)
        return self.fills_up(request, usage)

    async def make_room(self, model: LanguageModel, *, was_refused: bool) -> bool:
        if self.crashes:
            raise Crash
        if len(self.made) >= self.works:
            return False
        self.made.append(was_refused)
        return True

    def resume(self, *, was_refused: bool) -> None:
        self.resumed.append(was_refused)


def summaries(request: ModelRequest) -> int:
    return sum(message == SUMMARY for message in request.messages)


def refuses_until(rounds: int, then: Callable[[ModelRequest], Events]) -> Callable[[ModelRequest], Events]:
    return lambda request: [ContextOverflow()] if summaries(request) < rounds else then(request)


async def test_the_providers_error_is_met_by_room_and_the_same_call() -> None:
    world = World(Model(refuses_until(1, says("Hello"))))
    maker = Maker(world)
    assert texts(await world.run()) == ["Hello"]
    assert maker.made == [True]
    assert [summaries(request) for request in world.model.requests] == [0, 1]
    assert [chunk["type"] for chunk in world.log].count("start-step") == 1
    assert world.loop.totals.steps == 1


async def test_what_a_step_took_makes_room_before_the_next_call() -> None:
    world = World(Model(two_rounds))
    maker = Maker(world)
    maker.fills_up = lambda request, usage: usage is not None and usage.input_tokens >= 10
    assert texts(await world.run()) == ["Let me add.", "The sum is 10."]
    assert maker.made == [False]
    assert maker.usages == [None, Usage(input_tokens=10, output_tokens=5)]
    assert [summaries(request) for request in world.model.requests] == [0, 1]


async def test_an_estimate_makes_room_before_the_first_call() -> None:
    world = World(Model(says("Hello")))
    maker = Maker(world)
    maker.fills_up = lambda request, usage: summaries(request) < 1
    assert texts(await world.run()) == ["Hello"]
    assert [summaries(request) for request in world.model.requests] == [1]


async def test_the_loop_goes_on_by_a_line_that_is_never_stored() -> None:
    world = World(Model(two_rounds))
    maker = Maker(world)
    maker.fills_up = lambda request, usage: usage is not None
    message = await world.run()
    last = world.model.requests[-1].messages
    assert isinstance(last[-2], ToolMessage)
    assert last[-1] == UserMessage(content=(TextContent(text=SUMMARISED_TEXT),))
    assert SUMMARISED_TEXT not in str(message)


async def test_the_persons_own_message_is_asked_again_without_a_line() -> None:
    world = World(Model(refuses_until(1, says("Hello"))))
    Maker(world)
    await world.run()
    assert world.model.requests[-1].messages[-1] == UserMessage(content=(TextContent(text="hi"),))


async def test_a_model_that_always_overflows_ends_the_turn() -> None:
    world = World(Model(lambda request: [ContextOverflow()]))
    maker = Maker(world)
    with pytest.raises(ContextOverflow):
        await world.run()
    assert len(maker.made) == MAX_COMPACTIONS_PER_TURN == 2
    assert len(world.model.requests) == 3


async def test_by_count_it_is_no_more_often() -> None:
    world = World(Model(two_rounds))
    maker = Maker(world)
    maker.fills_up = lambda request, usage: True
    await world.run()
    assert len(maker.made) == 2


async def test_nothing_to_do_is_asked_once_and_leaves_one_for_the_error() -> None:
    def answer(request: ModelRequest) -> Events:
        return two_rounds(request) if len(world.model.requests) < 2 else [ContextOverflow()]

    world = World(Model(answer))
    maker = Maker(world, works=0)
    maker.fills_up = lambda request, usage: True
    with pytest.raises(ContextOverflow):
        await world.run()
    assert [key for key in world.journal.rows if key.startswith("room:")] == ["room:0", "room:1"]
    assert len(maker.usages) == 1


async def test_without_a_maker_the_error_is_final() -> None:
    world = World(Model(lambda request: [ContextOverflow()]))
    with pytest.raises(ContextOverflow):
        await world.run()
    assert len(world.model.requests) == 1


async def test_what_was_shown_stays_and_the_answer_goes_on_behind_it() -> None:
    def answer(request: ModelRequest) -> Events:
        return [TextDelta(text="lo"), _finish()] if summaries(request) else [TextDelta(text="Hel"), ContextOverflow()]

    world = World(Model(answer))
    Maker(world)
    assert texts(await world.run()) == ["Hello"]
    assert world.journal.rows["model:0"]["sealed"]


@pytest.mark.parametrize("crash_after", range(1, 30))
async def test_a_recovered_turn_counts_what_was_done(crash_after: int) -> None:
    world = World(Model(refuses_until(1, two_rounds)))
    maker = Maker(world)
    try:
        message = await world.run(crash_after=crash_after)
    except Crash:
        again = Maker(world)
        message = await world.run()
        assert again.resumed == maker.made
        maker.made += again.made
    assert texts(message) == ["Let me add.", "The sum is 10."]
    assert len(maker.made) == 1


async def test_a_crash_while_room_is_made_spends_it() -> None:
    world = World(Model(lambda request: [ContextOverflow()]))
    Maker(world).crashes = True
    with pytest.raises(Crash):
        await world.run()
    again = Maker(world)
    with pytest.raises(ContextOverflow):
        await world.run()
    assert (again.resumed, again.made) == ([True], [True])


async def test_what_a_call_took_counts_again_after_the_next() -> None:
    world = World(Model(two_rounds))
    maker = Maker(world)
    limit = iter([True, False])
    maker.fills_up = lambda request, usage: next(limit)
    await world.run()
    assert maker.usages == [None, Usage(input_tokens=10, output_tokens=5)]


async def test_what_a_call_took_is_history_once_room_was_made_after_it() -> None:
    def answer(request: ModelRequest) -> Events:
        is_second = isinstance(request.messages[-1], ToolMessage)
        return [ContextOverflow()] if is_second and not summaries(request) else two_rounds(request)

    world = World(Model(answer))
    maker = Maker(world)
    await world.run()
    assert maker.made == [True]
    assert maker.usages == [None, Usage(input_tokens=10, output_tokens=5), None]


async def test_a_call_that_reports_nothing_says_nothing() -> None:
    world = World(Model(lambda request: [*two_rounds(request)[:-1], Finish(reason=_finish().reason)]))
    maker = Maker(world)
    await world.run()
    assert maker.usages == [None, None]
