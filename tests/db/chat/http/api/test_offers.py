"""What an agent may use and touch, before a conversation with it has begun: from its class, and nothing is written."""

from collections.abc import Iterator

import pytest

from chat.agent import declared
from chat.models import AgentInstance
from chat.think import Agent, Permission, Think, Tool, tool
from tests.db.chat.conftest import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


@tool(title="Look up an order", read_only=True)
def look_up(number: str) -> str:
    """Look an order up."""
    return number


@tool(needs_approval=True)
def pay_back(number: str) -> str:
    """Pay money back."""
    return number


@pytest.fixture
def offering() -> Iterator[None]:
    class Offering(Think):
        """Helps with orders."""

        workspace_tools = False
        code_tool = True
        permissions = (Permission.deny("bash", "rm *"), Permission.ask("edit"))

        def get_model(self) -> str:
            return "default"

        def get_tools(self) -> list[Tool]:
            return [look_up, pay_back]

    class Unsayable(Think):
        """Fails when it is asked for its tools."""

        def get_tools(self) -> list[Tool]:
            raise RuntimeError("no tools today")

    class OffersNothing(Agent):
        """Holds no conversation."""

    yield
    for made in (Offering, Unsayable, OffersNothing):
        declared.unregister(made)


def test_a_class_says_what_it_may_use_and_touch(as_alice: ApiClient, offering: None) -> None:
    found = as_alice.get("/agents/offering/offers").json()
    assert found["tools"] == [
        {"name": "look_up", "title": "Look up an order", "asks": False, "changes": False},
        {"name": "pay_back", "title": "", "asks": True, "changes": True},
    ]
    assert found["reach"] == [
        "It runs code in a sandbox.",
        "It asks you first: edit.",
        "It may not use: bash rm *.",
    ]
    assert as_alice.get("/agents/assistant/offers").json()["reach"][0].startswith("It reads and changes the files")
    assert as_alice.get("/agents/offers-nothing/offers").json() == {"tools": [], "reach": []}
    assert not AgentInstance.objects.exists()


def test_an_unknown_agent_is_unknown_and_one_that_fails_says_so(as_alice: ApiClient, offering: None) -> None:
    assert as_alice.get("/agents/nobody/offers").status_code == 404
    assert as_alice.get("/agents/unsayable/offers").json()["code"] == "agent_code_failed"
