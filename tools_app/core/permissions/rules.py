"""Rules about calls: which run, which a person is asked about, which are refused. Pure.

    permissions = [Permission.deny("@changes"), Permission.allow("bash", "git status *")]

A rule speaks of tools by a key and of what they are called with by a pattern. The last rule that matches decides, over
the product's own rules, those of the site, of the class, of the person, of the conversation. What the site or a class
denies stays denied.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.permissions.secret_files import folded
from tools_app.core.permissions.subjects import ANYTHING, Subject, subject_from
from tools_app.core.source import OF_OTHERS, Source
from tools_app.errors import ToolDeclarationInvalid

CHANGES: Final = "@changes"
"""Key of all tools that do not say that they only read."""

SECRETS: Final = "@secrets"
"""Pattern of files that hold secrets (`secret_files`), and of commands that name one."""

RULE: Final = "rule"
"""Name in the details of a call of the rule that decided about it."""

MAX_KEY_CHARS: Final = 128
MAX_PATTERN_CHARS: Final = 1000
_BELOW: Final = "\0"
_KEY: Final = re.compile(r"@changes|(?:[a-z]+:)?[A-Za-z0-9_*?.\[\]!-]{1,100}")


class RuleAction(StrEnum):
    """The fate of a call that a rule matches."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class RuleLevel(StrEnum):
    """The level of a rule: whose it is. The order of the members is that in which they count: a later one decides."""

    BUILT_IN = "built_in"
    SITE = "site"
    CLASS = "class"
    OWNER = "owner"
    CONVERSATION = "conversation"


