"""Which model answers a turn, with which parameters: by the requests that a provider received."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.instance.instance import Instance, make_agent
from chat.llm.adapters.transport import close_clients
from chat.llm.scripted import ScriptedServer
from chat.models import AgentInstance
from chat.reads.preview import preview
from chat.think import ChosenModel, ModelSettings, StepConfig, StepContext, Think, Tool, TurnConfig, TurnContext
from fibers.testing import crash_after, run_until_idle
from tests.db.chat.turns.agents.everyday import add
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

from .conftest import MakeRoom, Room

ANSWERS: dict[str, Any] = {}
"""What the agent's getters and hooks return."""

READ: list[ChosenModel] = []
PARAMETERS = ("temperature", "top_p", "max_tokens", "reasoning_effort")


class Chooser(Think):
    """Leaves the choice to people, unless a test says otherwise."""

    def get_model(self) -> Any:
        READ.append(self.model_choice)
        return ANSWERS.get("get_model", "default")

    def get_tools(self) -> list[Tool]:
        return [add]

    async def before_turn(self, context: TurnContext) -> TurnConfig | None:
        READ.append(self.model_choice)
        if "body" in context.body:
            return TurnConfig(model=context.body["body"])
        found: TurnConfig | None = ANSWERS.get("before_turn")
        return found

    def before_step(self, context: StepContext) -> StepConfig | None:
        found: StepConfig | None = ANSWERS.get("before_step") if context.step_number else None
        return found


@pytest.fixture(autouse=True)
async def provider(settings: Any) -> AsyncIterator[ScriptedServer]:
    ANSWERS.clear()
    READ.clear()
    with ScriptedServer() as server:
        settings.THINK_PROVIDERS = {"acme": {"base_url": server.base_url}}
        settings.THINK_MODEL = "acme/site"
        settings.THINK_MODELS = ["acme/chosen", "acme/other"]
        settings.THINK_MODEL_FACTS = {"acme/": {"reasoning_efforts": ["low", "high"]}}
        yield server
        await close_clients()


@pytest.fixture
def choosing_room(make_room: MakeRoom) -> Room:
    return make_room("chooser")


def asked(server: ScriptedServer) -> list[tuple[str, JSONObject]]:
    """The model and the parameters of each request."""
    return [(body["model"], {name: body[name] for name in PARAMETERS if name in body}) for body in server.requests()]


def names(server: ScriptedServer) -> list[str]:
    return [name for name, _ in asked(server)]


async def choose(room: Room, **choice: Any) -> None:
    await room.handle.choose_model(ChosenModel(**choice))


# --- precedence: each beats the next --------------------


async def test_a_hook_goes_before_the_choice(choosing_room: Room, provider: ScriptedServer) -> None:
    await choose(choosing_room, model="acme/chosen", temperature=0.5)
    ANSWERS["before_turn"] = TurnConfig(model="acme/hook")
    turn = await choosing_room.say("say: hi")
    assert asked(provider) == [("hook", {})]  # the parameters were chosen for another model
    assert turn.model_name == "hook"


async def test_a_request_field_goes_through_the_hook(choosing_room: Room, provider: ScriptedServer) -> None:
    await choose(choosing_room, model="acme/chosen")
    await choosing_room.say("say: hi", body={"model": "acme/other"})  # by itself it decides nothing
    await choosing_room.say("say: hi", body={"body": "acme/other"})
    assert names(provider) == ["chosen", "other"]


async def test_the_choice_goes_before_get_model(choosing_room: Room, provider: ScriptedServer) -> None:
    ANSWERS["get_model"] = "acme/own"
    await choose(choosing_room, model="acme/chosen")
    READ.clear()
    turn = await choosing_room.say("say: hi")
    assert names(provider) == ["chosen"]
    assert {read.model for read in READ} == {"acme/chosen"}
    assert turn.model_name == "chosen"


async def test_get_model_goes_before_the_site(choosing_room: Room, provider: ScriptedServer) -> None:
    await choosing_room.say("say: hi")
    ANSWERS["get_model"] = "acme/own"
    await choosing_room.say("say: hi")
    assert names(provider) == ["site", "own"]


async def test_a_step_may_have_another_model_without_the_parameters(
    choosing_room: Room, provider: ScriptedServer
) -> None:
    await choose(choosing_room, model="acme/chosen", temperature=0.5)
    ANSWERS["before_step"] = StepConfig(model="acme/step")
    await choosing_room.say('call tool add {"a": 2, "b": 3}\nsay: {result}')
    assert asked(provider) == [("chosen", {"temperature": 0.5}), ("step", {})]


# --- parameters --------------------


async def test_parameters_reach_the_provider(choosing_room: Room, provider: ScriptedServer) -> None:
    await choose(
        choosing_room, model="acme/chosen", reasoning_effort="high", temperature=0.25, top_p=0.5, max_output_tokens=300
    )
    await choosing_room.say("say: hi")
    sent = {"temperature": 0.25, "top_p": 0.5, "max_tokens": 300, "reasoning_effort": "high"}
    assert asked(provider) == [("chosen", sent)]


