"""The rules of the injection guard: which texts count, what a person has decided, how a class relaxes it. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.origins import UNTRUSTED, Origin
from tools_app.core.source import Source
from tools_app.core.tool_names import check_patterns, grants
from tools_app.errors import ToolDeclarationInvalid

ORIGIN: Final = "origin"
"""Name in the details of a call of the origins of its result (`tools_app.core.tool_calls.details_of`)."""

MAX_SOURCES: Final = 20
"""Origins that one call names; further ones are counted as one more without a source."""

MAX_SOURCE_CHARS: Final = 200
MIN_REASON_CHARS: Final = 10
_KINDS: Final = frozenset(origin.value for origin in Origin)


@dataclass(frozen=True, slots=True)
class SeenText:
    """A text of others in a conversation. `source`: an address, a path, a server's name; for people."""

    origin: Origin
    source: str = ""

    def __post_init__(self) -> None:
        """Make the source one line that can be stored and shown."""
        object.__setattr__(self, "source", clean_source(self.source))

    def to_json(self) -> JSONObject:
        """The form in messages, on the wire and in rows."""
        return {"kind": self.origin.value, "source": self.source}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """The spot of a text in a conversation: a call's result, a message's file, or something that is in no message.

    `name`: of the latter; it differs whenever the text does, as with a fingerprint.
    """

    message_id: str = ""
    call_id: str = ""
    name: str = ""


class GuardDecision(StrEnum):
    """The last decision of a person about the guard of a conversation."""

    NONE = ""
    ASK = "ask"  # go on asking; also: back on
    UNTIL_NEW = "until_new"  # allowed until there is further text of others
    CONVERSATION = "conversation"  # allowed in this conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The guard of one conversation as it is stored.

    `seen`: texts of others so far; `decided_through`: how many of them the decision was about.
    """

    seen: int = 0
    decision: GuardDecision = GuardDecision.NONE
    decided_through: int = 0

    def is_guarded(self, more: int = 0) -> bool:
        """Whether calls need a person's decision. `more`: texts that are not stored yet."""
        if not self.seen + more or self.decision is GuardDecision.CONVERSATION:
            return False
        if self.decision is GuardDecision.UNTIL_NEW:
            return self.seen + more > self.decided_through
        return True


CLEAN: Final = Standing()


@dataclass(frozen=True, kw_only=True)
class InjectionGuard:
    """The guard of an agent's conversations, as the class has it. This one trusts no text of others.

    `reason`: why a class relaxes it; `trusts`: origins whose texts do not count; `allows`: patterns of tools whose
    calls need no decision in a guarded conversation, the class's own unless a pattern names a source (`"mcp:notes_*"`).
    """

    reason: str = ""
    trusts: Collection[Origin] = ()
    allows: Sequence[str] = ()
    is_on: bool = True

    def counts(self, origin: Origin) -> bool:
        """Whether text of this origin sets the guard."""
        return self.is_on and origin in UNTRUSTED and origin not in self.trusts

    def lets_run(self, name: str, source: Source, *, is_read_only: bool, is_open_world: bool) -> bool:
        """Whether a call of this tool needs no decision in a guarded conversation."""
        if is_read_only and not is_open_world:
            return True
        return bool(self.allows) and grants(check_patterns(self.allows), name, source)


@dataclass(frozen=True, kw_only=True)
class Relaxed(InjectionGuard):
    """A weaker guard, with the reason why it is enough: `Relaxed(reason="Reads our own wiki", trusts=[Origin.WEB])`.

    With neither `trusts` nor `allows` the guard is off. Errors: `ToolDeclarationInvalid` without a reason in words, for
    an origin that is never counted, and for patterns that are none.
    """

    reason: str
    is_on: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        """Refuse what is no declaration."""
        if len(" ".join(str(self.reason).split())) < MIN_REASON_CHARS:
            raise ToolDeclarationInvalid("Relaxed(reason=…) says in a few words why the injection guard may be weaker.")
        wrong = [origin for origin in self.trusts if origin not in UNTRUSTED]
        if isinstance(self.trusts, str) or wrong:
            known = ", ".join(f"Origin.{origin.name}" for origin in Origin if origin in UNTRUSTED)
            raise ToolDeclarationInvalid(f"Relaxed(trusts=…) has origins among {known}, not {self.trusts!r}")
        check_patterns(self.allows)
        object.__setattr__(self, "is_on", bool(self.trusts or self.allows))


ON: Final = InjectionGuard()


@dataclass(frozen=True, kw_only=True)
class Together(InjectionGuard):
    """Several guards at once: what sets one of them counts, and a call runs without a decision where all let it run."""

    guards: tuple[InjectionGuard, ...]

    def counts(self, origin: Origin) -> bool:
        """Whether text of this origin sets any of them."""
        return any(guard.counts(origin) for guard in self.guards)

    def lets_run(self, name: str, source: Source, *, is_read_only: bool, is_open_world: bool) -> bool:
        """Whether a call of this tool needs no decision in any of them."""
        facts = {"is_read_only": is_read_only, "is_open_world": is_open_world}
        return all(guard.lets_run(name, source, **facts) for guard in self.guards)


def strictest(guards: Sequence[InjectionGuard]) -> InjectionGuard:
    """One guard that is no weaker than any of these, of which there is at least one. One that is off adds nothing."""
    active: list[InjectionGuard] = []
    for guard in guards:
        if guard.is_on and guard not in active:
            active.append(guard)
    if ON in active:
        return ON
    if len(active) > 1:
        return Together(guards=tuple(active), reason=" ".join(guard.reason for guard in active))
    return active[0] if active else guards[0]


def clean_source(text: str) -> str:
    """A source as it is stored and shown: one line of what can be seen, at most `MAX_SOURCE_CHARS`."""
    cut = text[: MAX_SOURCE_CHARS + 1]
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in cut)
    return shown if len(shown) <= MAX_SOURCE_CHARS else f"{shown[: MAX_SOURCE_CHARS - 1]}…"


def noted(texts: Iterable[SeenText]) -> list[SeenText]:
    """The texts without repetitions, at most `MAX_SOURCES`, and one more for what is beyond."""
    found = list(dict.fromkeys(texts))
    beyond = found[MAX_SOURCES:]
    return found if not beyond else [*found[:MAX_SOURCES], SeenText(beyond[0].origin)]


def texts_in(details: Mapping[str, Any]) -> list[SeenText]:
    """The origins that the details of a call name. What is none is left out."""
    given = details.get(ORIGIN)
    entries = [entry for entry in (given if isinstance(given, list) else ()) if isinstance(entry, Mapping)]
    return [
        SeenText(Origin(str(entry["kind"])), str(entry.get("source") or ""))
        for entry in entries
        if entry.get("kind") in _KINDS
    ]
