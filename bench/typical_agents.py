"""Agents as people write them, for the benchmark of the tokens that tools take, and for the test of its bounds."""

from typing import Any

from chat.llm.scripted import ScriptedModel
from chat.think import SessionSetup, Think


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


TYPICAL = {
    "sized-bare": "three lines without files",
    "sized-plain": "three lines",
    "sized-whole": "files, code, schedules and memory",
}
"""Names of the agents, and words for them."""
