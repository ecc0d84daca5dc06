"""Route names of agent classes."""

import pytest

from chat.agent.declared import kebab
from chat.agent.registry import get_agent_class
from chat.think import Think


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("MyChatAgent", "my-chat-agent"),
        ("AIChat", "a-i-chat"),
        ("CHAT_AGENT", "chat-agent"),
        ("my_agent_", "my-agent"),
        ("chat-agent", "chat-agent"),
        ("Agent2Go", "agent2-go"),
        ("FAQ", "faq"),
        ("_42", "-42"),
    ],
)
def test_a_class_name_becomes_the_segment_that_published_clients_ask_for(name: str, segment: str) -> None:
    """The first five are examples of the wire protocol, 1.1."""
    assert kebab(name) == segment


def test_a_class_is_served_under_its_route_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.agent.declared.classes", {})

    class RouteNameDesk(Think): ...

    assert RouteNameDesk.route_name() == "route-name-desk"
    assert get_agent_class("route-name-desk") is RouteNameDesk
