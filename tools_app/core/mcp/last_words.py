"""The last words of a server's program, as a sentence for the person who wants to use it. Pure.

Programs print warnings, usage, stack traces and logs to their standard error, and somewhere in it the line that says
what is missing. That line is a stranger's text: it is chosen, cut and shown, never interpreted.
"""

import json
import re
from collections.abc import Collection
from typing import Final

from thinkproject.kernel.phrases import Phrase

MAX_LINE_CHARS: Final = 300
MAX_NAMES: Final = 4
SECRET_CHARS: Final = 4
"""The shortest value that is taken for a secret: shorter ones (`1`, `on`) stand in any text."""
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_NOISE: Final = re.compile(
    r"""\s* (?: at\s | File\s" | \(node:\d | \(Use\s` | hint: | info: | Usage: )
    | .*Warning: | .*For\ further\ information | [^\w]*$""",
    re.VERBOSE,
)
_TROUBLE: Final = re.compile(
    r"error|fail|required|missing|not set|not provided|no \S+( \S+)? provided|must|invalid|cannot|unable|denied|refused"
    r"|please|unauthori[sz]ed|exception|fatal|not found|ENOTFOUND",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"\b(?!ERR_)[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_KEY: Final = re.compile(r"api.?key|token|credential|password", re.IGNORECASE)
_UNREACHED: Final = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|fetch failed|getaddrinfo"
    r"|Name or service not known|name resolution|connection refused|ConnectError",
    re.IGNORECASE,
)


def telling_line(printed: str) -> str:
    """The line of a standard error that says most: a trouble, best with what is missing, else the last words."""
    best, best_score = "", -1
    for raw in _COLOURS.sub("", printed).splitlines():
        if _NOISE.match(raw):
            continue
        line = _of_log(raw.strip())
        score = 0
        if _TROUBLE.search(line):
            score = 4 + 2 * bool(_NAME.search(line) or _KEY.search(line)) - raw[:1].isspace()
        if score >= best_score:
            best, best_score = line, score
    return " ".join("".join(char if char.isprintable() else " " for char in best).split())[:MAX_LINE_CHARS]


def without_secrets(text: str, secrets: Collection[str]) -> str:
    """The text with an ellipsis for each secret, the longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "…") if len(secret) >= SECRET_CHARS else text
    return text


def ending(printed: str, given: Collection[str]) -> Phrase | None:
    """Say why a program has ended, as far as it said. `given`: the names of variables that it was given."""
    line = telling_line(printed)
    if not line:
        return None
    line = line if line[-1] in ".!?…" else f"{line}."
    names = [name for name in dict.fromkeys(_NAME.findall(line)) if name not in given][:MAX_NAMES]
    if names and _TROUBLE.search(line):
        return Phrase(
            "The program of the server ended: {line} Such variables are given with the server: {names}.",
            line=line,
            names=", ".join(names),
        )
    if _UNREACHED.search(line):
        return Phrase("The program of the server ended: {line} It could not reach an address that it needs.", line=line)
    return Phrase("The program of the server ended: {line}", line=line)


def slow_start(printed: str, seconds: float) -> Phrase:
    """Say that a program has not answered in time, and what trouble it printed meanwhile."""
    line = telling_line(printed)
    if _TROUBLE.search(line) is None:
        return Phrase("The server did not answer within {seconds} s.", seconds=round(seconds))
    return Phrase("The server did not answer within {seconds} s. It printed: {line}", seconds=round(seconds), line=line)


def _of_log(line: str) -> str:
    """The message of a line of a log that is written as JSON."""
    if not line.startswith("{"):
        return line
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return line
    found = (entry[name] for name in ("error", "err", "msg", "message", "event") if isinstance(entry.get(name), str))
    return next(found, line)
