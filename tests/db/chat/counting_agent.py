"""An agent with what agents have besides their conversation: state, methods for clients, agents below, skills."""

from collections.abc import AsyncIterator
from typing import Any, ClassVar

from chat.llm.scripted import ScriptedModel
from chat.think import StreamResult, Think, client_callable
from chat.tools.skills import SkillsInCode


class CounterBase(Think, abstract=True):
    """Counts."""

    initial_state = {"count": 0}
    sub_agents: ClassVar[Any] = ("counter-under-test",)
    config_access = "read"
    allows_recursion = True

    def get_model(self) -> ScriptedModel:
        return ScriptedModel()

    def get_skills(self) -> Any:
        tidy = "---\nname: tidy\ndescription: How to tidy up.\n---\nPut it back."
        return [SkillsInCode({"tidy": tidy, "odd": "no head"})]

    def is_read_only(self, connection: Any) -> bool:
        return bool(connection.query.get("as") == "guest")

    def validate_state_change(self, state: Any, source: str) -> None:
        del source
        if state["count"] < 0:
            raise ValueError("a secret of the server")

    def on_before_sub_agent(self, agent: str, name: str) -> bool:
        del agent
        return name != "closed"

    @client_callable
    async def add(self, by: int = 1) -> Any:
        """Count on."""
        await self.set_state({"count": (await self.get_state())["count"] + by})
        return await self.get_state()

    @client_callable(name="countTo")
    async def count_to(self, end: int) -> AsyncIterator[Any]:
        for number in range(end):
            yield number
        yield StreamResult("done")

    @client_callable
    def fails(self) -> None:
        raise RuntimeError("a secret of the server")

    @client_callable
    def odd(self) -> Any:
        return {1, 2}
