"""The part of a system prompt that stays as it was sent, and the blocks that hold something else by now. Pure.

A provider's cache serves a prompt as far as it begins like the one before. So what is written to a block while a
conversation goes on stands behind the conversation, until there is another reason to render the prompt anew.
"""

import re
from dataclasses import dataclass
from typing import Final

from sessions_app.core.context.context_blocks import BAR

CHANGED_TEXT: Final = (
    "[This is not from the user. Blocks of your context have changed since your instructions were written. They hold "
    "now:]"
)
_HEAD: Final = re.compile(rf"^{BAR}\n(.*)\n{BAR}$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptHead:
    """A system prompt, and a note for the end of the conversation; an empty one where nothing changed."""

    system: str
    note: str = ""

    @property
    def text(self) -> str:
        """Both, for people."""
        return f"{self.system}\n\n{self.note}" if self.note else self.system


def changes_between(kept: str, current: str) -> str | None:
    """The note that makes a kept prompt say what the current one does; `None` where no note can.

    That is where a block was added, removed, renamed or moved, or where what stands above the blocks changed.
    """
    before, now = _sections(kept), _sections(current)
    if [head for head, _ in before] != [head for head, _ in now] or before[0] != now[0]:
        return None
    changed = [section for section, former in zip(now[1:], before[1:], strict=True) if section != former]
    if not changed:
        return ""
    return "\n\n".join([CHANGED_TEXT, *(f"{BAR}\n{head}\n{BAR}\n{content}".strip() for head, content in changed)])


def _sections(prompt: str) -> list[tuple[str, str]]:
    """The heads with what stands below each; first what stands above all of them, without a head."""
    base, *found = _HEAD.split(prompt)
    return [("", base), *((head, content.strip("\n")) for head, content in zip(found[::2], found[1::2], strict=True))]
