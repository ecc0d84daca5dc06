"""The first page of the admin and everybody's usage: figures, plots, a fixed number of queries, and who sees them."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.admin.plots import Bar, plot
from chat.models import AgentInstance, Turn
from fibers.models import Fiber
from tests.db.chat.conftest import make_turn
from thinkproject.kernel.read_only_admin import amount

Make = Callable[..., AgentInstance]


@pytest.fixture
def staff(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def spend(instance: AgentInstance, cost: str, *, days_ago: int = 0, **fields: Any) -> None:
    turn = make_turn(instance, model_name="acme-large", cost=Decimal(cost), input_tokens=100, **fields)
    Turn.objects.filter(pk=turn.pk).update(accepted_at=timezone.now() - timedelta(days=days_ago))


def test_the_first_page_says_how_it_goes(staff: Client, conversation: AgentInstance) -> None:
    spend(conversation, "1.25")
    spend(conversation, "0.5", error_code="overloaded")
    spend(conversation, "7", days_ago=40)
    now = timezone.now()
    Fiber.objects.create(name="chat.title", available_at=now - timedelta(minutes=5))
    Fiber.objects.create(name="chat.title", available_at=now + timedelta(hours=1))
    Fiber.objects.create(name="chat.turn", status="running", worker="worker-1", lease_until=now + timedelta(minutes=1))
    Fiber.objects.create(name="chat.turn", status="running", worker="worker-2", lease_until=now - timedelta(minutes=1))
    html = staff.get("/admin/").content.decode()
    assert "3 turns" in html
    assert "$1.75" in html
    assert "<code>overloaded</code>" in html
    assert "A title" in html
    assert "5\xa0minutes" in html
    assert "worker-1" in html
    assert "worker-2" not in html
    assert "1 lease has run out" in html
    assert html.count('role="img"') == 2


def test_everybodys_usage_names_people_and_conversations(
    staff: Client, alice: User, bob: User, conversation: AgentInstance, make_instance: Make
) -> None:
    spend(conversation, "1.25")
    spend(make_instance(bob, "his", title="Of Bob"), "0.0042")
    html = staff.get("/admin/think_chat/turn/usage/?days=30").content.decode()
    for text in (alice.username, bob.username, "A talk", "Of Bob", "$1.25", "$0.0042", "acme-large", "Assistant"):
        assert text in html
    assert staff.get("/admin/think_chat/turn/usage/?days=nonsense").status_code == 200


def test_figures_of_everybody_are_for_those_who_may_see_turns(alice: User, conversation: AgentInstance) -> None:
    spend(conversation, "1.25")
    alice.is_staff = True
    alice.save()
    client = Client()
    client.force_login(alice)
    assert "$1.25" not in client.get("/admin/").content.decode()
    assert client.get("/admin/think_chat/turn/usage/").status_code == 403
    alice.user_permissions.add(Permission.objects.get(codename="view_turn"))
    html = client.get("/admin/think_chat/turn/usage/").content.decode()
    assert "$1.25" in html
    assert "A talk" not in html, "titles may quote messages"
    assert Client().get("/admin/think_chat/turn/usage/").status_code == 302


@pytest.mark.parametrize("address", ["/admin/", "/admin/think_chat/turn/usage/?days=7"])
def test_the_pages_take_the_same_queries_whatever_there_is(
    staff: Client, alice: User, conversation: AgentInstance, make_instance: Make, address: str
) -> None:
    spend(conversation, "1.25", error_code="overloaded")
    staff.get(address)  # caches of content types and the like
    with CaptureQueriesContext(connection) as few:
        staff.get(address)
    for number in range(12):
        spend(make_instance(alice, f"n{number}"), "0.1", days_ago=number, error_code=f"kind_{number}")
        Fiber.objects.create(name=f"chat.agent_fiber:a.{number}")
    with CaptureQueriesContext(connection) as many:
        staff.get(address)
    assert len(many) == len(few) <= 16


@pytest.mark.parametrize(
    ("value", "shown"),
    [("0", "$0.00"), ("1234.5", "$1,234.50"), ("0.0123", "$0.0123"), ("0.004", "$0.004"), ("0.000042", "$0.000042")],
)
def test_costs_have_a_currency_and_the_digits_that_it_takes(value: str, shown: str) -> None:
    assert amount(Decimal(value)) == shown


def test_a_plot_has_its_numbers_as_a_table_and_escapes_them() -> None:
    drawn = plot("Turns", "Day", [Bar(name="<1 May>", value=2, text="2 & 3"), Bar(name="2 May", value=0, text="0")])
    assert drawn.count("<rect") == 2
    assert "&lt;1 May&gt;" in drawn
    assert "2 &amp; 3" in drawn
    assert '<th scope="row">2 May</th><td class="is-number">0</td>' in drawn
    assert 'height="0.0"' in drawn
