"""The beginning of a conversation's requests stays as it was sent, so that a provider's cache serves it."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from chat.instance.context import open_session_context
from chat.think import SessionSetup, StoredSkills, Think, Tool, TurnConfig, TurnContext, tool
from sessions_app.context.history import ContextActor
from sessions_app.core.context.prompt_head import CHANGED_TEXT
from sessions_app.models import Message, Session
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump

from .conftest import MakeRoom, Room, status_of


@tool
def look(page: int) -> str:
    """Look at a page."""
    return f"page {page}: " + "word " * 400


class Looker(Think):
    """Looks pages up, whose text is longer than old outputs are."""

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [look]


class ReadTimeLooker(Looker):
    """Cuts in every turn."""

    context_policy = "read-time"


async def look_up(room: Room, pages: Sequence[int]) -> None:
    for page in pages:
        assert status_of(await room.say(f'call tool look {{"page": {page}}}\nsay: ok')) == "completed"


def is_continued(before: JSONObject, later: JSONObject) -> bool:
    """Whether a request begins with all of another one."""
    count = len(before["messages"])
    return later["messages"][:count] == before["messages"] and later.get("tools") == before.get("tools")


def longest_outputs(request: JSONObject) -> list[int]:
    return [len(message["content"]) for message in request["messages"] if message["role"] == "tool"]


async def test_each_request_begins_with_the_one_before(make_room: MakeRoom) -> None:
    room = make_room("looker")
    await look_up(room, range(6))
    requests = room.model.requests
    assert len(requests) == 12
    assert all(is_continued(one, next_one) for one, next_one in pairwise(requests))


async def test_the_rule_of_each_turn_is_there_by_its_name(make_room: MakeRoom) -> None:
    room = make_room("read-time-looker")
    await look_up(room, range(6))
    requests = room.model.requests
    kept = [is_continued(one, next_one) for one, next_one in pairwise(requests)]
    assert not all(kept)
    assert max(longest_outputs(requests[-1])[:2]) <= 500


async def test_after_a_long_pause_old_outputs_are_cut(make_room: MakeRoom) -> None:
    room = make_room("looker")
    await look_up(room, range(4))
    before = room.model.requests[-1]
    assert min(longest_outputs(before)) > 2_000

    def move_back() -> None:
        for message in Message.objects.all():
            Message.objects.filter(pk=message.pk).update(created_at=message.created_at - timedelta(hours=2))

    await db(move_back)
    await look_up(room, [5])
    asked, answered = room.model.requests[-2:]
    assert [length > 500 for length in longest_outputs(asked)] == [False, False, False, True]
    assert is_continued(asked, answered)
    await look_up(room, [6])
    assert is_continued(answered, room.model.requests[-1])  # and the cut stays where it is
    assert all(part["output"].endswith("word ") for part in await outputs(room))


async def outputs(room: Room) -> list[Any]:
    return [part for message in await room.transcript() for part in message["parts"] if "output" in part]


class Rememberer(Looker):
    """Has a memory that is not in a cached prompt, and documents."""

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_memory().with_context("skills", provider=StoredSkills())


class OwnMessages(Rememberer):
    """Sends messages of its own."""

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(messages=context.messages)


def head_of(request: JSONObject) -> JSONObject:
    """What stands before the conversation: the instructions and the tools."""
    return {
        "system": [m for m in request["messages"] if m["role"] in {"system", "developer"}],
        "tools": request["tools"],
    }


def remember(text: str) -> str:
    return f'call tool set_context {{"label": "memory", "content": "{text}", "action": "append"}}\nsay: ok'


async def test_what_the_model_writes_leaves_instructions_and_tools_as_they_were(make_room: MakeRoom) -> None:
    room = make_room("rememberer")
    await room.say("say: hi")
    for text in ("Likes tea.", "Lives in Berlin."):
        await room.say(remember(text))
    await room.say("say: bye")
    first, *_, last = room.model.requests
    assert all(dump(head_of(request)) == dump(head_of(first)) for request in room.model.requests)
    assert "[at most 1000 tokens]" in dump(head_of(first))
    noted = dump(last["messages"][-1])
    assert last["messages"][-1]["role"] == "user"
    assert all(text in noted for text in (CHANGED_TEXT[:40], "Likes tea.", "Lives in Berlin.", "say: bye"))
    assert dump(last).count("Blocks of your context have changed") == 1  # at the end alone


async def test_loaded_documents_change_no_tool(make_room: MakeRoom) -> None:
    room = make_room("rememberer")
    await room.handle.context.set_entry("skills", "# Tea\nPour.", key="tea")
    await room.say('call tool load_context {"label": "skills", "key": "tea"}\nsay: ok')
    await room.say('call tool unload_context {"label": "skills", "key": "tea"}\nsay: ok')
    await room.say("say: bye")
    assert len({dump(head_of(request)) for request in room.model.requests}) == 1


async def test_what_code_writes_is_read_in_the_next_turn_and_a_persons_change_in_the_instructions(
    make_room: MakeRoom,
) -> None:
    room = make_room("rememberer")
    await room.say("say: hi")
    await room.handle.context.append("memory", "From code.")
    await room.say("say: hi")
    assert "From code." in dump(room.model.requests[-1]["messages"][-1])
    assert "From code." not in dump(head_of(room.model.requests[-1]))
    session_id = await db(lambda: Session.objects.get().pk)
    context = await open_session_context(room.key, session_id)
    await context.replace("memory", "From a person.", by=ContextActor(via="api"))
    await room.say("say: hi")
    assert "From a person." in dump(head_of(room.model.requests[-1]))
    assert "Blocks of your context" not in dump(room.model.requests[-1])


async def test_an_added_block_is_rendered_anew(make_room: MakeRoom) -> None:
    room = make_room("rememberer")
    await room.say("say: hi")
    await room.handle.context.add("scratch", description="Notes")
    await room.say("say: hi")
    assert "SCRATCH (Notes)" in dump(head_of(room.model.requests[-1]))


async def test_messages_of_a_hook_have_the_note_once(make_room: MakeRoom) -> None:
    room = make_room("own-messages")
    await room.say("say: hi")
    await room.handle.context.append("memory", "From code.")
    await room.say("say: hi")
    assert dump(room.model.requests[-1]).count("From code.") == 1
