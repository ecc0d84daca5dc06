"""The tables of `docs/reference/providers.md`, read from the recorded answers in `tests/providers` and nothing else.

A cell comes from a recording, a row of the table of overflow words, or a declared fact with its source. Where there is
none of these, the cell says "not recorded".
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from chat.core.model.abilities import Ability
from chat.llm.adapters.overflow_others import Row
from chat.llm.adapters.overflow_words import ROWS
from chat.llm.probing.answers import extra_fields
from chat.llm.scripted.manners import Manners, read_manners
from chat.llm.scripted.recordings import Recording, read_recording
from thinkproject.kernel.jsonvalue import JSONObject

FOLDER: Final = Path(__file__).resolve().parent.parent / "tests" / "providers"
NOT_RECORDED: Final = "not recorded"
_RULES: Final = {
    "ids": "ids of calls of another form than {value}",
    "not empty": "empty messages ({value})",
    "answer after results": "a message of the user right after results",
    "user first": "a history that begins with the model",
    "roles alternate": "roles that do not alternate, from the user's on",
    "signature": "calls without their signature",
    "reasoning": "calls without their reasoning",
    "no fields": "fields of others: {value}",
    "parts": "parts other than {value}",
    "no options": "the options {value}",
    "no schema": "a schema for the answer",
}
"""What a server refuses, by the rules of its checks."""


class _Provider:
    """The recordings and the manners of one provider."""

    def __init__(self, name: str) -> None:
        self.name = name
        found = (read_recording(FOLDER, f"{name}/{path.stem}") for path in sorted((FOLDER / name).glob("*.sse")))
        self.recordings = list(found)
        self.manners = read_manners(FOLDER, name) or Manners(facts={"name": name})

    def with_event(self, kind: str, count: int = 1) -> Recording | None:
        """The first recording with so many events of a kind."""
        return next(
            (found for found in self.recordings if sum(kind in event for event in found.facts["events"]) >= count), None
        )

    def fact(self, name: str) -> str:
        """A declared fact with its source."""
        fact = (self.manners.facts.get("facts") or {}).get(name)
        return f"[{fact['says']}]({fact['source']})" if fact else NOT_RECORDED

    @property
    def overflows(self) -> list[Row]:
        """Its rows in the table of overflow words."""
        return [row for row in ROWS if row.server in (self.manners.facts.get("overflow") or ())]


def pages() -> str:
    """Return the generated part of the page as markdown."""
    providers = [_Provider(path.parent.name) for path in sorted(FOLDER.glob("*/provider.json"))]
    head = ("provider", *Ability)
    rows = [(str(each.manners.facts["name"]), *(_CELLS[ability](each) for ability in Ability)) for each in providers]
    named = {row.server for each in providers for row in each.overflows}
    others = [row for row in ROWS if row.server not in named]
    overflows = [(str(each.manners.facts["name"]), row) for each in providers for row in each.overflows]
    return "\n\n".join(
        [
            _table(head, rows),
            "## What servers refuse of a history",
            _table(("provider", "what it refuses", "status", "its words", "source"), _checks(providers)),
            "## Words of an overflow",
            _table(
                ("server", "status", "words", "source"),
                [_overflow(*row) for row in (*overflows, *((row.server, row) for row in others))],
            ),
        ]
    )


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def _link(words: str, found: Recording | None) -> str:
    return f"[{words}](../../tests/providers/{found.name}.sse)" if found else NOT_RECORDED


def _stream(provider: _Provider) -> str:
    whole = [found for found in provider.recordings if found.body.count(b"data:") > 1 and not found.facts.get("error")]
    return _link("yes", whole[0] if whole else None)


def _reasoning(provider: _Provider) -> str:
    return _link("yes", provider.with_event("reasoning"))


def _returns(provider: _Provider) -> str:
    """The fields that go back with the next request, those first without which it is refused."""
    demanded: dict[str, Recording] = {}
    taken: dict[str, Recording] = {}
    for found in provider.recordings:
        for field in extra_fields(found.returns):
            (demanded if "refusal" in found.facts else taken).setdefault(f"`{field}`", found)
    words = [f"{_link(field, found)}, demanded" for field, found in sorted(demanded.items())]
    words += [f"{_link(field, found)}, taken" for field, found in sorted(taken.items()) if field not in demanded]
    return "; ".join(words) or ("nothing" if provider.with_event("reasoning") else NOT_RECORDED)


def _usage(provider: _Provider) -> str:
    counts: dict[str, None] = {}
    first: Recording | None = None
    for found in provider.recordings:
        for event in found.facts["events"]:
            usage: JSONObject = event.get("usage") or {}
            if any(usage.values()):
                first = first or found
                counts |= dict.fromkeys(name for name, count in usage.items() if count)
    return _link(", ".join(counts), first)


def _media(provider: _Provider) -> str:
    """Whether pictures are taken. A refusal is of one model of the provider's."""
    fact = provider.fact("images")
    refused = next((check for check in provider.manners.checks if check["rule"] == "parts"), None)
    if refused is None:
        return fact
    return f"{fact}; [refused in words]({refused['source']})"


def _overflow_cell(provider: _Provider) -> str:
    count = len(provider.overflows)
    return f"[{count} wording{'' if count == 1 else 's'}](#words-of-an-overflow)" if count else NOT_RECORDED


_CELLS: Final[Mapping[Ability, Callable[[_Provider], str]]] = {
    Ability.STREAM: _stream,
    Ability.TOOLS: lambda provider: _link("yes", provider.with_event("call")),
    Ability.PARALLEL: lambda provider: _link("yes", provider.with_event("call", 2)),
    Ability.IMAGES: _media,
    Ability.PDF: lambda provider: provider.fact("pdf"),
    Ability.REASONING: _reasoning,
    Ability.RETURNS: _returns,
    Ability.USAGE: _usage,
    Ability.SCHEMA: lambda provider: provider.fact("schema"),
    Ability.OVERFLOW: _overflow_cell,
}


def _checks(providers: list[_Provider]) -> list[tuple[str, ...]]:
    return [
        (
            str(provider.manners.facts["name"]),
            _RULES[check["rule"]].format(value=_value(check.get("value"))),
            str(check.get("status", 400)),
            f"`` {check['words']} ``",
            f"[source]({check['source']})",
        )
        for provider in providers
        for check in provider.manners.checks
    ]


def _value(value: object) -> str:
    words = value if isinstance(value, list) else [value]
    return ", ".join(f"`{word}`" for word in words) or "plain text"


def _overflow(name: str, row: Row) -> tuple[str, ...]:
    source = f"[source]({row.source})" if " " not in row.source else row.source
    return name, str(row.status or "in the stream"), f"`` {row.words} ``", source
