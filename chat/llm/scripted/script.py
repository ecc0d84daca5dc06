"""The script language: the instructions of a user message for the scripted provider. Pure.

One directive a line; a line that is none is prose and is ignored. The grammar is in docs/design/models.md.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Text in which a backslash and an n break the line; `{result}` and `{results}` insert tool results.

    `kind`: text, reasoning or refusal.
    """

    text: str
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Numbered words, so that a lost or doubled one is seen."""

    count: int
    rate: float | None = None
    kind: str = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call. `flags` imitate deviating servers: whole, no-id, repeat-id, no-index, index-zero, id=X."""

    name: str
    arguments: str
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpError:
    """An error instead of an answer, for the first `times` requests (`None`: all), if the prompt is long enough."""

    line: int
    status: int
    code: str
    message: str
    headers: tuple[tuple[str, str], ...] = ()
    times: int | None = None
    above_characters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A break after `after` chunks. `how`: drop, stall, hang, end, error, garbage; `code` is for an in-band error."""

    line: int
    how: str
    after: int = 0
    times: int | None = 1
    seconds: float | None = None
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """A recorded answer of a provider, byte for byte. `name`: `provider/name` in the folder of recordings."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehave:
    """A deliberate fault: the log records chunk `at` as sent, the wire skips or repeats it."""

    how: str
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Chunks per second from here on; 0 is as fast as possible."""

    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A pause before the following directive."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The other directives of an answer: finish, usage, marker, parallel."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Echo:
    """Echo part of the request: `request` (messages as JSON) or `system`."""

    what: str


Directive: TypeAlias = Say | Words | Call | HttpError | Cut | Misbehave | Pace | Wait | Option | Echo | Play

_DEFAULT_CODES: Final = {
    400: "invalid_request_error",
    401: "invalid_api_key",
    403: "permission_error",
    404: "model_not_found",
    429: "rate_limit_exceeded",
    529: "overloaded_error",
}
_TIMES: Final = r"(?:\s+(?P<times>\d+)\s+times|\s+times\s+(?P<times2>\d+))?"
_RATE: Final = r"(?:\s+at\s+(?P<rate>\d+(?:\.\d+)?)/s)?"
_CALL: Final = re.compile(r"call tool (?P<name>[\w.-]+)\s*(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_FLAG: Final = re.compile(r"\s+(whole|no-id|repeat-id|no-index|index-zero|id=[\w.:-]+)$")


def parse(text: str) -> list[Directive]:
    """Parse the directives of a message. Never raises: other lines are prose."""
    directives: list[Directive] = []
    for number, line in enumerate(text.splitlines()):
        directive = _parse_line(number, line.strip())
        if directive is not None:
            directives.append(directive)
    return directives


def _parse_line(number: int, line: str) -> Directive | None:
    call = _CALL.fullmatch(line)
    if call:
        return _read_call(call["name"], call["rest"])
    for pattern, make in _PATTERNS:
        match = pattern.fullmatch(line)
        if match:
            return make(number, match)
    return None


def _read_call(name: str, rest: str) -> Call:
    flags = set()
    rest = " " + rest
    while match := _FLAG.search(rest):
        flags.add(match[1])
        rest = rest[: match.start()]
    return Call(name=name, arguments=rest.strip() or "{}", flags=frozenset(flags))


def _times(match: re.Match[str], default: int | None) -> int | None:
    count = match["times"] or match["times2"]
    return int(count) if count else default


def _lines(text: str) -> str:
    """A directive is one line; a backslash and an n in it are a line break of the answer."""
    return text.replace("\\n", "\n")


def _read_words(_: int, match: re.Match[str]) -> Directive:
    kind = "reasoning" if match["method"].lower() == "reason" else "text"
    return Words(count=int(match["count"]), rate=float(match["rate"]) if match["rate"] else None, kind=kind)


def _read_error(number: int, match: re.Match[str]) -> Directive:
    status = int(match["status"])
    headers = []
    for name in ("retry-after", "retry-after-ms", "retry-after-date"):
        found = re.search(rf"\s{name} (-?\d+(?:\.\d+)?)", match["options"])
        if found:
            headers.append((name, found[1]))
    code = re.search(r"\scode ([\w.-]+)", match["options"])
    times = re.search(r"\stimes (\d+)", match["options"])
    return HttpError(
        line=number,
        status=status,
        code=code[1] if code else _DEFAULT_CODES.get(status, "server_error" if status >= 500 else "bad_request"),
        message=f"The script asked for status {status}.",
        headers=tuple(headers),
        times=int(times[1]) if times else None,
    )


def _read_overflow(number: int, match: re.Match[str]) -> Directive:
    return HttpError(
        line=number,
        status=400,
        code="context_length_exceeded",
        message="This model's maximum context length is 8192 tokens. Please reduce the length of the messages.",
        times=_times(match, None),
        above_characters=int(match["above"] or 0),
    )


def _read_cut(number: int, match: re.Match[str]) -> Directive:
    seconds = match["seconds"]
    return Cut(
        line=number,
        how=match["how"].lower(),
        after=int(match["after"]),
        times=_times(match, 1),
        seconds=float(seconds) if seconds else None,
    )


def _read_in_band(number: int, match: re.Match[str]) -> Directive:
    return Cut(
        line=number,
        how="error",
        after=int(match["after"]),
        times=_times(match, 1),
        code=match["code"] or "server_error",
    )


def _read_hang(number: int, match: re.Match[str]) -> Directive:
    seconds = match["seconds"]
    return Cut(line=number, how="hang", times=_times(match, 1), seconds=float(seconds) if seconds else None)


_Make: TypeAlias = Callable[[int, re.Match[str]], Directive]


def _rule(pattern: str, make: _Make) -> tuple[re.Pattern[str], _Make]:
    return re.compile(pattern, re.IGNORECASE), make


_PATTERNS: Final = (
    _rule(r"say:\s?(?P<text>.*)", lambda _, m: Say(text=_lines(m["text"]))),
    _rule(r"reason:\s?(?P<text>.*)", lambda _, m: Say(text=_lines(m["text"]), kind="reasoning")),
    _rule(r"refuse(?::\s?(?P<text>.*))?", lambda _, m: Say(text=m["text"] or "I will not do that.", kind="refusal")),
    _rule(rf"(?P<method>stream|reason) (?P<count>\d+) (?:words|chunks){_RATE}", _read_words),
    _rule(
        r"malformed tool args (?P<name>[\w.-]+)", lambda _, m: Call(name=m["name"], arguments='{"path": "a.txt", "n": ')
    ),
    _rule(r"error (?P<status>[45]\d\d)(?P<options>(?:\s+[\w-]+ [\w.-]+)*)", _read_error),
    _rule(rf"context overflow(?: above (?P<above>\d+) characters)?{_TIMES}", _read_overflow),
    _rule(
        rf"(?P<how>drop|stall|end|garbage) after (?P<after>\d+)(?: chunks?)?(?: for (?P<seconds>[\d.]+) ?s)?{_TIMES}",
        _read_cut,
    ),
    _rule(rf"(?P<how>hang)(?: for (?P<seconds>[\d.]+) ?s)?{_TIMES}", _read_hang),
    _rule(rf"error in stream after (?P<after>\d+)(?: chunks?)?(?: code (?P<code>[\w.-]+))?{_TIMES}", _read_in_band),
    _rule(
        r"misbehave (?P<how>skip|repeat) chunk (?P<at>\d+)",
        lambda _, m: Misbehave(how=m["how"].lower(), at=int(m["at"])),
    ),
    _rule(r"rate:? (?P<rate>\d+(?:\.\d+)?)/s", lambda _, m: Pace(rate=float(m["rate"]))),
    _rule(r"wait:? (?P<seconds>\d+(?:\.\d+)?) ?s", lambda _, m: Wait(seconds=float(m["seconds"]))),
    _rule(
        r"(?P<name>finish|usage|marker):? (?P<value>.+)", lambda _, m: Option(name=m["name"].lower(), value=m["value"])
    ),
    _rule(r"parallel calls", lambda *_: Option(name="parallel", value="interleaved")),
    _rule(r"play (?P<name>[\w.-]+/[\w.-]+)", lambda _, m: Play(name=m["name"])),
    _rule(r"echo (?P<what>request|system)", lambda _, m: Echo(what=m["what"].lower())),
)
