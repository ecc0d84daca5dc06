"""A turn asks its model for the same, byte for byte, whether its history stayed in the worker or is read again."""

import random
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from chat.core.model.language_model import AssistantMessage, ModelEvent, ModelRequest, ToolCallContent
from chat.instances.rows import ensure_instance
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.endpoint import Endpoint
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.reads.provider_requests import provider_requests
from chat.think import StepRecord
from chat.turns.admission.intake import ClientArray
from chat.turns.state.sent_requests import sent_before
from sessions_app.compactions.services import add_compaction, compactions, edit_compaction, undo_compaction
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import SessionError
from sessions_app.messages import selectors, services
from sessions_app.messages.kept_paths import KeptPaths
from sessions_app.testing import text_message
from tests.db.chat.turns.agents.everyday import MODELS, Plain
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

from .conftest import Room, status_of
from .statement_kinds import kinds

pytestmark = pytest.mark.django_db(transaction=True)

ADAPTER = ChatCompletionsModel(Endpoint(provider="scripted", base_url="http://127.0.0.1:9/v1", api_key="k"), "m")


class TwiceAsked(ScriptedModel):
    """Breaks when a turn asks it first, so that another attempt, which reads the history again, asks once more."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[str] = []
        self.pairs = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Break, then answer."""
        self.bodies.append(dump(ADAPTER.describe(request)))
        if len(self.bodies) % 2:
            raise RuntimeError("the process is not well")
        async for event in super().stream(request):
            yield event


class Described(ScriptedModel):
    """Notes what a provider would be sent, and has that recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[str] = []

    def describe(self, request: ModelRequest) -> JSONObject:
        """The body of a provider."""
        body = ADAPTER.describe(request)
        self.bodies.append(dump(body))
        return body


class Walk:
    """A conversation in which anything happens between turns."""

    def __init__(self, room: Room, session_id: str, seed: int) -> None:
        self.room, self.session_id = room, session_id
        self.random = random.Random(seed)

    def path(self) -> list[str]:
        return [message.id for message in selectors.path_page(self.session_id, limit=500).messages]

    def some(self) -> str:
        return self.random.choice(self.path())

    def edit(self) -> None:
        text = f"edited {self.random.random()}"
        parts = text_message("user", text)["parts"]
        services.update_message(self.session_id, self.some(), lambda old: {**old, "parts": parts})

    def branch(self) -> None:
        services.end_path_at(self.session_id, self.some())

    def show(self) -> None:
        services.select_leaf(self.session_id, self.some())

    def delete(self) -> None:
        services.delete_message(self.session_id, self.some())

    def add(self) -> None:
        """Another process adds an exchange."""
        for role in ("user", "assistant"):
            services.append_messages(self.session_id, [text_message(role, f"more {self.random.random()}")])

    def summarise(self) -> None:
        path = self.path()
        last = self.random.randrange(len(path))
        first = path[self.random.randrange(last + 1)]
        add_compaction(self.session_id, first_id=first, last_id=path[last], summary=f"so far {self.random.random()}")

    def reword(self) -> None:
        for made in compactions(self.session_id):
            edit_compaction(made.id, f"{made.summary}, that is")

    def undo(self) -> None:
        for made in compactions(self.session_id)[-1:]:
            undo_compaction(made.id)

    def archive(self) -> None:
        services.archive_beyond(self.session_id, 6)

    def clear(self) -> None:
        if self.random.random() < 0.3:
            services.clear_session(self.session_id)

    def do_something(self) -> None:
        steps: list[Callable[[], Any]] = [
            *(self.edit, self.branch, self.show, self.delete, self.add, self.summarise, self.reword, self.undo),
            *(self.archive, self.clear, self.path, self.path),
        ]
        step = self.random.choice(steps)
        try:
            if self.path():
                step()
        except SessionError:
            return


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happens_between_turns_a_model_gets_what_the_rows_say(
    make_room: Callable[..., Room], seed: int
) -> None:
    room, model = make_room(), TwiceAsked()
    MODELS["current"] = model
    session_id = str((await db(ensure_instance, room.key)).session_id)
    walk = Walk(room, session_id, seed)
    for number in range(14):
        turn = await room.say(f"say: {number} of {seed}")
        assert status_of(turn) == "completed"
        await db(walk.do_something)
    assert len(model.bodies) == 28
    assert model.bodies[0::2] == model.bodies[1::2]
    assert len(set(model.bodies)) == 14


async def test_the_second_turn_reads_no_message_that_the_first_one_had(
    make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch
) -> None:
    room = make_room()
    await room.say("say: one")
    read: list[str] = []
    whole = selectors.read_rows

    def noting(found: Any) -> Any:
        messages, sizes = whole(found)
        read.extend(message.parts[0]["text"] for message in messages if message.parts[0]["type"] == "text")
        return messages, sizes

    monkeypatch.setattr(selectors, "read_rows", noting)
    await room.say("say: two")
    await room.say("say: three")
    assert "say: one" not in read[2:]
    assert read.count("say: three") == 1


async def test_what_is_off_costs_no_more_and_asks_for_the_same(
    make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without anything kept a turn is as one in a process that has just started."""
    room = make_room()
    await room.say("say: one")
    monkeypatch.setattr(KeptPaths, "_find", lambda _self, _session_id: None)
    message: Any = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "say: two"}]}
    with statements() as found:
        await room.say(ClientArray(messages=[message]))
    assert kinds(found).count("SELECT message") == 1
    assert [text for _, text in await room.texts()] == ["say: one", "one", "say: two", "two"]


