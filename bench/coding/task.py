"""The form of a task."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["failing test", "feature", "refactoring", "question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One task. `files`: the repository, by path.

    `check`: a Python program, run in the root of the repository after the model has answered; it passes with exit code
    0. It brings its own tests, so that changing the repository's does not help. `answer`: regular expressions that the
    answer has to match, in either case; then no file may have changed. `solution`: a script for the scripted model.
    """

    name: str
    kind: Kind
    prompt: str
    files: Mapping[str, str]
    solution: str
    check: str = ""
    answer: tuple[str, ...] = field(default_factory=tuple)


def edit(path: str, old: str, new: str) -> str:
    """A line of a solution that changes a file."""
    return call("edit", path=path, old_string=old, new_string=new)


def call(tool: str, **arguments: str) -> str:
    """A line of a solution that calls a tool, in a step of its own."""
    return f"say: Next.\ncall tool {tool} {json.dumps(arguments)}\n"
