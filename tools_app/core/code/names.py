"""Names of tools as names in code."""

import re
from collections.abc import Iterable
from typing import Final

from tools_app.errors import CodeInvalid

KEYWORDS: Final = frozenset(
    [
        "arguments",
        "await",
        "break",
        "case",
        "catch",
        "class",
        "const",
        "continue",
        "debugger",
        "default",
        "delete",
        "do",
        "else",
        "enum",
        "eval",
        "export",
        "extends",
        "false",
        "finally",
        "for",
        "function",
        "if",
        "implements",
        "import",
        "in",
        "instanceof",
        "interface",
        "let",
        "new",
        "null",
        "package",
        "private",
        "protected",
        "public",
        "return",
        "static",
        "super",
        "switch",
        "this",
        "throw",
        "true",
        "try",
        "typeof",
        "undefined",
        "var",
        "void",
        "while",
        "with",
        "yield",
    ]
)


def identifier(name: str) -> str:
    """A tool's name as a JavaScript identifier: `my-tool.v2` becomes `my_tool_v2`, `2fa` `_2fa`, `delete` `delete_`."""
    text = re.sub(r"[^A-Za-z0-9_$]", "", re.sub(r"[-. ]", "_", name))
    if not text or text[0].isdigit():
        text = f"_{text}"
    return f"{text}_" if text in KEYWORDS else text


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Identifiers to the names they stand for. Errors: `CodeInvalid` where two names share one."""
    found: dict[str, str] = {}
    for name in names:
        text = identifier(name)
        if text in found:
            raise CodeInvalid(f"The tools {found[text]!r} and {name!r} have the same name in code: {text!r}.")
        found[text] = name
    return found
