"""Runs in the admin: listed with both sides, state and cost, led to from conversation and turn, and stopped."""

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.instances.rows import ensure_instance
from fibers.models import Fiber
from tests.db.chat.conftest import make_turn
from tests.db.chat.notes import keys
from tests.db.chat.runs_by_hand import end_run, start_run
from tests.db.chat.staff import staff

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("notes")]
URL = "/admin/think_chat/agentrun/"
LOOKS = ("view_agentrun", "view_agentinstance", "view_turn")


def test_a_run_is_shown_with_both_sides_its_call_and_its_outcome(alice: User) -> None:
    run = start_run(alice, "say: a secret", display={"name": "<b>Finder</b>"})
    end_run(run, ok=False, status="interrupted", reason="no-progress", error="Nothing came.")
    _, client = staff(*LOOKS, "view_message")
    listed = client.get(URL).content.decode()
    assert "&lt;b&gt;Finder&lt;/b&gt;" in listed
    assert "Not waited for" in listed
    page = client.get(f"{URL}{run.pk}/change/").content.decode()
    for shown in ("no-progress", "say: a secret", f"agentinstance/{run.parent_id}/", f"agentinstance/{run.child_id}/"):
        assert shown in page


def test_who_may_not_read_messages_reads_neither_input_nor_outcome(alice: User) -> None:
    run = start_run(alice, "say: a secret")
    end_run(run, summary="the result")
    _, client = staff(*LOOKS)
    page = client.get(f"{URL}{run.pk}/change/").content.decode()
    assert "Completed" in page
    assert "a secret" not in page
    assert "the result" not in page


def test_conversations_and_turns_lead_to_their_runs(alice: User) -> None:
    turn = make_turn(ensure_instance(keys(alice)[0]))
    other = make_turn(turn.instance)
    run = start_run(alice, "say: x", parent_turn=turn)
    _, client = staff(*LOOKS)
    for view, row in (("agentinstance", run.parent_id), ("turn", turn.pk)):
        assert f"{URL}?q={row}" in client.get(f"/admin/think_chat/{view}/{row}/change/").content.decode()
        listed = client.get(f"{URL}?q={row}").content.decode()
        assert quote(run.pk) in listed
    assert f"{URL}?q=" not in client.get(f"/admin/think_chat/turn/{other.pk}/change/").content.decode()


def test_staff_stop_runs_who_may(alice: User) -> None:
    run = start_run(alice, "say: x")
    assert run.turn is not None
    _, client = staff(*LOOKS, "change_agentrun")
    form = {"action": "stop_runs", "_selected_action": [run.pk]}
    assert "1 of 1 stopped" in client.post(URL, form, follow=True).content.decode()
    assert Fiber.objects.get(pk=run.turn.fiber_id).status == "cancelled"
    end_run(run, ok=False, status="aborted", error="Stopped.")
    assert "0 of 1 stopped" in client.post(URL, form, follow=True).content.decode()


def test_the_list_costs_the_same_for_many(alice: User) -> None:
    _, client = staff(*LOOKS)
    counts = []
    for names in (("r0",), ("r1", "r2", "r3")):
        for name in names:
            start_run(alice, "say: x", name)
        with CaptureQueriesContext(connection) as queries:
            client.get(URL)
        counts.append(len(queries))
    assert counts[0] == counts[1]
