"""Variables of configurations of MCP servers: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`. Pure.

A value is put in once: what it contains is never read as a variable again. No environment is ever read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from thinkproject.kernel.phrases import Phrase
from tools_app.errors import McpServerInvalid

MAX_OPTIONS: Final = 100
MAX_WORDS: Final = 500
INPUT: Final = "input:"
_PLACE: Final = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE: Final = re.compile(r"(?:(env|input):)?([A-Za-z0-9_][A-Za-z0-9_. -]{0,99}?)(?::-(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A value that a configuration leaves open. `key`: its name, with `input:` before the id of an input.

    `default`: what is taken where no value is given; `None`: one has to be given. `options`: the values to choose from.
    """

    key: str
    description: str = ""
    is_secret: bool = True
    default: str | None = None
    options: tuple[str, ...] = ()


def variables_in(text: str) -> Iterator[Variable]:
    """The variables of a text, as far as it says what they are. Errors: `McpServerInvalid` for one that is unknown."""
    for place in _PLACE.finditer(text):
        key, default = _read(place)
        yield Variable(key=key, default=default)


def filled(text: str, values: Mapping[str, str], inputs: Mapping[str, Variable]) -> str:
    """The text with all values. One that is empty counts as not given. Errors: `McpServerInvalid` for a missing one."""

    def value(place: re.Match[str]) -> str:
        key, default = _read(place)
        if default is None and key in inputs:
            default = inputs[key].default
        found = values.get(key) or default
        if found is None:
            raise McpServerInvalid(Phrase("A value is missing: {name}", name=key))
        return found

    return _PLACE.sub(value, text)


def with_known(text: str, known: Mapping[str, str]) -> str:
    """The text with the values of those variables that are known; the others stay as they are."""

    def value(place: re.Match[str]) -> str:
        return known.get(_read(place)[0], place[0])

    return _PLACE.sub(value, text)


def read_inputs(found: Any) -> dict[str, Variable]:
    """The inputs that a file describes, by the keys of their variables. What is odd in them is passed over."""
    inputs: dict[str, Variable] = {}
    for entry in found if isinstance(found, list) else ():
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            continue
        default = entry.get("default")
        key = INPUT + entry["id"]
        inputs[key] = Variable(
            key=key,
            description=str(entry.get("description") or "")[:MAX_WORDS],
            is_secret=bool(entry.get("password")),
            default=default if isinstance(default, str) and default else None,
            options=_options(entry.get("options")),
        )
    return inputs


def _options(found: Any) -> tuple[str, ...]:
    values = (
        [item.get("value") if isinstance(item, dict) else item for item in found if item is not None]
        if (isinstance(found, list))
        else []
    )
    return tuple(value for value in values[:MAX_OPTIONS] if isinstance(value, str))


def _read(place: re.Match[str]) -> tuple[str, str | None]:
    """The key and the default of a variable. `${env:NAME}` is the same one as `${NAME}`."""
    found = _VARIABLE.fullmatch(place[1])
    if found is None:
        raise McpServerInvalid(
            Phrase("Only the program that this was written for knows {text}. Write its value instead.", text=place[0])
        )
    kind, name, default = found.groups()
    return (INPUT + name if kind == "input" else name), default
