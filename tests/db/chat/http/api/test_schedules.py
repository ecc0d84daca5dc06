"""Schedules over the API: what a person sees, makes, changes and tests."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User

from chat.agent.values.schedules import Work
from chat.models import AgentInstance
from chat.schedules.service import draft_of
from fibers.core.schedules.timing import Timing
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules import services
from fibers.testing import run_until_idle
from tests.db.chat.conftest import ApiClient
from tests.db.chat.turns.agents.chatless import PinBoard
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)

MORNING = {"kind": "cron", "spec": "0 9 * * 1-5", "zone": "Europe/Berlin"}


@pytest.fixture(autouse=True)
def _manual(settings: Any) -> None:
    settings.THINK_FIBER_DISPATCH = "manual"


@pytest.fixture
def empty_talk(alice: User, make_instance: Any) -> AgentInstance:
    made: AgentInstance = make_instance(alice, "talk")
    return made


@pytest.fixture
def schedules_path(empty_talk: AgentInstance) -> str:
    return f"/instances/{empty_talk.pk}/schedules"


def create(client: ApiClient, path: str, **values: Any) -> dict[str, Any]:
    reply = client.send("POST", path, {"prompt": "say: hello", "times": MORNING, **values})
    assert reply.status_code == 200, reply.content
    return dict(reply.json())


def test_a_person_makes_a_schedule_and_sees_its_next_times(as_alice: ApiClient, schedules_path: str) -> None:
    made = create(as_alice, schedules_path, title=" Morning ")
    assert (made["title"], made["prompt"], made["method"], made["created_by"]) == (
        "Morning",
        "say: hello",
        None,
        "person",
    )
    assert (made["kind"], made["spec"], made["zone"], made["status"]) == (*MORNING.values(), "active")
    assert (made["can_edit"], made["can_delete"], made["last_run"]) == (True, True, None)
    times = [datetime.fromisoformat(each) for each in made["next"]]
    assert len(times) == 5
    assert times == sorted(set(times))
    assert as_alice.get(schedules_path).json() == [made]


def test_what_would_come_is_shown_and_not_stored(as_alice: ApiClient) -> None:
    reply = as_alice.send("POST", "/schedules/preview", {"kind": "interval", "spec": "3600"})
    times = [datetime.fromisoformat(each) for each in reply.json()["next"]]
    assert [b - a for a, b in pairwise(times)] == [timedelta(hours=1)] * 4
    once = as_alice.send(
        "POST", "/schedules/preview", {"kind": "instant", "spec": "2040-05-01T09:00", "zone": "Europe/Berlin"}
    )
    assert [datetime.fromisoformat(each) for each in once.json()["next"]] == [datetime(2040, 5, 1, 7, tzinfo=UTC)]
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(
    "times",
    [
        {"kind": "interval", "spec": "59"},
        {"kind": "interval", "spec": "2592001"},
        {"kind": "interval", "spec": "soon"},
        {"kind": "interval", "spec": "nan"},
        {"kind": "delay", "spec": "1e400"},
        {"kind": "cron", "spec": "61 * * * *"},
        {"kind": "cron", "spec": "0 9 * * *", "zone": "Mars/Base"},
        {"kind": "cron", "spec": "0 9 * * *"},
        {"kind": "instant", "spec": "2040-05-01T09:00"},
        {"kind": "instant", "spec": "tomorrow"},
        {"kind": "instant", "spec": "0001-01-01T00:00", "zone": "Asia/Tokyo"},
        {"kind": "instant", "spec": "2040-05-01", "zone": "Asia/Tokyo"},
        {"kind": "instant", "spec": "2025-01-02T09:00", "zone": "Asia/Tokyo"},
        {"kind": "instant", "spec": "2040-05-01T09:00", "zone": "localtime"},
    ],
)
def test_impossible_times_are_refused_with_a_sentence(
    as_alice: ApiClient, schedules_path: str, times: dict[str, str]
) -> None:
    for reply in (
        as_alice.send("POST", "/schedules/preview", times),
        as_alice.send("POST", schedules_path, {"prompt": "x", "times": times}),
    ):
        assert (reply.status_code, reply.json()["code"]) == (422, "schedule_invalid")
    assert not Schedule.objects.exists()


def test_a_schedule_is_paused_edited_and_deleted(as_alice: ApiClient, schedules_path: str) -> None:
    made = create(as_alice, schedules_path)
    one = f"{schedules_path}/{made['id']}"
    paused = as_alice.send("PATCH", one, {"paused": True}).json()
    assert (paused["status"], paused["next"]) == ("paused", [])
    edited = as_alice.send("PATCH", one, {"prompt": "say: bye", "times": {"kind": "interval", "spec": "7200"}}).json()
    assert (edited["prompt"], edited["spec"], edited["status"]) == ("say: bye", "7200", "paused")
    resumed = as_alice.send("PATCH", one, {"paused": False, "title": "Bye"}).json()
    assert (resumed["status"], resumed["title"], len(resumed["next"])) == ("active", "Bye", 5)
    assert as_alice.send("DELETE", one).status_code == 204
    assert as_alice.send("DELETE", one).status_code == 404


def test_what_is_over_is_no_new_time(as_alice: ApiClient, schedules_path: str) -> None:
    made = create(as_alice, schedules_path)
    over = {"kind": "instant", "spec": "2025-01-02T09:00", "zone": "Europe/Vienna"}
    reply = as_alice.send("PATCH", f"{schedules_path}/{made['id']}", {"times": over})
    today = datetime.now(ZoneInfo("Europe/Vienna"))
    assert reply.status_code == 422
    assert f"2025-01-02 09:00 (Europe/Vienna) is over: it is {today:%Y-%m}" in reply.json()["detail"]
    assert as_alice.get(schedules_path).json() == [made]


def test_a_zone_that_is_none_is_refused_with_a_proposal(as_alice: ApiClient) -> None:
    times = {"kind": "cron", "spec": "0 9 * * *", "zone": "Europe/Wien"}
    reply = as_alice.send("POST", "/schedules/preview", times)
    assert "Did you mean Europe/Vienna?" in reply.json()["detail"]


def test_what_code_made_can_be_paused_and_not_edited(
    as_alice: ApiClient, schedules_path: str, empty_talk: AgentInstance
) -> None:
    draft = draft_of(empty_talk, Timing.every(60), Work(callback="poll"), created_by="code")
    made, _new = services.create_schedule(draft)
    declared = services.create_schedule(
        draft_of(empty_talk, Timing.every(60), Work(prompt="x"), created_by="declaration", declaration="digest")
    )[0]
    listed = {each["id"]: each for each in as_alice.get(schedules_path).json()}
    assert (listed[made.pk]["method"], listed[made.pk]["can_edit"], listed[made.pk]["can_delete"]) == (
        "poll",
        False,
        True,
    )
    assert (listed[declared.pk]["can_edit"], listed[declared.pk]["can_delete"]) == (False, False)
    assert as_alice.send("PATCH", f"{schedules_path}/{declared.pk}", {"prompt": "mine"}).status_code == 422
    assert as_alice.send("DELETE", f"{schedules_path}/{declared.pk}").status_code == 422
    assert as_alice.send("PATCH", f"{schedules_path}/{declared.pk}", {"paused": True}).json()["status"] == "paused"


def test_runs_say_how_they_went(as_alice: ApiClient, schedules_path: str) -> None:
    made = create(as_alice, schedules_path)
    first = as_alice.send("POST", f"{schedules_path}/{made['id']}/run", {}).json()
    assert (first["status"], first["test"], first["turn_id"]) == ("waiting", True, None)
    Fiber.objects.update(
        status=FiberStatus.FAILED, error={"code": "x", "message": "It broke."}, finished_at=datetime.now(UTC)
    )
    second = as_alice.send("POST", f"{schedules_path}/{made['id']}/run", {}).json()
    runs = as_alice.get(f"{schedules_path}/{made['id']}/runs").json()
    assert [run["id"] for run in runs] == [second["id"], first["id"]]
    assert (runs[1]["status"], runs[1]["error"]) == ("failed", "It broke.")
    assert as_alice.get(schedules_path).json()[0]["last_run"]["id"] == second["id"]


def test_a_user_tests_so_many_a_minute(
    as_alice: ApiClient, schedules_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fibers.schedules.services.TESTS_PER_MINUTE", 1)
    made = create(as_alice, schedules_path)
    assert as_alice.send("POST", f"{schedules_path}/{made['id']}/run", {}).status_code == 200
    assert as_alice.send("POST", f"{schedules_path}/{made['id']}/run", {}).status_code == 409
    assert ScheduleRun.objects.count() == 1


def test_a_user_makes_so_many_at_most(as_alice: ApiClient, schedules_path: str, settings: Any) -> None:
    settings.THINK_SCHEDULES_PER_USER = 1
    create(as_alice, schedules_path)
    reply = as_alice.send("POST", schedules_path, {"prompt": "x", "times": MORNING})
    assert (reply.status_code, reply.json()["code"]) == (409, "schedules_full")


def test_a_schedule_is_found_in_its_own_conversation_only(
    as_alice: ApiClient, schedules_path: str, alice: User, make_instance: Any
) -> None:
    made = create(as_alice, schedules_path)
    other = make_instance(alice, "other")
    assert as_alice.get(f"/instances/{other.pk}/schedules/{made['id']}/runs").status_code == 404


@pytest.fixture
def board_path(alice: User, make_instance: Any) -> str:
    """The schedules of an agent that does not chat."""
    return f"/instances/{make_instance(alice, 'pins', agent=PinBoard.route_name()).pk}/schedules"


def test_an_agent_without_a_chat_is_scheduled_by_what_clients_may_call(as_alice: ApiClient, board_path: str) -> None:
    asked = {"method": "addDone", "arguments": [2], "times": MORNING}
    reply = as_alice.send("POST", board_path, asked)
    assert reply.status_code == 200, reply.content
    made = reply.json()
    assert (made["method"], made["prompt"], made["status"], made["created_by"]) == ("addDone", None, "active", "person")
    assert (made["can_edit"], made["can_delete"]) == (False, True)
    one = f"{board_path}/{made['id']}"
    assert as_alice.send("PATCH", one, {"prompt": "x"}).status_code == 422
    assert as_alice.send("PATCH", one, {"paused": True}).json()["status"] == "paused"
    assert as_alice.send("DELETE", one).status_code == 204


async def test_a_scheduled_call_is_made_as_a_client_makes_it(as_alice: ApiClient, board_path: str) -> None:
    def ask(arguments: list[Any]) -> Any:
        reply = as_alice.send("POST", board_path, {"method": "addDone", "arguments": arguments, "times": MORNING})
        run = as_alice.send("POST", f"{board_path}/{reply.json()['id']}/run")
        assert run.status_code == 200, run.content
        return reply.json()["id"]

    good, wrong = await db(ask, [2]), await db(ask, ["two"])
    await run_until_idle(skip_delays=True)

    def runs_of(schedule_id: str) -> Any:
        return as_alice.get(f"{board_path}/{schedule_id}/runs").json()

    runs = {schedule_id: await db(runs_of, schedule_id) for schedule_id in (good, wrong)}
    assert [run["status"] for run in runs[good]] == ["completed"]
    assert [run["status"] for run in runs[wrong]] == ["failed"]
    assert "argument 1" in runs[wrong][0]["error"]
    instance = await db(AgentInstance.objects.get)
    assert instance.state == {"done": 2}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"prompt": "say: hello"}, "does not chat"),
        ({"method": "tick"}, "is not callable"),
        ({"method": "missing"}, "does not exist"),
        ({"method": "lines"}, "streams"),
        ({"method": "addDone"}, "expects count"),
        ({"method": "addDone", "prompt": "say: hello"}, "one of the two"),
        ({}, "one of the two"),
        ({"prompt": "say: hello", "arguments": [1]}, "belong to a method"),
    ],
)
def test_what_cannot_be_scheduled_is_said_and_nothing_is_stored(
    as_alice: ApiClient, board_path: str, asked: dict[str, Any], says: str
) -> None:
    reply = as_alice.send("POST", board_path, {**asked, "times": MORNING})
    assert reply.status_code in {400, 409, 422}, reply.content
    assert says in reply.content.decode()
    assert not Schedule.objects.exists()
