"""Agents that name others which no class is served by are reported before a turn fails of it."""

from chat.agent import declared
from chat.agent.values.messages import AgentReference
from chat.checks import check_named_agents
from chat.think import Think


def test_names_of_agents_that_no_class_is_served_by_are_reported() -> None:
    class NamedByOthers(Think):
        """Is served."""

    class NamesOthers(Think):
        """Names one that is and three that are not."""

        agents = ("named-by-others", NamedByOthers, AgentReference(agent="lost-clerk"))
        sub_agents = ("named-by-others", "lost-child")
        thread_agent = "lost-thread"

    try:
        found = [problem.msg for problem in check_named_agents() if "NamesOthers" in problem.msg]
    finally:
        declared.unregister(NamesOthers)
        declared.unregister(NamedByOthers)
    assert len(found) == 3
    for attribute, name in (("agents", "lost-clerk"), ("sub_agents", "lost-child"), ("thread_agent", "lost-thread")):
        assert any(f"{attribute} names '{name}'" in text for text in found)
