"""Line differences between two texts, and grouping of consecutive changes. Pure."""

import difflib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

MAX_CHARS: Final = 100_000
"""Of both texts together. Longer ones are not compared: that costs more than anybody reads."""

MAX_PATCH_CHARS: Final = 20_000
CONTEXT_LINES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiff:
    """Lines that came and went. `patch`: hunks of a unified diff, without file names. `is_cut`: it does not show all.

    A text that is too long to compare has no patch and no counts.
    """

    additions: int = 0
    deletions: int = 0
    patch: str = ""
    is_cut: bool = False


TOO_LONG: Final = TextDiff(is_cut=True)


def diff_texts(before: str, after: str) -> TextDiff:
    """Compare two texts. Units: lines."""
    if len(before) + len(after) > MAX_CHARS:
        return TOO_LONG
    lines = list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT_LINES),
    )[2:]  # without the two names
    patch = "\n".join(lines)
    return TextDiff(
        additions=sum(line.startswith("+") for line in lines),
        deletions=sum(line.startswith("-") for line in lines),
        patch=patch[:MAX_PATCH_CHARS],
        is_cut=len(patch) > MAX_PATCH_CHARS,
    )


def joined(diffs: Sequence[TextDiff]) -> TextDiff:
    """Several changes of one text as one: between them it was changed elsewhere."""
    patch = "\n".join(diff.patch for diff in diffs if diff.patch)
    return TextDiff(
        additions=sum(diff.additions for diff in diffs),
        deletions=sum(diff.deletions for diff in diffs),
        patch=patch[:MAX_PATCH_CHARS],
        is_cut=len(patch) > MAX_PATCH_CHARS or any(diff.is_cut for diff in diffs),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of a text. `before` and `after` are marks: equal marks stand for equal texts."""

    id: int
    text: Hashable
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive changes of one text, each starting from the previous result."""

    first: Step
    last: Step

    @property
    def is_change(self) -> bool:
        """Whether it ends otherwise than it began."""
        return self.first.before != self.last.after


def stretches(steps: Iterable[Step]) -> list[Stretch]:
    """Group consecutive changes. **Shape:** `steps` oldest first; groups by their last change, newest first."""
    found: dict[Hashable, list[Stretch]] = {}
    for step in steps:
        of_text = found.setdefault(step.text, [])
        if of_text and of_text[-1].last.after == step.before:
            of_text[-1] = Stretch(of_text[-1].first, step)
        else:
            of_text.append(Stretch(step, step))
    every = (stretch for of_text in found.values() for stretch in of_text)
    return sorted(every, key=lambda stretch: -stretch.last.id)
