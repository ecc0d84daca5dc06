"""Console output as a model reads it."""

from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.code.truncation import truncated

MAX_CONSOLE_CHARS: Final = 8000


def failure_text(error: str, console: list[JSONObject]) -> str:
    """The error of code, with what it had said before."""
    lines = "".join(f"\n{_prefixed(line)}" for line in short_console(console))
    words = f"\n\nConsole output:{lines}" if lines else ""
    return truncated(f"Code execution failed: {error}{words}")


def _prefixed(line: JSONObject) -> str:
    level = line["level"]
    return f"[{level}] {line['text']}" if level in {"warn", "error"} else str(line["text"])


def short_console(console: list[JSONObject]) -> list[JSONObject]:
    """The first lines of a console, as many as a model reads."""
    left = MAX_CONSOLE_CHARS
    shown: list[JSONObject] = []
    for line in console:
        if left <= 0:
            shown.append({"level": "log", "text": f"({len(console) - len(shown)} more lines)"})
            break
        shown.append({"level": line["level"], "text": line["text"][:left]})
        left -= len(line["text"])
    return shown
