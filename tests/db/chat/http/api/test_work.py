"""Work for a person, over all conversations, a page at a time and in few queries."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.agent.values.schedules import Work
from chat.models import AgentInstance
from chat.schedules.service import draft_of
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.models import Fiber
from fibers.models.schedules import Schedule, ScheduleRun
from fibers.schedules import services
from tests.db.chat.conftest import ApiClient, make_turn

Make = Callable[..., AgentInstance]


def background(instance: AgentInstance, method: str, status: str = "running", **fields: Any) -> Fiber:
    ended = timezone.now() if status in {"completed", "failed", "cancelled", "interrupted"} else None
    return Fiber.objects.create(
        name=f"chat.agent_fiber:assistant.{method}",
        status=status,
        scope=instance.pk,
        owner_id=instance.owner_id,
        payload={"instance_id": instance.pk, "method": method, "payload": None, "id": None},
        finished_at=ended,
        **fields,
    )


def plan(instance: AgentInstance, prompt: str, minutes: int) -> Schedule:
    timing = Timing(kind=ScheduleKind.INTERVAL, spec=str(minutes * 60), zone="UTC")
    return services.create_schedule(draft_of(instance, timing, Work(prompt=prompt), is_once=False))[0]


def listed(client: ApiClient, section: str = "now", **query: Any) -> Any:
    asked = "".join(f"&{name}={value}" for name, value in query.items())
    return client.get(f"/work?section={section}{asked}").json()


@pytest.fixture
def other(alice: User, make_instance: Make) -> AgentInstance:
    return make_instance(alice, "other", title="Other")


def test_what_runs_is_listed_over_all_conversations(
    as_alice: ApiClient, conversation: AgentInstance, other: AgentInstance
) -> None:
    turn = make_turn(other, status="running")
    fiber = background(conversation, "crawl")
    background(conversation, "over", "completed")
    newest, oldest = listed(as_alice)["items"]
    assert (newest["kind"], newest["id"], newest["title"]) == ("background", fiber.pk, "A talk")
    assert (newest["name"], newest["status"], newest["verbs"]) == ("crawl", "running", ["cancel"])
    assert (oldest["kind"], oldest["id"], oldest["title"]) == ("turn", turn.pk, "Other")
    assert (oldest["status"], oldest["agent"], oldest["instance_id"]) == ("running", "assistant", other.pk)


def test_what_was_asked_to_stop_cannot_be_stopped_again(as_alice: ApiClient, conversation: AgentInstance) -> None:
    background(conversation, "crawl", cancel_requested_at=timezone.now())
    assert listed(as_alice)["items"][0]["verbs"] == []


def test_ended_background_work_can_be_tried_again(as_alice: ApiClient, conversation: AgentInstance) -> None:
    background(conversation, "fine", "completed")
    background(conversation, "sad", "failed", error={"code": "model_error", "message": "No answer."})
    background(conversation, "ours", "failed", error={"code": "internal", "message": "KeyError: 'secret'"})
    items = {item["name"]: item for item in listed(as_alice, "ended")["items"]}
    assert (items["sad"]["verbs"], items["sad"]["error"]) == (["retry"], "No answer.")
    assert (items["fine"]["verbs"], items["ours"]["error"]) == ([], "")


def test_what_ended_long_ago_is_not_listed(as_alice: ApiClient, conversation: AgentInstance) -> None:
    background(conversation, "old", "failed", created_at=timezone.now() - timedelta(days=8))
    assert listed(as_alice, "ended")["items"] == []


def test_schedules_come_by_their_next_run_with_the_last_one(
    as_alice: ApiClient, conversation: AgentInstance, other: AgentInstance
) -> None:
    late, soon, held = plan(conversation, "late", 90), plan(other, "soon", 5), plan(other, "held", 1)
    services.pause_schedule(held.pk)
    fiber = Fiber.objects.create(
        name="chat.scheduled_run:assistant", status="failed", finished_at=timezone.now(), error={"message": "No room."}
    )
    ScheduleRun.objects.create(schedule=soon, due_at=timezone.now(), fiber=fiber)
    items = listed(as_alice, "schedules")["items"]
    assert [item["id"] for item in items] == [soon.pk, late.pk, held.pk]
    assert (items[0]["last_run"]["status"], items[0]["last_run"]["error"]) == ("failed", "No room.")
    assert (items[0]["verbs"], items[0]["name"], items[0]["title"]) == (["pause", "run"], "soon", "Other")
    assert (items[2]["verbs"], items[2]["next_at"], items[2]["status"]) == (["resume", "run"], None, "paused")


def test_what_others_do_is_not_listed(as_bob: ApiClient, conversation: AgentInstance) -> None:
    make_turn(conversation, status="running")
    background(conversation, "crawl")
    background(conversation, "sad", "failed")
    plan(conversation, "daily", 90)
    assert [listed(as_bob, section)["items"] for section in ("now", "ended", "schedules")] == [[], [], []]


@pytest.mark.parametrize("section", ["now", "ended", "schedules"])
def test_pages_follow_each_other_without_gap(
    as_alice: ApiClient, conversation: AgentInstance, other: AgentInstance, section: str
) -> None:
    for number in range(5):
        background(conversation, f"m{number}")
        background(other, f"e{number}", "failed")
        plan(other, f"p{number}", 10 if number < 3 else 20 + number)
    whole = [item["id"] for item in listed(as_alice, section)["items"]]
    seen, cursor = [], ""
    while True:
        page = listed(as_alice, section, limit=2, cursor=cursor)
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert (seen, len(seen)) == (whole, 5)


def test_a_cursor_of_another_is_refused(as_alice: ApiClient, bob: User, make_instance: Make) -> None:
    other = background(make_instance(bob, "his"), "crawl")
    refused = as_alice.get(f"/work?cursor={other.pk}")
    assert (refused.status_code, refused.json()["code"]) == (422, "input_invalid")


@pytest.mark.parametrize("section", ["now", "ended", "schedules"])
def test_a_page_takes_the_same_queries_whatever_is_in_it(
    as_alice: ApiClient, alice: User, make_instance: Make, section: str
) -> None:
    def fill(name: str) -> None:
        instance = make_instance(alice, name)
        make_turn(instance, status="running")
        background(instance, "crawl")
        background(instance, "sad", "failed")
        schedule = plan(instance, "daily", 90)
        fiber = Fiber.objects.create(name="chat.scheduled_run:assistant", result={"turn_id": make_turn(instance).pk})
        ScheduleRun.objects.create(schedule=schedule, due_at=timezone.now(), fiber=fiber)

    fill("first")
    with CaptureQueriesContext(connection) as few:
        listed(as_alice, section)
    for number in range(6):
        fill(f"more-{number}")
    with CaptureQueriesContext(connection) as many:
        assert len(listed(as_alice, section)["items"]) >= 7
    assert len(many) == len(few) <= 8