async def test_parameters_alone_are_for_the_agents_own_model(choosing_room: Room, provider: ScriptedServer) -> None:
    ANSWERS["get_model"] = "acme/own"
    await choose(choosing_room, reasoning_effort="low")
    READ.clear()
    await choosing_room.say("say: hi")
    assert asked(provider) == [("own", {"reasoning_effort": "low"})]
    assert READ[0] == ChosenModel(reasoning_effort="low")  # in get_model


async def test_settings_of_a_hook_go_before_chosen_ones_field_by_field(
    choosing_room: Room, provider: ScriptedServer
) -> None:
    await choose(choosing_room, model="acme/chosen", temperature=0.25, top_p=0.5)
    ANSWERS["before_turn"] = TurnConfig(settings=ModelSettings(temperature=1.0), stall_timeout_seconds=9)
    await choosing_room.say("say: hi")
    assert asked(provider) == [("chosen", {"temperature": 1.0, "top_p": 0.5})]


# --- when it takes effect --------------------


async def test_a_choice_takes_effect_with_the_next_turn(choosing_room: Room, provider: ScriptedServer) -> None:
    await choosing_room.say("say: hi")
    await choose(choosing_room, model="acme/chosen")
    await choosing_room.say("say: hi")
    await choosing_room.handle.choose_model(None)
    await choosing_room.say("say: hi")
    assert names(provider) == ["site", "chosen", "site"]


async def test_a_running_turn_keeps_its_choice_over_a_crash(choosing_room: Room, provider: ScriptedServer) -> None:
    await choose(choosing_room, model="acme/chosen", temperature=0.5)
    admission = await choosing_room.admit('call tool add {"a": 2, "b": 3}\nsay: {result}')
    with crash_after("model:0"):
        await run_until_idle(skip_delays=True)
        await choose(choosing_room, model="acme/other")
    await run_until_idle(skip_delays=True)
    turn = await choosing_room.turn(admission.turn.pk)
    assert turn.fiber.attempt == 2
    assert set(names(provider)) == {"chosen"}
    assert asked(provider)[-1] == ("chosen", {"temperature": 0.5})
    await choosing_room.say("say: hi")
    assert names(provider)[-1] == "other"


async def test_a_withdrawn_model_leaves_the_turn_to_the_agent(
    choosing_room: Room, provider: ScriptedServer, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await choose(choosing_room, model="acme/chosen", temperature=0.5)
    settings.THINK_MODELS = ["acme/other"]
    with caplog.at_level(logging.WARNING, logger="chat.turns"):
        await choosing_room.say("say: hi")
    assert asked(provider) == [("site", {})]
    assert [record.__dict__["action"] for record in caplog.records] == ["model_choice_not_in_effect"]
    assert await choosing_room.handle.get_model_choice() == ChosenModel(model="acme/chosen", temperature=0.5)
    settings.THINK_MODELS = ["acme/chosen"]
    await choosing_room.say("say: hi")
    assert asked(provider)[-1] == ("chosen", {"temperature": 0.5})


async def test_a_parameter_that_is_not_taken_any_more_is_left_out(
    choosing_room: Room, provider: ScriptedServer, settings: Any
) -> None:
    await choose(choosing_room, model="acme/chosen", reasoning_effort="high", temperature=0.5)
    settings.THINK_MODEL_FACTS = {"acme/": {"reasoning_efforts": ["low"]}}
    await choosing_room.say("say: hi")
    assert asked(provider) == [("chosen", {"temperature": 0.5})]


# --- elsewhere --------------------


async def test_the_preview_is_of_the_chosen_model(choosing_room: Room) -> None:
    await choose(choosing_room, model="acme/chosen")
    row = await db(AgentInstance.objects.get)
    shown = await preview(choosing_room.key, row.session_id or "", make_agent, (), row.model_choice)
    assert shown.model == "acme/chosen"


async def test_code_chooses_by_the_rules_of_people(choosing_room: Room) -> None:
    with pytest.raises(Exception, match=r"acme/stranger is not offered here\."):
        await choose(choosing_room, model="acme/stranger")
    assert await choosing_room.handle.get_model_choice() == ChosenModel()
    assert await db(AgentInstance.objects.count) == 0  # not even the conversation was made
    await choosing_room.handle.choose_model(None)
    assert await db(AgentInstance.objects.count) == 0


async def test_the_agent_itself_reads_and_sets_it(choosing_room: Room) -> None:
    agent = make_agent(choosing_room.key)
    assert isinstance(agent, Chooser)
    await agent.choose_model(ChosenModel(model="acme/other"))
    assert await agent.get_model_choice() == ChosenModel(model="acme/other")
    instance_id, view = await Instance(choosing_room.key).model_choice.view_current()
    row = await db(AgentInstance.objects.get)
    assert (instance_id, view.model) == (row.pk, "acme/other")
