"""Many conversations at once: an outcome for each, all in one transaction, no query for each."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.conversations.bulk import own_ids
from chat.conversations.exporting import ExportFormat, export_all
from chat.errors import InstanceNotFound
from chat.members.services import add_member
from chat.models import AgentInstance, Role, Turn
from fibers.models import Fiber
from tests.db.chat.conftest import ApiClient, make_turn, say

Make = Callable[..., AgentInstance]


def many(client: ApiClient, verb: str, ids: list[str], **more: object) -> dict[str, str]:
    reply = client.send("POST", f"/bulk/{verb}", {"ids": ids, **more})
    assert reply.status_code == 200, reply.content
    return {each["id"]: each["outcome"] for each in reply.json()}


@pytest.fixture
def talks(alice: User, make_instance: Make) -> list[str]:
    return [make_instance(alice, f"talk{number}").pk for number in range(3)]


@pytest.mark.parametrize("verb", ["archive", "delete", "restore"])
def test_each_has_its_outcome(
    as_alice: ApiClient, alice: User, bob: User, talks: list[str], make_instance: Make, verb: str
) -> None:
    his, shared = make_instance(bob, "his"), make_instance(bob, "shared")
    add_member(shared, alice.username, Role.APPROVER, by=bob.pk)
    if verb == "restore":
        many(as_alice, "delete", talks)
    wanted = [talks[0], his.pk, shared.pk, "never", talks[1], talks[0]]
    assert many(as_alice, verb, wanted) == {
        talks[0]: "done",
        his.pk: "missing",
        shared.pk: "denied",
        "never": "missing",
        talks[1]: "done",
    }
    for row in (his, shared):
        row.refresh_from_db()
        assert (row.archived_at, row.deleted_at) == (None, None)


def test_what_is_archived_deleted_and_restored(as_alice: ApiClient, talks: list[str]) -> None:
    def listed(query: str = "") -> set[str]:
        return {row["id"] for row in as_alice.get(f"/instances{query}").json()["items"]}

    many(as_alice, "archive", talks[:2])
    assert (listed(), listed("?archived=true")) == ({talks[2]}, set(talks[:2]))
    many(as_alice, "archive", talks[:1], archived=False)
    many(as_alice, "delete", talks)
    assert (listed(), listed("?archived=true")) == (set(), set())
    assert {row["id"] for row in as_alice.get("/deleted").json()} == set(talks)
    assert many(as_alice, "delete", talks[:1]) == {talks[0]: "missing"}
    many(as_alice, "restore", talks)
    assert (listed(), listed("?archived=true")) == ({talks[0], talks[2]}, {talks[1]})


def test_turns_of_all_are_stopped(as_alice: ApiClient, alice: User, talks: list[str]) -> None:
    rows = AgentInstance.objects.filter(pk__in=talks)
    running = [make_turn(row, status="running") for row in rows]
    waiting = make_turn(rows[0], status="pending")
    many(as_alice, "delete", talks)
    stopped = Fiber.objects.filter(pk__in=[turn.fiber_id for turn in running])
    assert all(fiber.cancel_requested_at is not None for fiber in stopped)
    assert Turn.objects.get(pk=waiting.pk).fiber.status == "cancelled"


@pytest.mark.parametrize("verb", ["archive", "delete", "restore"])
def test_a_hundred_cost_as_many_queries_as_two(
    as_alice: ApiClient, alice: User, make_instance: Make, verb: str
) -> None:
    counts = []
    for count in (2, 100):
        ids = [make_instance(alice, f"{verb}{count}.{number}").pk for number in range(count)]
        for row in AgentInstance.objects.filter(pk__in=ids[:5]):
            say(row, f"q{row.pk}", f"a{row.pk}")
        if verb == "restore":
            many(as_alice, "delete", ids)
        with CaptureQueriesContext(connection) as caught:
            assert set(many(as_alice, verb, ids).values()) == {"done"}
        counts.append(len(caught))
    assert counts[0] == counts[1]
    assert counts[0] < 30


@pytest.mark.parametrize("body", [{"ids": []}, {"ids": ["x"] * 101}, {"ids": "x"}, {}, {"ids": ["x"], "more": 1}])
def test_bad_input_changes_nothing(as_alice: ApiClient, talks: list[str], body: Any) -> None:
    for verb in ("archive", "delete", "restore"):
        assert as_alice.send("POST", f"/bulk/{verb}", body).status_code == 422


def test_an_export_of_some_holds_these_alone(alice: User, bob: User, talks: list[str], make_instance: Make) -> None:
    his = make_instance(bob, "his").pk
    with pytest.raises(InstanceNotFound):
        own_ids(alice.pk, [talks[0], his])
    only = own_ids(alice.pk, [talks[1], talks[1]])
    titles: list[str] = []
    AgentInstance.objects.filter(pk=talks[1]).update(title="The one")
    for _ in export_all(alice.pk, ExportFormat.JSONL, only=only, note=lambda title, _counts: titles.append(title)):
        pass
    assert titles == ["The one"]
