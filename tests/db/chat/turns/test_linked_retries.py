"""An answer that is asked for again is a turn of its own, linked to the one before; nothing of that one changes."""

import pytest

from chat.models import StreamSegment, Turn
from chat.reads.transcripts import turn_view
from chat.turns.admission.intake import Regenerate
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, status_of

pytestmark = pytest.mark.django_db(transaction=True)


def log_of(turn: Turn) -> list[tuple[int, str]]:
    rows = StreamSegment.objects.filter(stream=turn.pk).order_by("first_offset")
    return [(row.first_offset, str(row.data)) for row in rows]


async def test_a_retry_is_linked_to_what_it_retries(make_room: MakeRoom) -> None:
    room = make_room()
    other = await room.say("say: Something else.")
    failed = await room.say("error 400")
    assert status_of(failed) == "error"
    asked = failed.options["answers"][0]
    before = await db(log_of, failed)
    again = await room.say(Regenerate(message_id=asked))
    assert again.retry_of_id == failed.pk
    assert (await db(turn_view, again)).retry_of == failed.pk
    assert again.assistant_id != failed.assistant_id
    assert await db(log_of, failed) == before
    assert (await db(log_of, again))[0][0] == 0  # a log of its own, from its beginning
    third = await room.say(Regenerate(message_id=asked))
    assert third.retry_of_id == again.pk
    named = await room.say(Regenerate(message_id=other.assistant_id))
    assert named.retry_of_id == other.pk
    assert (await room.say("say: Anew.")).retry_of_id is None
    await db(Turn.objects.filter(pk=again.pk).delete)
    assert (await room.turn(third.pk)).retry_of_id is None
