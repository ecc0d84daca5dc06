"""Lists of models: one dies, at any point of an answer, and the next goes on; both wires, real providers over HTTP."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from chat.llm.adapters.transport import close_clients
from chat.llm.health import resting_models
from chat.llm.scripted import ScriptedServer
from chat.streams.reader import read
from chat.think import ChosenModel, ChunkContext, ModelChoice, ModelSwitch, StepRecord, Think, Tool
from fibers.testing import crash_after
from tests.db.chat.turns.agents.everyday import CALLS, add
from thinkproject.kernel.jsonvalue import JSONObject, load

from .conftest import MakeRoom, Room, status_of, text_of

LIST: dict[str, ModelChoice] = {}
STEPS: list[StepRecord] = []
SEEN: list[JSONObject] = []
SWITCHES: list[ModelSwitch] = []


class Spare(Think):
    """Has two models, of two providers."""

    def get_model(self) -> ModelChoice:
        return LIST["models"]

    def get_tools(self) -> list[Tool]:
        return [add]

    def on_step_finish(self, record: StepRecord) -> None:
        STEPS.append(record)

    def on_chunk(self, context: ChunkContext) -> None:
        if context.chunk["type"] == "data-think-status":
            SEEN.append(context.chunk["data"])

    def on_model_switch(self, switch: ModelSwitch) -> None:
        SWITCHES.append(switch)


@dataclass
class Providers:
    first: ScriptedServer
    second: ScriptedServer

    def script(self, first: str, second: str) -> None:
        """What each answers to a message with the word "task"."""
        self.first.script("task", first)
        self.second.script("task", second)

    @property
    def asked(self) -> tuple[int, int]:
        return len(self.first.requests()), len(self.second.requests())


@pytest.fixture(params=["chat", "responses"])
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def providers(settings: Any, api: str) -> AsyncIterator[Providers]:
    LIST["models"] = ["acme/one", "bolt/two"]
    STEPS.clear()
    SEEN.clear()
    SWITCHES.clear()
    resting_models.clear()
    with ExitStack() as stack:
        found = Providers(*(stack.enter_context(ScriptedServer()) for _ in range(2)))
        wire = {"api": "responses"} if api == "responses" else {}
        settings.THINK_PROVIDERS = {
            "acme": {"base_url": found.first.base_url, **wire},
            "bolt": {"base_url": found.second.base_url, **wire},
        }
        settings.THINK_MODEL_ATTEMPTS = 1
        settings.THINK_PRICES = {"acme/one": {"input": 1, "output": 1}, "bolt/two": {"input": 1000, "output": 1000}}
        yield found
        await close_clients()
    resting_models.clear()


@pytest.fixture(autouse=True)
def _no_rest() -> Iterator[None]:
    yield
    resting_models.clear()


@pytest.fixture
def spare_room(make_room: MakeRoom, providers: Providers) -> Room:
    return make_room("spare")


async def answer(room: Room) -> str:
    return text_of((await room.transcript())[-1])


async def statuses(turn_id: str) -> list[JSONObject]:
    chunks = [load(record.text) for record in await read(turn_id)]
    return [chunk["data"] for chunk in chunks if chunk["type"] == "data-think-status"]


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("error 503", "overloaded"),
        ("error 429", "rate_limited"),
        ("error 401", "model_auth"),
        ("error 402", "model_rejected"),
        ("drop after 0 times 9", "network_lost"),
    ],
)
async def test_a_model_that_dies_before_its_text_is_replaced(
    spare_room: Room, providers: Providers, fault: str, code: str
) -> None:
    providers.script(f"{fault}\nsay: Never.", "say: From two.")
    turn = await spare_room.say("task")
    assert (status_of(turn), await answer(spare_room)) == ("completed", "From two.")
    assert turn.model_report["switches"] == [{"for": 0, "from": "acme/one", "to": "bolt/two", "code": code}]
    assert [model["name"] for model in turn.model_report["models"]] == ["bolt/two"]


TEXT = "One two three four five six seven eight nine."
CALL = 'call tool add {"a": 1, "b": 2}\nsay: It is {result}, and no more.'


@pytest.mark.parametrize("dies", ["drop", "error in stream", "end"])
async def test_a_text_that_breaks_off_is_continued_and_not_doubled(
    spare_room: Room, providers: Providers, dies: str
) -> None:
    providers.script(f"say: {TEXT}\n{dies} after 4 times 9", f"say: {TEXT}")
    turn = await spare_room.say("task")
    assert (status_of(turn), await answer(spare_room)) == ("completed", TEXT)
    assert [switch["to"] for switch in turn.model_report["switches"]] == ["bolt/two"]
    kinds = [load(record.text)["type"] for record in await read(turn.pk)]
    assert (kinds.count("start"), kinds.count("finish"), kinds.count("text-start")) == (1, 1, 1)
    assert providers.asked == (2, 1)  # a broken connection gets a second chance with the same model
    assert providers.second.log("request")[0]["continues"] > 0


async def test_thoughts_up_to_the_limit_are_paid_once_and_the_next_model_answers(
    spare_room: Room, providers: Providers
) -> None:
    providers.script("reason: Hm.\nsay:\nfinish: length", "say: From two.")
    turn = await spare_room.say("task")
    assert (status_of(turn), await answer(spare_room)) == ("completed", "From two.")
    assert providers.asked == (1, 1)


async def test_half_a_call_of_a_model_that_dies_is_never_run(spare_room: Room, providers: Providers) -> None:
    providers.script(f"{CALL}\nerror 503", CALL)
    providers.first.script("task", 'call tool add {"a": 1, "b": 2}\ndrop after 2 times 9\nsay: x\nerror 503')
    turn = await spare_room.say("task")
    assert (status_of(turn), CALLS) == ("completed", [])
    [call] = [part for part in (await spare_room.transcript())[-1]["parts"] if "toolCallId" in part]
    assert call["state"] == "output-error"
    assert turn.model_report["models"][0]["name"] == "bolt/two"


async def test_settled_calls_are_kept_and_not_run_again(spare_room: Room, providers: Providers) -> None:
    providers.script(f"{CALL}\nerror 503", CALL)
    turn = await spare_room.say("task")
    assert (status_of(turn), await answer(spare_room)) == ("completed", "It is 3, and no more.")
    assert CALLS == [(1, 2)]
    assert [record.model_name for record in STEPS] == ["one", "two"]
    models = turn.model_report["models"]
    assert [(model["name"], model["calls"]) for model in models] == [("acme/one", 1), ("bolt/two", 1)]
    one, two = (Decimal(model["cost"]) for model in models)
    assert one + two == turn.cost
    assert two / models[1]["tokens"] == 1000 * one / models[0]["tokens"]  # each at its own price


async def test_people_and_hooks_learn_of_the_switch(spare_room: Room, providers: Providers) -> None:
    providers.script("error 503", "say: Hi.")
    turn = await spare_room.say("task")
    told = [(status["kind"], status.get("name"), status.get("insteadOf")) for status in await statuses(turn.pk)]
    instead = {"model": "acme/one", "code": "overloaded"}
    assert told == [("model", "acme/one", None), ("failover", None, None), ("model", "bolt/two", instead)]
    assert [status["kind"] for status in SEEN] == [kind for kind, _, _ in told]
    [switch] = SWITCHES
    assert (switch.from_model, switch.to_model, switch.code) == ("acme/one", "bolt/two", "overloaded")
    metadata = (await spare_room.transcript())[-1]["metadata"]
    assert metadata["think"]["models"] == ["bolt/two"]
    assert metadata["think"]["switches"] == turn.model_report["switches"]


async def test_an_answer_of_one_model_says_nothing_of_it(spare_room: Room, providers: Providers) -> None:
    providers.script("say: Hi.", "say: Never.")
    turn = await spare_room.say("task")
    assert (turn.model_report, (await spare_room.transcript())[-1].get("metadata")) == (None, None)


@pytest.mark.parametrize("dies", ["failover:0", "model:0", "model:1"])
async def test_recovery_does_not_go_back_to_the_model_that_failed(
    spare_room: Room, providers: Providers, dies: str
) -> None:
    providers.script(f"say: {TEXT}\nerror in stream after 4 code invalid_api_key times 9", f"say: {TEXT}")
    with crash_after(dies):
        turn = await spare_room.say("task")
    assert (status_of(turn), await answer(spare_room)) == ("completed", TEXT)
    assert providers.asked[0] == 1
    resting_models.clear()
    assert [switch["code"] for switch in turn.model_report["switches"]] == ["model_auth"]


async def test_all_dead_is_one_error_that_names_what_was_tried(spare_room: Room, providers: Providers) -> None:
    providers.script("error 503", "error 401")
    turn = await spare_room.say("task")
    assert (status_of(turn), turn.error_code) == ("error", "models_exhausted")
    expected = "None of the models could answer: acme/one (overloaded), bolt/two (model_auth)."
    assert turn.error_text == expected


async def test_a_model_that_failed_a_moment_ago_is_not_asked_first(spare_room: Room, providers: Providers) -> None:
    providers.script("error 503 times 1\nsay: From one.", "say: From two.")
    await spare_room.say("task")
    turn = await spare_room.say("another task")
    assert (providers.asked, turn.model_report["switches"][0]["code"]) == ((1, 2), "resting")
    resting_models.clear()
    providers.script("say: From one.", "say: From two.")
    await spare_room.say("a third task")
    assert await answer(spare_room) == "From one."


async def test_a_resting_model_is_asked_where_the_others_fail(spare_room: Room, providers: Providers) -> None:
    providers.script("error 503 times 1\nsay: From one.", "say: From two.")
    await spare_room.say("task")
    providers.script("say: From one.", "error 503")
    await spare_room.say("another task")
    assert await answer(spare_room) == "From one."


async def test_a_model_that_is_not_set_up_gives_way(spare_room: Room, providers: Providers) -> None:
    LIST["models"] = ["nowhere/none", "bolt/two"]
    providers.script("say: Never.", "say: From two.")
    turn = await spare_room.say("task")
    assert await answer(spare_room) == "From two."
    assert turn.model_report["switches"][0]["code"] == "model_not_configured"


async def test_the_choice_of_people_goes_first_and_the_list_stands_behind_it(
    spare_room: Room, providers: Providers, settings: Any
) -> None:
    settings.THINK_MODELS = ["bolt/two", "acme/one"]
    await spare_room.handle.choose_model(ChosenModel(model="bolt/two", temperature=0.5))
    providers.script("say: From one.", "error 503")
    turn = await spare_room.say("task")
    assert await answer(spare_room) == "From one."
    assert turn.model_report["switches"][0]["from"] == "bolt/two"
    assert providers.first.requests()[0]["temperature"] == 0.5


async def test_the_sites_own_model_may_be_a_list(spare_room: Room, providers: Providers, settings: Any) -> None:
    settings.THINK_MODEL = "acme/one, bolt/two"
    LIST["models"] = "default"
    providers.script("error 503", "say: From two.")
    await spare_room.say("task")
    assert await answer(spare_room) == "From two."


async def test_a_request_that_is_too_long_goes_to_a_larger_model(
    spare_room: Room, providers: Providers, settings: Any
) -> None:
    settings.THINK_AUTO_COMPACTION = False
    settings.THINK_MODEL_LIMITS = {"acme/one": {"context": 8_192}, "bolt/two": {"context": 100_000}}
    providers.script("context overflow", "say: From two.")
    turn = await spare_room.say("task")
    assert (status_of(turn), await answer(spare_room)) == ("completed", "From two.")
    settings.THINK_MODEL_LIMITS = {"acme/one": {"context": 8_192}, "bolt/two": {"context": 8_192}}
    turn = await spare_room.say("another task")
    assert turn.error_code == "context_overflow"
