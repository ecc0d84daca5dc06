"""What people are shown of the next call is what the next call is; looking changes nothing (U2.38, UI panel)."""

from functools import partial
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from chat.agent.base import InstanceKey
from chat.errors import AgentNotFound
from chat.instance.instance import make_agent
from chat.models import AgentInstance
from chat.reads.preview import Preview, preview
from chat.think import SessionSetup, StoredSkills, TurnConfig
from sessions_app.compactions.services import add_compaction
from sessions_app.errors import SessionNotFound
from sessions_app.messages import selectors
from sessions_app.models import Session
from tests.db.chat.access_rows import all_rows
from tests.db.chat.turns.agents.everyday import SEEN
from tests.db.chat.turns.agents.hook_agents import HOOKS, no_hooks
from tests.sent_notes import without_notes
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

__all__ = ["no_hooks"]  # a fixture


async def session_of(room: Room) -> str:
    return str(await db(lambda: AgentInstance.objects.values_list("session_id", flat=True).get(name=room.key.name)))


async def look(room: Room) -> Preview:
    return await preview(room.key, await session_of(room), make_agent)


def declare(session: SessionSetup) -> SessionSetup:
    return (
        session.with_context("soul", provider="You are kind.")
        .with_context("notes", description="What matters.", max_tokens=50)
        .with_context("guides", provider=StoredSkills())
        .with_cached_prompt()
    )


def sent_text(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


async def test_the_preview_is_the_next_call(make_room: MakeRoom) -> None:
    HOOKS["configure_session"] = declare
    room = make_room("flexible")
    await room.say("say: one")
    await room.handle.context.append("notes", "Likes tea.")
    await room.say('call tool add {"a": 1, "b": 2}\nsay: two {result}')
    before = await look(room)
    await room.say("say: three")
    request = room.model.requests[-1]
    *history, _asked = [message for message in request["messages"] if message["role"] != "system"]
    [system] = [message["content"] for message in request["messages"] if message["role"] == "system"]
    assert before.system.text == system
    assert [tool.name for tool in before.tools] == [tool["name"] for tool in request["tools"]]
    assert before.tail.first_text == without_notes(sent_text(history[0])) == "say: one"
    assert before.tail.message_count == 4
    assert before.tail.left_out == before.tail.queued_count == 0
    assert before.summaries == []
    parts = [before.system.tokens, before.tail.tokens, *(tool.tokens for tool in before.tools)]
    assert all(parts)
    assert before.total_tokens == sum(parts)
    assert [(block.label, block.content) for block in before.blocks][:2] == [
        ("soul", "You are kind."),
        ("notes", "Likes tea."),
    ]


async def test_looking_writes_nothing_and_asks_no_hook_of_a_turn(make_room: MakeRoom) -> None:
    HOOKS["configure_session"] = declare
    HOOKS["before_turn"] = lambda _context: TurnConfig()
    room = make_room("flexible")
    await room.say("say: hello")
    await db(lambda: Session.objects.update(system_prompt=None))
    SEEN.clear()
    rows, calls = await db(all_rows), len(room.model.requests)
    shown = await look(room)
    assert await db(all_rows) == rows
    assert len(room.model.requests) == calls
    assert "before_turn" not in [name for name, *_ in SEEN]
    assert not shown.system.is_kept
    await room.say("say: again")
    assert (await look(room)).system.is_kept


async def test_a_summary_stands_for_what_it_covers(make_room: MakeRoom) -> None:
    room = make_room()
    for number in range(4):
        await room.say(f"say: answer {number}")
    ids = [message["id"] for message in await room.transcript()]
    whole = await look(room)
    made = await db(lambda: add_compaction(_only_session(), first_id=ids[2], last_id=ids[5], summary="They talked."))
    shown = await look(room)
    [summary] = shown.summaries
    assert (summary.first_id, summary.last_id, summary.message_count) == (made.first_id, made.last_id, 4)
    assert summary.text == "They talked."
    assert shown.tail.message_count == 4
    assert shown.tail.left_out == 0
    assert shown.tail.tokens < whole.tail.tokens
    assert shown.total_tokens == shown.system.tokens + summary.tokens + shown.tail.tokens + sum(
        tool.tokens for tool in shown.tools
    )


def _only_session() -> str:
    return str(Session.objects.values_list("id", flat=True).get())


async def test_what_is_out_of_reach_is_reported(make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    room = make_room()
    for number in range(4):
        await room.say(f"say: answer {number}")
    monkeypatch.setattr(selectors, "model_history", partial(selectors.model_history, max_messages=4))
    shown = await look(room)
    assert (shown.tail.message_count, shown.tail.left_out) == (4, 4)
    assert shown.tail.first_text == "say: answer 2"


async def test_the_model_is_named_with_what_it_can_take(make_room: MakeRoom, settings: Any) -> None:
    room = make_room()
    await room.say("say: hello")
    unknown = await look(room)
    assert (unknown.context_tokens, unknown.usable_tokens) == (0, 0)
    settings.THINK_MODEL_LIMITS = {room.model.name: {"context": 10_000, "output": 1_000}}
    known = await look(room)
    assert known.model == room.model.name
    assert known.context_tokens == 10_000
    assert 0 < known.usable_tokens < 9_000
    assert known.is_automatic
    assert known.policy == "cache-aware"


async def test_a_counter_of_the_developers_counts(make_room: MakeRoom) -> None:
    HOOKS["configure_session"] = lambda session: declare(session).compact_after(1_000, token_counter=lambda _text: 7)
    room = make_room("flexible")
    await room.say("say: hello")
    assert (await look(room)).system.tokens == 7


async def test_what_is_not_there_has_no_next_call(make_room: MakeRoom) -> None:
    room = make_room()
    with pytest.raises(SessionNotFound):
        await preview(room.key, "ses_none", make_agent)
    await room.say("say: hello")
    await db(lambda: AgentInstance.objects.update(agent="gone-agent"))
    gone = InstanceKey(owner_id=room.key.owner_id, agent="gone-agent", name="room")
    with pytest.raises(AgentNotFound):
        await preview(gone, await session_of(room), make_agent)


async def test_a_long_conversation_costs_as_many_statements_as_a_short_one(
    make_room: MakeRoom, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.THINK_TURNS_PER_MINUTE = 0
    found: list[str] = []
    execute = CursorWrapper.execute

    def noted(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        found.append(sql)
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", noted)
    room = make_room()
    counts = []
    for _ in range(2):
        for number in range(4):
            await room.say(f"say: answer {number}")
        found.clear()
        await look(room)
        counts.append(len(found))
    assert 0 < counts[0] == counts[1] <= 15
