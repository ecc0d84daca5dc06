"""A database that is away for a moment while a tool runs: no call counts as failed for that, and none is made twice."""

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, ClassVar

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError, connection

from chat.models import Turn
from chat.sub_agents import service as sub_agents
from chat.think import Think, Tool, ToolContext, tool
from fibers.queue import leases
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.coding import Code, code, sandbox_closes
from tests.db.chat.turns.agents.delegating import call, runs
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.aio import db
from thinkproject.kernel.outages import is_outage
from tools_app.core.current_call import current_call
from tools_app.models import Execution

from .conftest import MakeRoom, status_of, text_of

__all__ = ["code", "sandbox_closes"]  # fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.own_sql]

SEND = "const text = await tools.look({}); const sent = await tools.send({to: 'Ann', text}); sent + '!'"


def lose_database() -> None:
    """Let the next statement fail as it does while the server restarts, or while another process writes for long."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pg_backend_pid())")
        return
    with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other, connection.cursor() as cursor:
        other.execute("begin immediate")
        cursor.execute("pragma busy_timeout = 0")
        try:
            cursor.execute("begin immediate")
        finally:
            cursor.execute("pragma busy_timeout = 10000")


class Losing:
    """Loses the database at one step of a running tool: before it, or once it is committed."""

    def __init__(self, number: int, when: str) -> None:
        self.left, self.when = number, when
        self.was_lost = False

    @contextmanager
    def step(self) -> Iterator[None]:
        self.left -= current_call() is not None and not self.was_lost
        is_mine = self.left == 0 and not self.was_lost
        self.was_lost |= is_mine
        if is_mine and self.when == "before":
            lose_database()
        yield
        if is_mine:
            lose_database()

    @contextmanager
    def fenced(self, *args: Any) -> Iterator[None]:
        with self.step(), FENCED(*args):
            yield

    async def db(self, function: Callable[..., Any], *args: Any) -> Any:
        def run() -> Any:
            with self.step():
                return function(*args)

        return await db(run)


FENCED = leases.fenced


async def answered(code: Code) -> Turn:
    turn = await code.run(SEND)
    turn = await code.goes_on(turn)
    if turn.fiber.status == "parked":
        await code.reply("one:2", is_approved=True)
        turn = await code.goes_on(turn)
    return turn


def each(writes: int, *plain: int) -> list[Any]:
    """Every write there is, most of them in the long run only."""
    return [n if n in plain else pytest.param(n, marks=pytest.mark.long) for n in range(1, writes + 1)]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", each(12, 4, 9))
async def test_code_goes_on_where_it_was_whenever_the_database_is_away(
    code: Code, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    losing = Losing(number, when)
    monkeypatch.setattr(leases, "fenced", losing.fenced)
    turn = await answered(code)
    assert losing.was_lost
    assert status_of(turn) == "completed"
    done = await code.done()
    assert set(done) == {"look one:1", "send Ann found one:2"}
    assert len(done) <= 3  # the one whose result could not be written ran again, under its key
    assert [kind for kind, _, _ in await code.events("one:2")] == ["asked", "approved"]
    assert '"value":"found went to Ann!"' in text_of((await code.room.transcript())[-1])
    execution = Execution.objects
    assert await execution.acount() == 1
    assert (await execution.aget()).status == "succeeded"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", each(3, 1, 2))
async def test_a_delegation_is_made_once_whenever_the_database_is_away(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, number: int, when: str
) -> None:
    losing = Losing(number, when)
    monkeypatch.setattr(sub_agents, "db", losing.db)
    room = make_room("chief")
    turn = await room.say(f"{call('errand', 'say: All is well.')}\nsay: It says {{result}}.")
    await run_until_idle(skip_delays=True)
    turn = await room.turn(turn.pk)
    assert losing.was_lost
    assert status_of(turn) == "completed"
    assert '"summary":"All is well."' in text_of((await room.transcript())[-1])
    assert len(await runs()) == 1


class Census(Think):
    """Counts people, when the database is there."""

    away: ClassVar[int] = 0  # so many times more

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        def count() -> int:
            Census.away -= 1
            if Census.away >= 0:
                lose_database()
            return User.objects.count()

        @tool
        def count_people(context: ToolContext) -> int:
            """Count them."""
            COUNTED.append(context.idempotency_key)
            return count()

        @tool(reruns=False)
        def count_once() -> int:
            """Count them, and never twice."""
            COUNTED.append("once")
            return count()

        return [count_people, count_once]


COUNTED: list[str] = []


@pytest.mark.parametrize(
    ("name", "away", "attempts", "said"),
    [
        ("count_people", 1, 2, "It is 1."),
        ("count_people", 3, 4, "It is 1."),
        ("count_people", 99, 4, None),  # retries are bounded: at the end the model sees why
        ("count_once", 1, 1, None),
    ],
)
async def test_a_tool_runs_again_after_an_outage_but_not_for_ever(
    make_room: MakeRoom, name: str, away: int, attempts: int, said: str | None
) -> None:
    COUNTED.clear()
    Census.away = away
    room = make_room("census")
    turn = await room.say(f"call tool {name} {{}}\nsay: It is {{result}}.")
    assert status_of(turn) == "completed"
    assert len(COUNTED) == attempts
    assert len(set(COUNTED)) == 1
    answer = (await room.transcript())[-1]
    [part] = [part for part in answer["parts"] if "toolCallId" in part]
    if said is not None:
        assert text_of(answer) == said
        assert part["state"] == "output-available"
    else:
        assert part["state"] == "output-error"
        assert re.search("locked|terminating connection", part["errorText"])


@pytest.mark.django_db(transaction=True)
def test_only_a_database_that_is_away_is_an_outage() -> None:
    with pytest.raises(DatabaseError) as away:
        lose_database()
    connection.close()
    with pytest.raises(DatabaseError) as missing, connection.cursor() as cursor:
        cursor.execute("select 1 from there_is_no_such_table")
    assert (is_outage(away.value), is_outage(missing.value), is_outage(ValueError())) == (True, False, False)
    assert is_outage(InterfaceError("the connection is closed"))
