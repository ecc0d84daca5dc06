"""Programs that run calls of durable tools over HTTP: claimed once, renewed, ended once; strangers see nothing."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db.models.functions import Now
from django.test import Client

from chat.access.api_tokens import create_token
from chat.errors import InputInvalid
from chat.turns.admission.stop import cancel_turn
from fibers.models import Fiber, ServedFunction
from fibers.queue import presence
from fibers.testing import run_until_idle
from tests.db.chat.turns.agents.durable_desk import serving
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room
from .working import call

pytestmark = pytest.mark.django_db(transaction=True)

SEARCH = f"{call('search', query='tea')}\nsay: It says {{result}}."


@pytest.fixture(autouse=True)
def _no_executor_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Executors say once a minute that they are there: here in each test."""
    monkeypatch.setattr(presence, "_noted", {})


class LabProgram:
    """A program with a token that is limited to the lab."""

    def __init__(self, user: User, *scopes: str) -> None:
        self.secret = create_token(user, name="lab", scopes=scopes or ("execute:lab",))[1]

    def post(self, verb: str, executor: str = "lab", **body: Any) -> tuple[int, Any]:
        reply = Client().post(
            f"/api/v1/executors/{executor}/{verb}",
            body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.secret}"},
        )
        return reply.status_code, reply.json()

    def claim(self, *tools: str) -> list[Any]:
        status, claimed = self.post("claim", tools=tools or ("search",))
        assert status == 200, claimed
        return list(claimed)


async def asked(room: Room, script: str = SEARCH) -> tuple[Any, LabProgram]:
    """A turn that waits for the lab, and a program that is the lab."""
    with serving(""):
        turn = await room.say(script)
    return turn, await db(lambda: LabProgram(User.objects.get(username="alice")))


async def goes_on(room: Room) -> str:
    with serving(""):
        await run_until_idle(skip_delays=True)
    return (await room.texts())[-1][1]


def held(claimed: Any) -> dict[str, Any]:
    return {"job_id": claimed["job_id"], "fence": claimed["fence"]}


async def test_a_program_claims_renews_and_completes(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    turn, lab = await asked(room)
    [claimed] = await db(lab.claim)
    assert (claimed["tool"], claimed["input"], claimed["attempt"]) == ("search", {"query": "tea"}, 1)
    assert claimed["idempotency_key"].startswith(f"{turn.pk}:")
    assert claimed["shared"] == {"tenant": "of search"}
    assert await db(lab.claim) == []  # one claim
    status, reply = await db(lambda: lab.post("heartbeat", **held(claimed), progress={"title": "half"}))
    assert (status, reply["is_stopping"]) == (200, False)
    assert (await db(lambda: Fiber.objects.get(pk=claimed["job_id"]))).stash == {"title": "half"}
    status, reply = await db(lambda: lab.post("complete", **held(claimed), output={"hits": "many"}))
    assert (status, reply["code"]) == (422, "tool_result_invalid")
    for _ in range(2):  # the first answer may be lost
        assert await db(lambda: lab.post("complete", **held(claimed), output={"hits": 5})) == (
            200,
            {"status": "completed"},
        )
    assert await goes_on(room) == 'It says {"hits":5}.'
    assert await db(lambda: list(ServedFunction.objects.values_list("name", "kind"))) == [
        ("chat.tool:lab/search", "program")
    ]


async def test_a_program_that_was_taken_for_dead_says_nothing_more(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    _turn, lab = await asked(room)
    [first] = await db(lab.claim)
    await db(lambda: Fiber.objects.filter(status="running").update(lease_until=Now() - timedelta(seconds=1)))
    await goes_on(room)  # the sweep of a worker
    [second] = await db(lab.claim)
    assert (second["attempt"], second["idempotency_key"]) == (2, first["idempotency_key"])
    for verb, more in (("heartbeat", {}), ("complete", {"output": {"hits": 1}}), ("fail", {"message": "no"})):
        status, reply = await db(partial(lab.post, verb, **held(first), **more))
        assert (status, reply["code"]) == (409, "lease_lost"), verb
    await db(lambda: lab.post("complete", **held(second), output={"hits": 2}))
    assert await goes_on(room) == 'It says {"hits":2}.'


async def test_a_call_that_may_not_run_twice_goes_to_one_program(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    _turn, lab = await asked(room, f"{call('print_out', text='tea')}\nsay: It says {{result}}.")
    assert len(await db(partial(lab.claim, "print_out"))) == 1
    await db(lambda: Fiber.objects.filter(status="running").update(lease_until=Now() - timedelta(seconds=1)))
    await goes_on(room)
    assert await db(partial(lab.claim, "print_out")) == []
    assert "interrupted" in (await goes_on(room)).lower()


async def test_a_program_learns_that_its_call_is_stopped(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    turn, lab = await asked(room)
    [claimed] = await db(lab.claim)
    await db(cancel_turn, turn.pk)
    await goes_on(room)
    _status, reply = await db(lambda: lab.post("heartbeat", **held(claimed)))
    assert reply["is_stopping"]
    status, reply = await db(lambda: lab.post("complete", **held(claimed), output={"hits": 2}))
    assert (status, reply) == (200, {"status": "cancelled"})


async def test_a_call_that_failed_is_an_error_for_the_model(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    _turn, lab = await asked(room)
    [claimed] = await db(lab.claim)
    for _ in range(2):
        assert await db(lambda: lab.post("fail", **held(claimed), message="no paper", may_retry=True)) == (
            200,
            {"status": "failed"},  # its tool allows no retry
        )
    assert await goes_on(room) == "It says Error: no paper."


async def test_a_limited_token_opens_one_executor_and_strangers_get_no_calls(make_room: MakeRoom) -> None:
    room = make_room("durable-desk")
    _turn, lab = await asked(room)
    assert (await db(lambda: lab.post("claim", executor="attic", tools=["search"])))[0] == 401
    headers = {"Authorization": f"Bearer {lab.secret}"}
    assert (await db(lambda: Client().get("/api/v1/instances", headers=headers))).status_code == 401
    bob = await db(lambda: User.objects.create_user("bob"))
    his = await db(lambda: LabProgram(bob))
    assert await db(his.claim) == []
    [claimed] = await db(lab.claim)
    assert (await db(lambda: his.post("complete", **held(claimed), output={"hits": 9})))[0] == 404
    await db(lambda: bob.user_permissions.add(Permission.objects.get(codename="run_calls_of_all")))
    assert (await db(lambda: his.post("complete", **held(claimed), output={"hits": 9})))[0] == 409  # claimed by another
    await db(lambda: Fiber.objects.filter(pk=claimed["job_id"]).update(status="pending", worker=""))
    [claimed] = await db(his.claim)
    assert (await db(lambda: his.post("complete", **held(claimed), output={"hits": 9})))[0] == 200
    assert await goes_on(room) == 'It says {"hits":9}.'
    for scope in ("execute:", "execute:No", "others"):
        with pytest.raises(InputInvalid):
            await db(partial(create_token, bob, name="x", scopes=[scope]))
