"""Console output as a model reads it."""

from collections.abc import Iterable
from typing import Final

from sessions_app.core.messages.truncation import END_SHARE, cut_text
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
    """The first and the last lines of a console, as many as a model reads."""
    if sum(len(line["text"]) for line in console) <= MAX_CONSOLE_CHARS:
        return [{"level": line["level"], "text": line["text"]} for line in console]
    end_chars = MAX_CONSOLE_CHARS // END_SHARE
    end = _fitting(reversed(console), end_chars)
    begin = _fitting(console[: len(console) - len(end)], MAX_CONSOLE_CHARS - end_chars)
    missing = len(console) - len(begin) - len(end)
    notice = [{"level": "log", "text": f"({missing} more lines)"}] if missing else []
    return [*begin, *notice, *reversed(end)]


def _fitting(lines: Iterable[JSONObject], room: int) -> list[JSONObject]:
    """As many lines as have room, and the one that has it in part."""
    shown: list[JSONObject] = []
    for line in lines:
        if room <= 0:
            break
        shown.append({"level": line["level"], "text": cut_text(line["text"], room)})
        room -= len(line["text"])
    return shown
