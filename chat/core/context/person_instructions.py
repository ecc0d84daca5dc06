"""The part of a system prompt that the person who asks has written: who they are, and how to answer them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

OPENING: Final = (
    "The person who asks has written this for you. Follow it where it fits, and do not bring it up unasked."
)
ABOUT: Final = "About them:"
ANSWERS: Final = "How to answer them:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonInstructions:
    """The instructions of one person. `read_by`: the agents that read them, by route name; `None`: all."""

    about_me: str = ""
    how_to_answer: str = ""
    read_by: Sequence[str] | None = None

    def text_for(self, agent: str) -> str:
        """The part for the prompt of this agent; empty where there is none, or it is not for this agent."""
        if self.read_by is not None and agent not in self.read_by:
            return ""
        pieces = [
            f"{heading}\n{text.strip()}"
            for heading, text in ((ABOUT, self.about_me), (ANSWERS, self.how_to_answer))
            if text.strip()
        ]
        if not pieces:
            return ""
        written = "\n\n".join(pieces).replace("</", "< /")  # none of it ends the tag
        return f"<person_instructions>\n{OPENING}\n\n{written}\n</person_instructions>"


NO_INSTRUCTIONS: Final = PersonInstructions()