async def test_outputs_that_were_pruned_meanwhile_are_not_sent(make_room: Callable[..., Room]) -> None:
    room, model = make_room(), TwiceAsked()
    MODELS["current"] = model
    session_id = str((await db(ensure_instance, room.key)).session_id)
    call: Any = {
        "type": "tool-look",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {},
        "output": "a long output",
    }
    answered: Any = {"id": "a0", "role": "assistant", "parts": [call]}
    await db(services.append_messages, session_id, [text_message("user", "look", "u0"), answered])
    await room.say("say: one")
    await room.say("say: two")
    assert "a long output" in model.bodies[-1]
    await db(services.prune_outputs, session_id, {"a0": ["c1"]})
    await room.say("say: three")
    assert "a long output" not in model.bodies[-1]
    assert model.bodies[-1] == model.bodies[-2]
    assert await db(lambda: selectors.model_history(session_id, leaf=Leaf.ACTIVE)[1].pruned_calls) == ("c1",)


async def test_what_code_changes_in_its_hands_is_as_it_was_in_the_next_turn(
    make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spoiler(TwiceAsked):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            try:
                async for event in super().stream(request):
                    yield event
            finally:
                calls = [
                    item for each in request.messages if isinstance(each, AssistantMessage) for item in each.content
                ]
                for call in calls:
                    if isinstance(call, ToolCallContent):
                        call.input["path"]["spoiled"] = True

    def spoil(_self: Any, messages: list[Any]) -> None:
        for message in messages[:-1]:
            message["parts"][0]["text"] = "spoiled"

    room, model = make_room(), Spoiler()
    MODELS["current"] = model
    session_id = str((await db(ensure_instance, room.key)).session_id)
    call: Any = {
        "type": "tool-look",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {"path": {"a": 1}},
        "output": "seen",
    }
    answered: Any = {"id": "a0", "role": "assistant", "parts": [call]}
    await db(services.append_messages, session_id, [text_message("user", "look", "u0"), answered])
    await room.say("say: one")
    await room.say("say: two")
    assert "spoiled" not in model.bodies[-1]
    assert model.bodies[-1] == model.bodies[-2]
    monkeypatch.setattr(Plain, "assemble_context", spoil)
    await room.say("say: three")
    assert "spoiled" in model.bodies[-1]
    monkeypatch.undo()
    await room.say("say: four")
    assert "look" in model.bodies[-1]
    assert "spoiled" not in model.bodies[-1]
    assert model.bodies[-1] == model.bodies[-2]


async def test_what_a_hook_changes_in_a_request_that_was_sent_is_as_it_was_in_the_next_turn(
    make_room: Callable[..., Room], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiled: list[Any] = []

    def spoil(_self: Any, record: StepRecord) -> None:
        for message in record.request["messages"]:
            spoiled.append(message["content"])
            message["content"] = "spoiled"

    monkeypatch.setattr(Plain, "on_step_finish", spoil)
    room, model = make_room(), Described()
    MODELS["current"] = model
    for number in range(4):
        await room.say(f"say: {number}")
    assert "spoiled" not in spoiled
    assert "say: 3" in spoiled[-1]
    assert not any("spoiled" in body for body in model.bodies)
    turn = await db(lambda: Turn.objects.order_by("-position")[0])
    records = [(step.step_key, step.value) for step in await db(lambda: list(turn.fiber.steps.order_by("pk")))]
    (asked,) = provider_requests(records, await db(sent_before, turn.session_id, turn.position, records))
    assert asked.is_exact
    assert dump(asked.body["messages"]) == dump(load(model.bodies[-1])["messages"])
