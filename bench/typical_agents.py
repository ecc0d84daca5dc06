"""Agents as people write them, for the benchmark of the tokens that tools take, and for the test of its bounds."""

from dataclasses import replace
from typing import Any, ClassVar

from chat.llm.scripted import ScriptedModel
from chat.think import SessionSetup, Think, Tool, tool


@tool
def _far(order_id: str, reason: str = "") -> str:
    """Refund an order of the shop in the payment system. Orders that were paid more than a year ago are refused.

    Args:
        order_id: The order, as printed on the invoice.
        reason: For the customer, in one sentence.
    """
    return f"{order_id} {reason}"


class SizedPlain(Think):
    """Three lines: the tools for files come along."""

    def get_model(self) -> Any:
        """The scripted one: nothing is asked of it."""
        return ScriptedModel()


class SizedBare(SizedPlain):
    """Without tools for files."""

    workspace_tools = False


class SizedWhole(SizedPlain):
    """Files, code, schedules and memory."""

    code_tool = True
    schedule_tools = True

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        """With a memory of the user's."""
        return session.with_memory()


class SizedMany(SizedBare):
    """With `count` tools like those of servers, of which it searches."""

    count: ClassVar[int] = 0
    searched_tools = ("far_*",)

    def get_tools(self) -> list[Tool]:
        """Each has two arguments and a description of two sentences."""
        return [replace(_far, name=f"far_{number}") for number in range(self.count)]


class SizedThree(SizedMany):
    """Three of them."""

    count = 3


class SizedThirty(SizedMany):
    """Thirty, which are searched."""

    count = 30


class SizedThirtyDeclared(SizedThirty):
    """Thirty, all declared."""

    max_declared_tools = None


class SizedThirtyCoded(SizedThirty):
    """Thirty, which code calls."""

    code_tool = True


class SizedHundreds(SizedMany):
    """Three hundred, which are searched."""

    count = 300


class SizedHundredsDeclared(SizedHundreds):
    """Three hundred, all declared."""

    max_declared_tools = None


TYPICAL = {
    "sized-bare": "three lines without files",
    "sized-plain": "three lines",
    "sized-whole": "files, code, schedules and memory",
    "sized-three": "3 tools of others, declared",
    "sized-thirty": "30 tools of others, searched",
    "sized-thirty-declared": "30 tools of others, declared",
    "sized-thirty-coded": "30 tools of others, called by code",
    "sized-hundreds": "300 tools of others, searched",
    "sized-hundreds-declared": "300 tools of others, declared",
}
"""Names of the agents, and words for them."""