_ORDER: Final = list(RuleLevel)
_FINAL: Final = (RuleLevel.SITE, RuleLevel.CLASS)
_STRENGTH: Final = {RuleAction.DENY: 3, RuleAction.ASK: 2, None: 1, RuleAction.ALLOW: 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A rule about calls of tools.

    `key`: a tool's name or permission, with `*` and `?`; `mcp:…`, `extensions:…` for tools of that source; `@changes`.
    `pattern`: of what the call is about; `*` and `?` stand for any characters, and a pattern that ends with ` *` also
    matches a command without arguments; `@secrets`. An allowance whose key names no source says nothing about tools
    that others bring, and covers a secret only by its exact name or `@secrets`.
    """

    action: RuleAction
    key: str
    pattern: str = "*"
    level: RuleLevel = RuleLevel.CLASS
    rule_id: str = ""
    expires_at: datetime | None = None

    @classmethod
    def allow(cls, key: str, pattern: str = "*") -> "Permission":
        """Let calls run that would ask. Errors: `ToolDeclarationInvalid` for what is no key or pattern."""
        return checked(cls(action=RuleAction.ALLOW, key=key, pattern=pattern))

    @classmethod
    def ask(cls, key: str, pattern: str = "*") -> "Permission":
        """Have a person decide. Errors: as above."""
        return checked(cls(action=RuleAction.ASK, key=key, pattern=pattern))

    @classmethod
    def deny(cls, key: str, pattern: str = "*") -> "Permission":
        """Refuse calls. Errors: as above."""
        return checked(cls(action=RuleAction.DENY, key=key, pattern=pattern))

    @property
    def name(self) -> str:
        """The rule in words of its own: `deny bash: rm *`."""
        return f"{self.action.value} {self.key}" + ("" if self.pattern == "*" else f": {self.pattern}")

    def used(self) -> JSONObject:
        """The form in the details of a call that it decided about."""
        return {"id": self.rule_id, "name": self.name, "action": self.action.value, "level": self.level.value}


BUILT_IN: Final = (Permission(action=RuleAction.ASK, key="*", pattern=SECRETS, level=RuleLevel.BUILT_IN),)
"""Rules of the product: reading and writing of files that hold secrets asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """The facts of a call that rules go by. `subjects`: what it is about."""

    name: str
    permission: str = ""
    source: Source = Source.AGENT
    changes: bool = True
    is_high_risk: bool = False
    subjects: tuple[Subject, ...] = (ANYTHING,)

    @property
    def key(self) -> str:
        """The key of a rule about this tool and no other."""
        name = self.permission or self.name
        return f"{self.source.value}:{name}" if self.source in OF_OTHERS else name

    def to_json(self) -> JSONObject:
        """The form that is stored with a question."""
        return {
            "name": self.name,
            "permission": self.permission,
            "source": self.source.value,
            "changes": self.changes,
            "high": self.is_high_risk,
            "subjects": [subject.to_json() for subject in self.subjects],
        }


def facts_from(stored: Mapping[str, Any]) -> CallFacts:
    """Read the stored form."""
    return CallFacts(
        name=str(stored["name"]),
        permission=str(stored["permission"]),
        source=Source(stored["source"]),
        changes=bool(stored["changes"]),
        is_high_risk=bool(stored["high"]),
        subjects=tuple(subject_from(subject) for subject in stored["subjects"]),
    )


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """A decision about a call, and the rule that it comes from. A denial that may concern a call has people asked."""

    action: RuleAction
    rule: Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSet:
    """The rules for the calls of one conversation.

    `own`: in any order of levels; within one, the later counts. `above`: of each conversation and class that this one
    works for, what takes something away; each set is judged by itself.
    """

    own: tuple[Permission, ...] = ()
    above: tuple[tuple[Permission, ...], ...] = ()

    def judge(self, call: CallFacts, now: datetime) -> RuleVerdict | None:
        """The decision about a call and its rule; `None` where there is none, which leaves it to the tool.

        A rule above that denies or asks is not lowered by the conversation's own.
        """
        found = [_judged((*BUILT_IN, *self.own), call, now)]
        above = (_judged(rules, call, now) for rules in self.above)
        found += [each for each in above if each is not None and each.action is not RuleAction.ALLOW]
        return max(found, key=_strength)

    def adding(self, rules: Sequence[Permission]) -> "RuleSet":
        """The same with further rules, which count last in their level."""
        return replace(self, own=(*self.own, *rules))


def inherited(rules: Sequence[Permission]) -> tuple[Permission, ...]:
    """The rules of a conversation that hold for those that work for it: what people allowed there is left out."""
    people = (RuleLevel.OWNER, RuleLevel.CONVERSATION)
    return tuple(rule for rule in rules if rule.action is not RuleAction.ALLOW or rule.level not in people)


def offered(call: CallFacts, rules: RuleSet, now: datetime) -> tuple[Permission, ...]:
    """The allowances by which a person could let such calls run for always; none where these would not do it."""
    wanted = dict.fromkeys(subject.offer for subject in call.subjects)
    if not wanted or "" in wanted:
        return ()
    made = [
        Permission(action=RuleAction.ALLOW, key=call.key, pattern=pattern, level=RuleLevel.CONVERSATION)
        for pattern in wanted
    ]
    decided = rules.adding(made).judge(call, now)
    return tuple(made) if decided is not None and decided.action is RuleAction.ALLOW else ()


def checked(rule: Permission) -> Permission:
    """A rule whose key and pattern can match something. Errors: `ToolDeclarationInvalid`."""
    source, colon, _ = rule.key.rpartition(":")
    if not _KEY.fullmatch(rule.key) or (colon and source not in set(Source)):
        raise ToolDeclarationInvalid(
            f"{rule.key!r} is no key of a rule: the name of a tool, 'mcp:name', or {CHANGES!r} was expected."
        )
    if not 0 < len(rule.pattern) <= MAX_PATTERN_CHARS or not rule.pattern.isprintable():
        raise ToolDeclarationInvalid(f"A pattern is one line of 1 to {MAX_PATTERN_CHARS} characters.")
    return rule


def _judged(rules: Sequence[Permission], call: CallFacts, now: datetime) -> RuleVerdict | None:
    """The strongest of the decisions about what a call is about; an allowance only where all of it is allowed."""
    live = [rule for rule in rules if (rule.expires_at is None or rule.expires_at > now) and _speaks_of(rule, call)]
    if call.is_high_risk:
        live = [rule for rule in live if rule.action is not RuleAction.ALLOW or rule.level is RuleLevel.CLASS]
    found = [_of_subject(live, subject) for subject in call.subjects or (ANYTHING,)]
    return max(found, key=_strength)


def _of_subject(live: Sequence[Permission], subject: Subject) -> RuleVerdict | None:
    """The last match, unless the last one of the site or the class is a denial."""
    matching = [
        found
        for rule in sorted(live, key=lambda rule: _ORDER.index(rule.level))
        if (found := _matched(rule, subject)) is not None
    ]
    if not matching:
        return None
    floors = [[found for found in matching if found.rule.level is level][-1:] for level in _FINAL]
    final = [found for floor in floors for found in floor if found.rule.action is RuleAction.DENY]
    return max([matching[-1], *final], key=_strength)


def _matched(rule: Permission, subject: Subject) -> RuleVerdict | None:
    if _concerns(rule, subject):
        return RuleVerdict(rule.action, rule)
    if subject.is_opaque and rule.action is not RuleAction.ALLOW and rule.pattern != SECRETS:
        return RuleVerdict(RuleAction.ASK, rule)  # what the call does may be what the rule is about
    return None


def _strength(found: RuleVerdict | None) -> int:
    return _STRENGTH[found.action if found is not None else None]


def _speaks_of(rule: Permission, call: CallFacts) -> bool:
    is_allowance = rule.action is RuleAction.ALLOW
    if rule.key == CHANGES:
        return call.changes and not (is_allowance and call.source in OF_OTHERS)
    source, colon, name = rule.key.rpartition(":")
    if (colon and source != call.source) or (not colon and is_allowance and call.source in OF_OTHERS):
        return False
    fold = (lambda text: text) if is_allowance else folded
    return any(fnmatchcase(fold(each), fold(name)) for each in (call.name, call.permission) if each)


def _concerns(rule: Permission, subject: Subject) -> bool:
    if rule.action is RuleAction.ALLOW:
        return _covers(rule.pattern, subject)
    if rule.pattern in ("*", SECRETS):
        return rule.pattern == "*" or subject.is_secret
    pattern, texts = folded(rule.pattern), [folded(text) for text in (*subject.texts, *subject.parts)]
    if any(_matches(pattern, text, subject) for text in texts):
        return True
    return subject.is_tree and any(_reaches_into(pattern, text) for text in texts)


def _covers(pattern: str, subject: Subject) -> bool:
    """Whether an allowance covers a subject for certain."""
    is_exact = not set("*?") & set(pattern)
    if subject.is_secret:
        return pattern == SECRETS or (is_exact and subject.is_plain and pattern in subject.texts)
    if pattern == "*":
        return True
    if not subject.is_plain:
        return False
    if subject.is_tree:
        return pattern.endswith("*") and any(
            _matches(pattern, f"{text.rstrip('/')}/{_BELOW}", subject) for text in subject.texts
        )
    return any(_matches(pattern, text, subject) for text in subject.texts)


def _matches(pattern: str, text: str, subject: Subject) -> bool:
    if subject.is_path and not pattern.startswith(("/", "*")):
        pattern = f"/{pattern}"
    if _compiled(pattern).fullmatch(text):
        return True
    return subject.is_command and pattern.endswith(" *") and _compiled(pattern[:-2]).fullmatch(text) is not None


def _reaches_into(pattern: str, directory: str) -> bool:
    """Whether a pattern may match something below a directory."""
    fixed = re.split(r"[*?]", pattern, maxsplit=1)[0]
    fixed = fixed if fixed.startswith("/") or not fixed else f"/{fixed}"
    below = f"{directory.rstrip('/')}/"
    return fixed.startswith(below) or below.startswith(fixed)


@lru_cache(maxsize=2_000)
def _compiled(pattern: str) -> "re.Pattern[str]":
    """A pattern as an expression that never tries a star's text again; brackets stand for themselves."""
    return re.compile(translate(pattern.replace("[", "[[]")))
