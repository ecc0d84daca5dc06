"""All skills of a turn: what the model is shown of them, and how they are found."""

import asyncio
import difflib
import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final

from thinkproject.kernel.errors import ThinkError
from tools_app.errors import SkillInvalid
from tools_app.skills.skill import Skill, SkillFault

logger = logging.getLogger(__name__)

MAX_CATALOGUE_CHARS: Final = 24_000
LOAD_SECONDS: Final = 10.0
BEGINNING: Final = (
    "Skills are instructions for certain tasks. When a task fits one of these, call activate_skill with its name "
    "before you begin, and follow what it says. Call it again if its text is no longer in the conversation.\n"
)


class SkillLibrary:
    """Skills by name. Of two with one name the later counts, as with tools."""

    def __init__(self, skills: Iterable[Skill] = (), faults: Iterable[SkillFault] = ()) -> None:
        self._skills = {skill.head.name: skill for skill in skills}
        self.faults = tuple(faults)

    def __len__(self) -> int:
        return len(self._skills)

    def __iter__(self) -> Iterator[Skill]:
        return iter(sorted(self._skills.values(), key=lambda skill: skill.head.name))

    @property
    def names(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._skills)

    def get(self, name: str) -> Skill:
        """Find a skill. Errors: `SkillInvalid`, which names near ones."""
        if name in self._skills:
            return self._skills[name]
        near = difflib.get_close_matches(name, self._skills, n=3)
        raise SkillInvalid(f"There is no skill {name!r}." + (f" Did you mean {', '.join(near)}?" if near else ""))

    def catalogue(self) -> str:
        """The list for a system prompt, sorted by name; empty without skills."""
        if not self._skills:
            return ""
        lines: list[str] = []
        room = MAX_CATALOGUE_CHARS
        for skill in self:
            line = f"- {skill.head.name}: {skill.head.description}".replace("</", "< /")
            if len(line) > room:
                lines.append(f"- ... and {len(self) - len(lines)} more, which activate_skill lists")
                break
            lines.append(line)
            room -= len(line)
        return f"\n\n<skills>\n{BEGINNING}" + "\n".join(lines) + "\n</skills>"


async def load_skills(sources: Iterable[Any]) -> SkillLibrary:
    """Ask the sources, all at once. What cannot be loaded is logged and left out, and so is a source that fails.

    Errors: those that a source of your own raises beside `ThinkError` and `OSError`.
    """
    skills: list[Skill] = []
    faults: list[SkillFault] = []
    for found in await asyncio.gather(*(_load(source) for source in sources)):
        skills += [item for item in found if isinstance(item, Skill)]
        faults += [item for item in found if isinstance(item, SkillFault)]
    for fault in faults:
        extra = {"action": "skill_not_loaded", "place": fault.place[:200], "reason": fault.reason}
        logger.warning("a skill was not loaded", extra=extra)
    return SkillLibrary(skills, faults)


async def _load(source: Any) -> list[Skill | SkillFault]:
    try:
        async with asyncio.timeout(LOAD_SECONDS):
            return list(await source.load())
    except (ThinkError, OSError, UnicodeError) as error:  # one that fails, or takes too long, blocks nothing
        logger.warning("a source of skills failed", exc_info=True, extra={"action": "skill_source_failed"})
        return [SkillFault(place=type(source).__name__, reason=f"{type(error).__name__}: {error}"[:300])]
