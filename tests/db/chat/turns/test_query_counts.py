"""What an answer asks of the database is a small fixed number, whatever was said before."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from .conftest import Room

MOST_OF_A_TURN = 85

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every statement of every connection of this process, those of the bridge's threads included."""
    found: list[str] = []
    execute, executemany = CursorWrapper.execute, CursorWrapper.executemany

    def noted(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        found.append(sql)
        return execute(self, sql, params)

    def noted_many(self: CursorWrapper, sql: str, params: Any) -> Any:
        found.append(sql)
        return executemany(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", noted)
    monkeypatch.setattr(CursorWrapper, "executemany", noted_many)
    return found


async def statements_of_a_turn(room: Room, text: str, said: list[str]) -> int:
    """How many statements a turn takes from its admission to its end."""
    before = len(said)
    turn = await room.say(text)
    assert turn.finished_at is not None
    return len([sql for sql in said[before:] if not sql.startswith(("SAVEPOINT", "RELEASE"))])


async def test_a_turn_asks_a_small_fixed_number_of_things(
    make_room: Callable[..., Room], settings: Any, said: list[str]
) -> None:
    settings.THINK_TURNS_PER_MINUTE = 0
    room = make_room()
    await room.say("say: warm up")
    first = await statements_of_a_turn(room, "say: early", said)
    for number in range(6):
        await room.say(f"say: more {number}")
    late = await statements_of_a_turn(room, "say: late", said)
    assert 20 < late <= MOST_OF_A_TURN
    assert abs(late - first) <= 3  # the runner's own looks for further work
