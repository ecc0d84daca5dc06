"""The rules about calls where code reaches files: the workspace itself judges each of them, links followed.

A tool for files is judged before it runs, by the path that it is called with. Code names its files while it runs: that
of a model, a script of a shell or a skill, an extension. Its calls run behind these rules, and stores of files ask here
before they give a content away or change anything. A person cannot be asked in the middle of a script, so what asks is
refused there, unless a person has approved the call of the script itself.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from tools_app.core.files.failures import refused
from tools_app.core.permissions.rules import CallFacts, RuleAction, RuleSet, RuleVerdict
from tools_app.core.permissions.subjects import path_subjects

ASKS: Final = (
    "a person has to allow this, and code cannot ask (rule {rule!r}): call the tool for files with this path instead"
)
DENIES: Final = "refused by the rule {rule!r}"


class FileDeed(Enum):
    """The deed of code on a file. Rules speak of it as of the tool that does the same: its name and its permission."""

    READ = ("read", "read")
    WRITE = ("write", "edit")
    DELETE = ("delete", "delete")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRules:
    """The rules for the files of one call. `is_approved`: a person has seen the call, so that what asks may be done."""

    rules: RuleSet
    now: datetime
    is_approved: bool = False

    def verdict(self, deed: FileDeed, path: str) -> RuleVerdict | None:
        """The decision that keeps code from a file of this normalised path without links; nothing where it may."""
        name, permission = deed.value
        facts = CallFacts(
            name=name,
            permission=permission,
            changes=deed is not FileDeed.READ,
            subjects=tuple(path_subjects(path)),
        )
        found = self.rules.judge(facts, self.now)
        if found is None or found.action is RuleAction.ALLOW or (found.action is RuleAction.ASK and self.is_approved):
            return None
        return found


_present: ContextVar[FileRules | None] = ContextVar("think_file_rules", default=None)


def enter_file_rules(rules: FileRules | None) -> None:
    """Have files be judged by these from now on, in this task and those that it starts."""
    _present.set(rules)


@contextmanager
def under_file_rules(rules: FileRules | None) -> Iterator[None]:
    """Have files be judged by these within the block."""
    token = _present.set(rules)
    try:
        yield
    finally:
        _present.reset(token)


def is_judging() -> bool:
    """Whether anything judges the files of this call."""
    return _present.get() is not None


def check_files(deed: FileDeed, paths: Iterable[str]) -> None:
    """Look whether code may do this to all of them. Errors: `FileFailed` with `EACCES`, which names the rule."""
    rules = _present.get()
    if rules is None:
        return
    for path in paths:
        found = rules.verdict(deed, path)
        if found is not None:
            words = ASKS if found.action is RuleAction.ASK else DENIES
            raise refused(path, words.format(rule=found.rule.name), found.rule.used())


def refused_files(deed: FileDeed, paths: Iterable[str]) -> set[str]:
    """The paths among these that code may not do this to."""
    rules = _present.get()
    return set() if rules is None else {path for path in paths if rules.verdict(deed, path) is not None}
