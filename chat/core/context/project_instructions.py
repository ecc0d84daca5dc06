"""The part of a system prompt that a conversation has from the project that it is in."""

from dataclasses import dataclass
from typing import Final

from chat.core.context.person_instructions import NO_INSTRUCTIONS, PersonInstructions

OPENING: Final = "This conversation is in a project of the person who asks. Its name: “{name}”."
WRITTEN: Final = "They have written this for all of its conversations. Follow it where it fits:"
FILES: Final = (
    "The project has files, apart from those of the conversation. Look at them where they may help: "
    "`find_project_files` lists them, `grep_project_files` searches in them, `read_project_file` reads one."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectContext:
    """A project as far as a model reads of it. `id`: empty for none. `has_files`: there are some to read."""

    id: str = ""
    name: str = ""
    instructions: str = ""
    has_files: bool = False

    @property
    def text(self) -> str:
        """The part for the prompt; empty for a project that has nothing to read but its name."""
        written = self.instructions.strip()
        if not written and not self.has_files:
            return ""
        pieces = [OPENING.format(name=_inert(self.name))]
        if written:
            pieces.append(f"{WRITTEN}\n{_inert(written)}")
        if self.has_files:
            pieces.append(FILES)
        return "<project>\n" + "\n\n".join(pieces) + "\n</project>"


def _inert(text: str) -> str:
    """None of it ends the tag."""
    return text.replace("</", "< /")


NO_PROJECT: Final = ProjectContext()


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenByPeople:
    """All that a system prompt has of people: of the person who asks, and of the conversation's project."""

    person: PersonInstructions = NO_INSTRUCTIONS
    project: ProjectContext = NO_PROJECT


NOTHING_WRITTEN: Final = WrittenByPeople()
