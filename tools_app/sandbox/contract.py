"""The contract of a sandbox: it runs code of a stranger, answers its calls, and keeps within its limits.

Nothing here knows how the code is confined. A sandbox never raises for anything that the code does: whatever happens
is a `RunResult`. What `calls` raises as an `Exception` becomes an exception in the code; what it raises as another
`BaseException` (a turn that parks) ends the run, once the calls that still run have ended.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, Protocol, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a call. `now_ms`: the clock of the code does not show less from here on; 0 leaves it alone."""

    value: JSONValue = None
    now_ms: int = 0


CallHandler: TypeAlias = Callable[[str, list[JSONValue]], Awaitable[Answer]]
"""Answers a call of the code: its dotted name (`tools.search`) and its arguments. Both are a stranger's."""

Language: TypeAlias = Literal["javascript", "typescript"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Code to run. `source`: an expression whose value is a function without parameters; its result is the value.

    `namespaces`: global names whose members are calls (`tools`: `tools.search(…)` calls `tools.search`).
    `modules`: sources of ES modules by name, given to the code by `await load(name)`;
    those whose names end in `.ts` are TypeScript.
    `files`: contents by path, for Python.
    `seed` and `now_ms` (since 1970) make randomness and the clock of the code the same whenever it runs again.
    """

    source: str
    language: Language = "typescript"
    namespaces: tuple[str, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    seed: str = "0"
    now_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run. Whatever exceeds one ends the run, except a call too many or too large, which fails.

    `seconds`: by the clock, calls included. `cpu_seconds`: of the processor. `output_bytes`: console and value
    together. `call_bytes`: of one call's arguments, and of its result. `concurrent_calls`: answered at a time; further
    ones wait.
    """

    seconds: float = 60.0
    cpu_seconds: int = 30
    memory_bytes: int = 256 * 1024 * 1024
    output_bytes: int = 1_000_000
    calls: int = 1000
    call_bytes: int = 1_000_000
    concurrent_calls: int = 16


DEFAULT_LIMITS: Final = Limits()


class SandboxOutcome(StrEnum):
    """The end of a run. Only `OK` has a value."""

    OK = "ok"
    ERROR = "error"  # the code raised something, or could not be parsed
    TIMEOUT = "timeout"  # by the clock or by the processor
    MEMORY = "memory"
    OUTPUT = "output"  # too much of it
    CRASHED = "crashed"  # the process ended by itself, or said what no runner says


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestError:
    """The error that ended a run, in words of the code or of the sandbox."""

    name: str
    message: str
    stack: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLine:
    """One line of console output."""

    level: str
    text: str

    def to_json(self) -> JSONObject:
        """As it is stored and shown."""
        return {"level": self.level, "text": self.text}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The result of a run. `value` is a stranger's, like everything else in it."""

    outcome: SandboxOutcome
    value: JSONValue = None
    error: GuestError | None = None
    console: tuple[ConsoleLine, ...] = ()
    duration_ms: int = 0


class Sandbox(Protocol):
    """Runs code of strangers."""

    async def run(
        self, script: Script, *, calls: CallHandler, limits: Limits = DEFAULT_LIMITS, share: str = ""
    ) -> RunResult:
        """Run a script once. Waits for its turn first: `share` names whose runs count together (a user).

        Cancelling the task ends the run at once and leaves no process. Durability: none; the caller records.
        Errors: `SandboxUnavailable` where no code can be run, or none soon enough; `calls`' own as described above.
        """
