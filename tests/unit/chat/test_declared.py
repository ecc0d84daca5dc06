"""Route names of agent classes."""

import importlib
import sys
from pathlib import Path

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


AGENTS = "from chat.think import Think\n\n\nclass ReloadedDesk(Think):\n    title = {title!r}\n"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules that can be imported; what is declared in them is served in the test alone."""
    monkeypatch.setattr("chat.agent.declared.classes", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def test_a_class_that_is_declared_again_replaces_itself(written: Path) -> None:
    (written / "first_desk.py").write_text(AGENTS.format(title="Old"))
    module = importlib.import_module("first_desk")
    (written / "first_desk.py").write_text(AGENTS.format(title="New and longer"))
    importlib.reload(module)
    assert get_agent_class("reloaded-desk").title == "New and longer"
    del sys.modules["first_desk"]
    again = importlib.import_module("first_desk")
    assert get_agent_class("reloaded-desk") is again.ReloadedDesk


def test_a_second_class_of_a_route_name_is_refused_and_the_first_is_served_on(written: Path) -> None:
    (written / "first_desk.py").write_text(AGENTS.format(title="First"))
    (written / "second_desk.py").write_text(AGENTS.format(title="Second"))
    importlib.import_module("first_desk")
    with pytest.raises(RuntimeError, match=r"first_desk\.ReloadedDesk and second_desk\.ReloadedDesk"):
        importlib.import_module("second_desk")
    assert get_agent_class("reloaded-desk").title == "First"


def test_two_names_in_one_module_that_give_one_route_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.agent.declared.classes", {})
    type("DeskOfTwo", (Think,), {})
    with pytest.raises(RuntimeError, match="claim the route name 'desk-of-two'"):
        type("desk_of_two", (Think,), {})
