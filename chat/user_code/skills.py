"""The skills of an agent."""

from collections.abc import Sequence
from typing import Any

from chat.agent.think import Think
from chat.user_code.call_hook import call_hook, is_overridden, user_code_boundary
from tools_app.skills.library import SkillLibrary, load_skills
from tools_app.skills.skill import Loaded

NO_SKILLS = SkillLibrary()


async def skills_of(agent: Think) -> SkillLibrary:
    """The skills that the agent's sources give. Errors: `AgentCodeFailed` when `get_skills` itself raises."""
    if not is_overridden(agent, "get_skills"):
        return NO_SKILLS
    sources = await call_hook(agent, "get_skills")
    return await load_skills([_OwnSource(source) for source in sources or ()])


class _OwnSource:
    """A source that may be a developer's own: whatever it raises is an error of the agent's code."""

    def __init__(self, source: Any) -> None:
        self._source = source

    async def load(self) -> Sequence[Loaded]:
        """As `SkillSource.load`. Errors: `AgentCodeFailed`."""
        with user_code_boundary("get_skills"):
            return list(await self._source.load())
