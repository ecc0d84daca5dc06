"""What the message lists of clients cannot do."""

from typing import cast

from chat.turns.admission.intake import ClientArray
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.messages import selectors
from thinkproject.kernel.aio import db

from .conftest import MakeRoom


def said(message_id: str, text: str) -> Message:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": text}]}


async def test_two_new_answers_are_siblings(make_room: MakeRoom) -> None:
    room = make_room()
    await room.say(ClientArray(messages=[said("u1", "say: before")]))
    turn = await room.say(ClientArray(messages=[said("u2", "say: again and again")]))
    before = await room.transcript()
    for _ in range(2):
        shown = await room.transcript()
        await room.say(ClientArray(messages=shown[:-1], is_regenerate=True))
    now = await room.transcript()
    assert now[:3] == before[:3]  # what came earlier is untouched, and the path is as long as it was
    assert len(now) == 4
    answers = await db(selectors.branches, turn.session_id, "u2")
    assert len(answers) == 3
    assert [answer.role for answer in answers] == ["assistant"] * 3
    assert now[3]["id"] == answers[-1].id
    assert before[3]["id"] == answers[0].id


async def test_stale_client_list(make_room: MakeRoom) -> None:
    """A client that missed the result posts the call as unfinished, under an id of its own."""
    room = make_room()
    await room.say(ClientArray(messages=[said("u1", 'call tool add {"a": 2, "b": 3}\nsay: {result}')]))
    stored = await room.transcript()
    call = next(part for part in stored[1]["parts"] if "toolCallId" in part)
    stale = cast("Part", {key: value for key, value in call.items() if key not in {"output", "preliminary"}})
    theirs: Message = {"id": "the-clients-own", "role": "assistant", "parts": [{**stale, "state": "input-available"}]}
    await room.say(ClientArray(messages=[stored[0], theirs, said("u2", "say: next")]))
    now = await room.transcript()
    assert [message["role"] for message in now] == ["user", "assistant", "user", "assistant"]
    assert now[1] == stored[1]
    assert next(part for part in now[1]["parts"] if "toolCallId" in part)["output"] == 5
    assert "the-clients-own" not in {message["id"] for message in now}
    session_id = (await room.turn((await room.admit("say: x")).turn.pk)).session_id
    assert await db(selectors.get_message, session_id, "the-clients-own") is None
