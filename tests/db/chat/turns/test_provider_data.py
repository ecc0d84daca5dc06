"""What a provider says beside the words goes back to its model, with the same part, and to no other one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from chat.conversations.fork import fork_instance
from chat.instances.rows import find_instance
from chat.llm.adapters.transport import close_clients
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.think import ModelChoice, Think, Tool, tool
from sessions_app.search.query import search_everything
from sessions_app.transfer.export import export_lines, export_markdown
from sessions_app.transfer.import_session import import_session
from tests.providers.corpus import FOLDER
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump

from .conftest import MakeRoom, Room, status_of

CHOICE: dict[str, ModelChoice] = {}
GEMINI = "play google/signed-call\nplay google/signed-second-call\nsay: Both found."
DEEPSEEK = "play deepseek/reasoning-then-call\nplay deepseek/reasoning-then-second-call\nsay: Both found."


@tool
def lookup(q: str) -> str:
    """Look something up."""
    return f"found {q}"


class RecordedLibrarian(Think):
    """Looks things up with the chosen model."""

    workspace_tools = False

    def get_model(self) -> ModelChoice:
        return CHOICE["model"]

    def get_tools(self) -> list[Tool]:
        return [lookup]


@pytest.fixture
async def recorded_provider(settings: Any) -> AsyncIterator[ScriptedServer]:
    with ScriptedServer(ServerOptions(recordings=FOLDER)) as running:
        address = {"base_url": running.base_url}
        settings.THINK_PROVIDERS = dict.fromkeys(("google", "deepseek", "moonshot", "plain"), address)
        yield running
    await close_clients()


@pytest.fixture
def librarian_room(make_room: MakeRoom, recorded_provider: ScriptedServer) -> Room:
    return make_room("recorded-librarian")


def answers(body: JSONObject) -> list[JSONObject]:
    return [message for message in body["messages"] if message["role"] == "assistant"]


def signatures(body: JSONObject) -> list[Any]:
    calls = [call for message in answers(body) for call in message.get("tool_calls", ())]
    return [call.get("extra_content", {}).get("google", {}).get("thought_signature") for call in calls]


def reasonings(body: JSONObject) -> list[Any]:
    return [message.get("reasoning_content") for message in answers(body) if "tool_calls" in message]


async def test_each_call_has_its_signature_in_all_later_requests(
    librarian_room: Room, recorded_provider: ScriptedServer
) -> None:
    CHOICE["model"] = "google/gemini-3-pro-preview"
    assert status_of(await librarian_room.say(GEMINI)) == "completed"
    assert status_of(await librarian_room.say("say: Welcome.")) == "completed"
    both = ["U0lH", "U0lHMw=="]
    assert [signatures(body) for body in recorded_provider.requests()] == [[], both[:1], both, both]


async def test_reasoning_goes_back_with_calls_and_to_no_other_model(
    librarian_room: Room, recorded_provider: ScriptedServer
) -> None:
    both = ["I need the list.", "One more."]
    CHOICE["model"] = "deepseek/deepseek-v4-pro"
    await librarian_room.say(DEEPSEEK)
    CHOICE["model"] = "plain/model"
    assert status_of(await librarian_room.say('call tool lookup {"q": "z"}\nsay: Between.')) == "completed"
    assert "reasoning_content" not in dump(recorded_provider.requests()[-1]["messages"])
    CHOICE["model"] = "deepseek/deepseek-v4-pro"
    assert status_of(await librarian_room.say("say: Welcome.")) == "completed"
    assert [reasonings(body) for body in recorded_provider.requests()] == [
        *([], both[:1], both),
        *([None, None], [None, None, None]),
        [*both, " "],  # a call of another model has none, and this one wants some with each
    ]


async def test_no_data_goes_to_the_model_that_takes_over(
    librarian_room: Room, recorded_provider: ScriptedServer
) -> None:
    CHOICE["model"] = ["google/gemini-3-pro-preview", "plain/model"]
    turn = await librarian_room.say("play google/signed-call\nsay: Found.\nerror 401 times 1")
    assert status_of(turn) == "completed"
    sent = {body["model"]: dump(answers(body)) for body in recorded_provider.requests()}
    assert "U0lH" in sent["gemini-3-pro-preview"]
    assert "U0lH" not in sent["model"]


async def test_a_fork_and_an_import_have_the_data(librarian_room: Room, recorded_provider: ScriptedServer) -> None:
    CHOICE["model"] = "google/gemini-3-pro-preview"
    await librarian_room.say(GEMINI)
    instance = await db(find_instance, librarian_room.key)
    assert instance is not None
    assert instance.session_id is not None
    forked = await db(fork_instance, instance, (await librarian_room.transcript())[-1]["id"])
    lines = await db(lambda: list(export_lines(str(instance.session_id))))
    made = await db(lambda: import_session(lines, owner_id=librarian_room.key.owner_id, scope="elsewhere"))
    imported = await db(lambda: list(export_lines(made.session_id)))
    copied = await db(lambda: list(export_lines(str(forked.session_id))))
    for found in (imported, copied):
        assert sum(line.count("U0lHMw==") for line in found) == 1
        assert sum(line.count('"U0lH"') for line in found) == 1


async def test_people_never_see_the_data(librarian_room: Room, recorded_provider: ScriptedServer) -> None:
    CHOICE["model"] = "google/gemini-3-pro-preview"
    await librarian_room.say(GEMINI)
    instance = await db(find_instance, librarian_room.key)
    assert instance is not None
    assert "U0lH" not in "".join(await db(lambda: list(export_markdown(str(instance.session_id)))))
    assert (await db(search_everything, "found")).hits
    assert not (await db(search_everything, "U0lH")).hits
