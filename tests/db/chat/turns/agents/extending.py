"""Agents with extensions, and their sources. Importing this module serves them."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from chat.llm.scripted import ScriptedModel
from chat.think import SessionSetup, Think, Tool, tool
from tests.db.chat.turns.agents.everyday import MODELS

MATH = """({
  tools: {
    add: {
      description: "Add two numbers",
      parameters: { a: { type: "number" }, b: { type: "number" } },
      required: ["a", "b"],
      execute: async ({ a, b }) => ({ result: a + b })
    }
  }
})"""
MATH_MANIFEST: dict[str, Any] = {"name": "math", "version": "1.0.0", "permissions": {"network": False}}


class Given:
    """What the class of the test brings."""

    extensions: ClassVar[list[dict[str, Any]]] = []


class Extended(Think):
    """Has extensions, and lets the model load others."""

    workspace_tools = False
    extensions = True

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_extensions(self) -> list[dict[str, Any]]:
        return Given.extensions


@tool
def math_secret(word: str) -> str:
    """Keep a word."""
    return f"kept {word}"


@tool(name="look-up")
def look_up(word: str) -> str:
    """Look a word up."""
    return f"found {word}"


class Learner(Think):
    """Loads what reaches nothing without asking a person."""

    workspace_tools = False
    extensions = True

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    @tool
    async def learn(self, name: str, source: str) -> Any:
        """Load tools that only compute."""
        return await self.load_extension({"name": name, "version": "1.0.0"}, source)

    def get_tools(self) -> list[Tool]:
        return [self.learn]


class Hyphenated(Think):
    """Has code over a tool whose name is another one in code."""

    workspace_tools = False
    code_tool = True

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [look_up]


class Guarded(Think):
    """Has a tool and a block whose names an extension might want."""

    workspace_tools = False

    def get_model(self) -> ScriptedModel:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [math_secret]

    def configure_session(self, session: SessionSetup) -> SessionSetup:
        return session.with_context("notes_private", provider=lambda: "the agent's own")


@pytest.fixture(autouse=True)
def no_extensions() -> Iterator[None]:
    Given.extensions = []
    yield
    Given.extensions = []
