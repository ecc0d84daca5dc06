"""`ThreadChat`: messages that are made equal to a list, and answers of a loop that are stored by their text."""

import asyncio
from typing import Any

import pytest

from chat.core.wire.brief_events import TextPiece
from chat.core.wire.ndjson import LineReader
from chat.llm.scripted import ScriptedModel
from chat.think import AgentLoop, ThreadChat, done, tool
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.errors import MessageInvalid
from sessions_app.messages import selectors
from sessions_app.models import Message
from sessions_app.public.manager import SessionManager
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


@tool
def note(text: str) -> str:
    """Write something down."""
    return f"noted {text}"


async def chat(**options: Any) -> ThreadChat:
    session = await db(lambda: SessionManager(scope="docs").create("A question"))
    return ThreadChat(session, AgentLoop(model=ScriptedModel(), tools=[note, done]), **options)


def said(message_id: str, text: str = "", role: str = "user") -> NewMessage:
    return {"id": message_id, "role": role, "parts": [{"type": "text", "text": text or message_id}]}


async def ids(one: ThreadChat) -> list[str]:
    return [message["id"] for message in await one.messages()]


async def test_the_stored_messages_become_the_list() -> None:
    one = await chat()
    assert await one.persist_messages([said("a"), said("b", role="assistant"), said("c")]) == ["a", "b", "c"]
    await one.persist_messages([said("a"), said("b", role="assistant"), said("c"), said("d")])
    assert await ids(one) == ["a", "b", "c", "d"]
    await one.persist_messages([said("a"), said("c", "changed"), said("d")])  # one in the middle is deleted
    assert [(m["id"], m["content"]) for m in await one.messages()] == [("a", "a"), ("c", "changed"), ("d", "d")]
    assert await db(selectors.get_message, one.session.id, "b") is None


async def test_what_is_missing_at_the_end_is_kept_and_comes_back() -> None:
    one = await chat()
    await one.persist_messages([said("a"), said("b"), said("c")])
    await one.persist_messages([said("a")])
    assert await ids(one) == ["a"]
    await one.persist_messages([said("a"), said("b"), said("x")])
    assert await ids(one) == ["a", "b", "x"]
    assert await db(selectors.get_message, one.session.id, "c") is not None
    await one.persist_messages([])
    assert await one.messages() == []


async def test_what_is_unchanged_is_not_written() -> None:
    one = await chat()
    messages = [said("a"), said("b", role="assistant")]
    await one.persist_messages(messages)
    before = await db(lambda: selectors.shown(one.session.id))
    await one.persist_messages(messages)
    assert await db(lambda: selectors.shown(one.session.id)) == before


@pytest.mark.parametrize(
    "messages",
    [[said("b"), said("a")], [said("a"), said("a")], [said("x"), said("a")], [said("a"), said("x"), said("b")]],
    ids=["another order", "twice", "before", "between"],
)
async def test_a_list_that_is_no_path_changes_nothing(messages: list[NewMessage]) -> None:
    one = await chat()
    await one.persist_messages([said("a"), said("b")])
    with pytest.raises(MessageInvalid):
        await one.persist_messages(messages)
    assert await ids(one) == ["a", "b"]


async def test_a_message_too_large_for_a_row_is_shortened_under_its_id() -> None:
    one = await chat()
    await one.persist_messages([said("a", "x" * 2_000_000)])
    [message] = await one.messages()
    assert message["id"] == "a"
    assert len(message["content"]) < 10_000
    assert await db(Message.objects.filter(session=one.session.id).count) == 1


async def test_the_oldest_beyond_a_number_are_archived() -> None:
    one = await chat(max_messages=2)
    await one.persist_messages([said(name) for name in "abcd"])
    assert await ids(one) == ["c", "d"]


async def test_a_run_stores_text_and_reasoning_alone() -> None:
    one = await chat()
    await one.persist_messages([said("a", 'reason: Hm.\ncall tool note {"text": "x"}\nsay: Noted.')])
    result = await one.run()
    [_, answer] = await one.messages()
    assert (answer["role"], answer["content"], answer["reasoning"]) == ("assistant", "Noted.", "Hm.")
    stored = await db(selectors.get_message, one.session.id, answer["id"])
    assert stored is not None
    assert [part["type"] for part in stored.parts] == ["reasoning", "text"]
    assert [part["type"] for part in result.message["parts"]].count("tool-note") == 1


async def test_a_stream_is_written_in_lines_and_its_summary_stored() -> None:
    one = await chat()
    await one.persist_messages([said("a", 'call tool done {"summary": "All done."}')])
    lines: list[str] = []

    async def write(line: str) -> None:
        lines.append(line)

    await one.stream_into(write)
    assert lines == ['{"t":"tool","n":"done","a":{"summary":"All done."}}\n']
    assert [message["content"] for message in await one.messages()][1:] == ["All done."]
    await one.persist_messages([said("b", "say: Two words.")])
    lines.clear()
    await one.stream_into(write)
    reader = LineReader()
    events = [event for line in lines for event in reader.feed(line)]
    assert "".join(event.delta for event in events if isinstance(event, TextPiece)) == "Two words."


async def test_what_says_nothing_is_not_stored_and_a_step_runs_no_call() -> None:
    one = await chat()
    await one.persist_messages([said("a", 'call tool note {"text": "x"}')])
    assert (await one.run_step()).type == "tool-calls-pending"
    assert await ids(one) == ["a"]
    await one.persist_messages([said("b", "error 400")])
    assert (await one.run()).type == "error"
    assert await ids(one) == ["b"]
    await one.persist_messages([said("c", "say: Yes.")])
    assert (await one.run_step()).text == "Yes."
    assert [message["content"] for message in await one.messages()][1:] == ["Yes."]


async def test_a_reader_that_fails_ends_the_run_and_a_stop_keeps_what_was_said() -> None:
    one = await chat()
    await one.persist_messages([said("a", "stream 200 words")])

    async def fail(_line: str) -> None:
        raise ConnectionError("the reader has gone")

    with pytest.raises(ConnectionError):
        await one.stream_into(fail)
    assert await ids(one) == ["a"]
    signal = asyncio.Event()

    async def stop(_line: str) -> None:
        signal.set()

    await one.stream_into(stop, signal=signal)
    [_, answer] = await one.messages()
    assert 0 < len(answer["content"].split()) < 200
