"""Names of extensions and of what they bring: a prefix keeps the tools and context blocks of each apart."""

import re
from typing import Final

from thinkproject.kernel.phrases import Phrase
from tools_app.errors import ExtensionInvalid

MAX_NAME_CHARS: Final = 40
MAX_TOOL_CHARS: Final = 64
_TOOL: Final = re.compile(r"[A-Za-z0-9_]+")
_RUN: Final = re.compile(r"[^A-Za-z0-9]+")


def prefix_of(name: str) -> str:
    """The prefix of an extension's tools and blocks: `my-math 2` has `my_math_2`. Errors: `ExtensionInvalid`."""
    found = _RUN.sub("_", name).strip("_")
    if not found:
        raise ExtensionInvalid(
            Phrase("An extension cannot be called {name!r}: a letter or a digit is needed.", name=name)
        )
    return found


def tool_name(prefix: str, name: str) -> str:
    """The name of a tool for models: `math_add`. Errors: `ExtensionInvalid` for one that providers refuse."""
    made = f"{prefix}_{name}"
    if not _TOOL.fullmatch(name) or len(made) > MAX_TOOL_CHARS:
        raise ExtensionInvalid(
            Phrase(
                "The tool {name!r} cannot be called {made!r}: letters, digits and '_', at most {limit} in all.",
                name=name,
                made=made,
                limit=MAX_TOOL_CHARS,
            )
        )
    return made


def tool_description(name: str, description: str) -> str:
    """The description of a tool for models: that of its author, after the extension's name."""
    return f"[{name}] {description}".strip()


def block_label(prefix: str, label: str) -> str:
    """The label of a context block: `notes_scratchpad`."""
    return f"{prefix}_{label}"
