"""Slash commands: templates of a class that people fill in by `/name words`. Pure.

commands = [Command("test", "Run !`npm test -- $ARGUMENTS` and mend what fails.")]
"""

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from chat.errors import InputInvalid
from thinkproject.kernel.phrases import Phrase

BUILT_IN: Final = ("undo", "redo", "compact", "title")
"""Commands that every conversation has; no class may take their names."""

SUMMARISE_TEXT: Final = "Summarise what the task above found, and go on with what I asked for."
"""Text for the model behind the result of a command's sub-agent, so that it goes on by itself. Never stored."""

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
_TYPED: Final = re.compile(r"/([a-z][a-z0-9-]*)(?:\s+(.*))?", re.DOTALL)
_PLACE: Final = re.compile(r"\$(ARGUMENTS|[1-9][0-9]?)")
_SCRIPT: Final = re.compile(r"!`([^`\n]+)`")
_WORD: Final = re.compile(r'"([^"]*)"|\'([^\']*)\'|(\S+)')
_TAKEN: Final = frozenset({*BUILT_IN, "summarize", "summarise", "clear", "help", "quit", "queue", "steer", "interrupt"})
_ANSWERS: Final = frozenset({"once", "always", "reject", "answer"})  # of questions, in the terminal


@dataclass(frozen=True, slots=True)
class Command:
    """A template under a name.

    `template`: `$ARGUMENTS` is all that stands behind the command, `$1` to `$99` single words, of which the highest
    that the template has takes the rest; without any of them what was typed follows the template. `` !`script` `` runs
    before the model reads the message: as a call of the tool `shell`, with its rules and approvals.
    `agent`: the name of an agent's tool that does it, as a task; the model goes on from what that found. `model`: for
    this answer alone. Errors: `InputInvalid` for a name that cannot be typed or is taken.
    """

    name: str
    template: str
    description: str = ""
    agent: str = ""
    model: str = ""
    shell: str = "bash"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or self.name in _TAKEN | _ANSWERS:
            raise InputInvalid(Phrase("{name!r} cannot be the name of a command.", name=self.name))

    @property
    def takes_text(self) -> bool:
        """Whether words behind the command have a place in the template."""
        return _PLACE.search(self.template) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A template with the words that were typed. `scripts`: to run before, in order."""

    text: str
    scripts: tuple[str, ...]


def typed_command(text: str, commands: Iterable[Command]) -> tuple[Command, str] | None:
    """The command that a text is, with what stands behind it; nothing for any other text."""
    typed = _TYPED.fullmatch(text.strip())
    if typed is None:
        return None
    found = next((command for command in commands if command.name == typed[1]), None)
    return None if found is None else (found, (typed[2] or "").strip())


def fill(command: Command, arguments: str) -> Filled:
    """Fill in a template. In a script each word stays one word, whatever is in it; in the text a script is named."""
    words = [next(part for part in found.groups() if part is not None) for found in _WORD.finditer(arguments)]
    numbers = [int(found[1]) for found in _PLACE.finditer(command.template) if found[1] != "ARGUMENTS"]
    last = max(numbers, default=0)

    def filled(piece: str, *, is_script: bool) -> str:
        def value(place: "re.Match[str]") -> str:
            if place[1] == "ARGUMENTS":
                return shlex.join(words) if is_script else arguments
            at = int(place[1]) - 1
            chosen = words[at:] if at + 1 == last else words[at : at + 1]
            return shlex.join(chosen) if is_script else " ".join(chosen)

        return _PLACE.sub(value, piece)

    pieces = _SCRIPT.split(command.template)  # every second one is a script
    scripts = tuple(filled(piece, is_script=True) for piece in pieces[1::2])
    named = [
        f"`{scripts[at // 2]}` (its output is below)" if at % 2 else filled(piece, is_script=False)
        for at, piece in enumerate(pieces)
    ]
    text = "".join(named)
    if arguments and not command.takes_text:
        text = f"{text}\n\n{arguments}"
    return Filled(text=text, scripts=scripts)
