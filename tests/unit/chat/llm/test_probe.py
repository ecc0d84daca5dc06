"""A probe finds of each provider's manners what the generated page says of that provider."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from chat.core.model.abilities import Ability
from chat.llm.probing import questions
from chat.llm.probing.answers import extra_fields
from chat.llm.probing.findings import NOT_FOUND
from chat.llm.probing.probe import Report, probe
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.llm.scripted.recordings import Recording
from tests.providers.corpus import FOLDER, NAMES, recording
from thinkproject.provider_tables import NOT_RECORDED, pages

PROVIDERS = sorted(path.parent.name for path in FOLDER.glob("*/provider.json"))
SCRIPTED_USAGE = ["input", "output"]

pytestmark = pytest.mark.usefixtures("closed_clients")


@pytest.fixture
def mannered() -> Iterator[ScriptedServer]:
    with ScriptedServer(ServerOptions(recordings=FOLDER)) as running:
        yield running


@pytest.fixture(scope="module")
def columns() -> dict[str, dict[str, str]]:
    """The page's cells without their links, by the provider's folder."""
    head, _dashes, *rows = pages().partition("\n\n")[0].splitlines()
    names = [cell.strip() for cell in head.strip("| ").split("|")]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", row).strip("| ") for row in rows]
    table = [dict(zip(names, [cell.strip() for cell in row.split(" | ")], strict=True)) for row in plain]
    return dict(zip(PROVIDERS, table, strict=True))


def counted(found: Recording, kind: str) -> int:
    return sum(kind in event for event in found.facts["events"])


def best(provider: str, kind: str) -> Recording | None:
    """The recording that shows most: with more of a kind, with what goes back, and with reasoning."""
    known = [recording(name) for name in NAMES if name.startswith(f"{provider}/")]
    whole = [found for found in known if counted(found, kind) and not found.facts.get("error")]
    return max(
        whole,
        key=lambda found: (
            min(counted(found, kind), 2) if kind == "call" else 0,
            len(list(extra_fields(found.returns))),
            counted(found, "reasoning"),
            len(found.body),
        ),
        default=None,
    )


async def probed(settings: Any, server: ScriptedServer, provider: str, cells: dict[str, str]) -> Report:
    """A probe of the scripted server, which answers as the recordings and the facts of a provider say."""
    called, told = best(provider, "call"), best(provider, "text")
    if called is not None:
        server.script(questions.LOOK_UP, f"play {called.name}\nsay: Both are found.")
    if told is not None:
        server.script(questions.COUNT, f"play {told.name}")
    server.script(questions.SEE, "say: Purple.")
    server.script(questions.READ, f"say: The word is {questions.WORD.title()}.")
    server.script(questions.REPEATED, "context overflow above 1000 characters")
    if cells[Ability.SCHEMA] == "passed over":
        server.script(questions.CHOOSE, "say: Red, which has three.")
    any_of = next(name for name in NAMES if name.startswith(f"{provider}/"))
    name = str(recording(any_of).facts["model"])
    api = recording(any_of).facts.get("wire", "chat")
    address = f"http://127.0.0.1:{server.port}/{provider}/v1"
    settings.THINK_PROVIDERS = {name.partition("/")[0]: {"base_url": address, "api": api}}
    settings.THINK_MODEL_LIMITS = {name: {"context": 5_000}}
    return await probe(name, seconds=20)


def check_returns(cell: str, probed_cell: str, called: Recording | None) -> None:
    """What goes back is in the page's cell, with the same word: other answers of the provider have further fields."""
    if called is None:
        assert probed_cell == NOT_FOUND
    elif not list(extra_fields(called.returns)):
        assert probed_cell == "nothing"
    else:
        assert set(probed_cell.split("; ")) <= set(cell.split("; "))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_probe_fills_the_column_of_the_page(
    settings: Any, mannered: ScriptedServer, columns: dict[str, dict[str, str]], provider: str
) -> None:
    cells = columns[provider]
    report = await probed(settings, mannered, provider, cells)
    found = {finding.ability: finding for finding in report.findings}
    assert list(found) == list(Ability)
    assert report.problem == ""
    called, told = best(provider, "call"), best(provider, "text")
    said = {ability: found[ability].cell for ability in Ability}
    assert found[Ability.STREAM].found is not False
    if cells[Ability.TOOLS] == "yes":
        assert said[Ability.TOOLS] == "yes"
    if cells[Ability.PARALLEL] == "yes":
        assert said[Ability.PARALLEL] == "yes"
    is_blind = cells[Ability.IMAGES] == "no" or "refused in words" in cells[Ability.IMAGES]
    assert said[Ability.IMAGES] == ("no" if is_blind else "yes")
    if is_blind:
        assert found[Ability.IMAGES].why.startswith("refused: “")
    assert said[Ability.PDF] == "yes" or (is_blind and said[Ability.PDF] in ("no", NOT_FOUND))
    assert said[Ability.SCHEMA] == (cells[Ability.SCHEMA] if cells[Ability.SCHEMA] in ("no", "passed over") else "yes")
    shown = [one for one in (called, told) if one is not None]
    if any(counted(one, "reasoning") for one in shown):
        assert said[Ability.REASONING] == cells[Ability.REASONING] == "yes"
    check_returns(cells[Ability.RETURNS], said[Ability.RETURNS], called)
    usages = [event.get("usage") or {} for one in shown for event in one.facts["events"]]
    counts = [word for word in ("input", "output", "reasoning", "cached") if any(usage.get(word) for usage in usages)]
    assert set(said[Ability.USAGE].split(", ")) == {*SCRIPTED_USAGE, *counts}
    if cells[Ability.USAGE] != NOT_RECORDED:
        assert set(counts) <= set(cells[Ability.USAGE].split(", "))
    assert said[Ability.OVERFLOW] == "yes"
    assert report.learned.context_tokens == 8192
    assert report.questions <= questions.ASKED
