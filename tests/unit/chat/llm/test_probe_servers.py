"""A probe of odd servers: what is found, what is not, and what of it is remembered; and the command that shows it."""

import json
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from chat.core.model.abilities import Ability
from chat.llm.model_memory import model_memory
from chat.llm.probing import questions
from chat.llm.probing.findings import NOT_FOUND, Finding
from chat.llm.probing.probe import Report, probe, remember
from chat.llm.registry import facts_of, guarded, resolve_model
from chat.llm.testing import collect, make_request, text_of
from tests.odd_provider import OddProvider, Reply, odd_provider, refused

KEY = "sk-secret-abcdefghijklmnop"
Answers = dict[str, Reply | Callable[[dict[str, Any]], Reply]]

pytestmark = pytest.mark.usefixtures("closed_clients")


def able(body: dict[str, Any], changes: Answers) -> Reply:
    """A server that can do everything, but for changes by the question."""
    text = json.dumps(body["messages"])
    asked = next(
        name
        for name in (
            questions.COUNT,
            questions.SEE,
            questions.READ,
            questions.CHOOSE,
            questions.REPEATED,
            "lookup",
        )
        if name in text
    )
    change = changes.get(asked)
    if change is not None:
        return change(body) if callable(change) else change
    if asked == questions.CHOOSE and "response_format" in body:
        return Reply(text='{"colour": "red", "letters": 3}')
    if asked == "lookup" and "tools" in body and '"tool"' not in text:
        return Reply(calls=(("lookup", {"q": "amber"}), ("lookup", {"q": "birch"})))
    return Reply(
        text={questions.SEE: "purple", questions.READ: "Heron", questions.COUNT: "one, " * 20}.get(asked, "ok")
    )


@pytest.fixture
def probed_server(settings: Any) -> Iterator[tuple[OddProvider, Answers]]:
    changes: Answers = {}
    with odd_provider(lambda body: able(body, changes)) as provider:
        settings.THINK_PROVIDERS = {"odd": {"base_url": provider.base_url, "api_key": KEY}}
        settings.THINK_PRICES = {"odd/m": {"input": "1", "output": "2"}}
        yield provider, changes


def cells(report: Report) -> dict[Ability, str]:
    return {finding.ability: finding.cell for finding in report.findings}


def of(report: Report, ability: Ability) -> Finding:
    return next(finding for finding in report.findings if finding.ability is ability)


async def test_all_is_found_in_few_requests(probed_server: tuple[OddProvider, Answers]) -> None:
    report = await probe("odd/m")
    assert cells(report) == {
        Ability.STREAM: "in one piece",
        Ability.TOOLS: "yes",
        Ability.PARALLEL: "yes",
        Ability.IMAGES: "yes",
        Ability.PDF: "yes",
        Ability.REASONING: NOT_FOUND,
        Ability.RETURNS: "nothing",
        Ability.USAGE: "input, output",
        Ability.SCHEMA: "yes",
        Ability.OVERFLOW: "cuts silently",  # the server says that it read nine tokens
    }
    assert len(probed_server[0].bodies) == report.requests == report.questions == 7
    assert all(body["max_tokens"] == questions.ANSWER_TOKENS for body in probed_server[0].bodies)
    most, _written = questions.most_tokens(10_000)
    assert sum(len(json.dumps(body)) for body in probed_server[0].bodies) / 4 < most


TOOLLESS = refused("registry.ollama.ai/library/m:latest does not support tools")
BLIND = refused("This model does not support image inputs.")


def without_tools(body: dict[str, Any]) -> Reply:
    return TOOLLESS if "tools" in body else Reply()


def without_sight(body: dict[str, Any]) -> Reply:
    return BLIND if "image_url" in json.dumps(body) else Reply(text="I see none.")


def without_schemas(body: dict[str, Any]) -> Reply:
    return refused("This response_format type is unavailable now") if "response_format" in body else Reply()


REFUSALS: dict[Ability, tuple[str, Callable[[dict[str, Any]], Reply], str]] = {
    Ability.TOOLS: ("lookup", without_tools, "does not support tools"),
    Ability.IMAGES: (questions.SEE, without_sight, "does not support image inputs"),
    Ability.SCHEMA: (questions.CHOOSE, without_schemas, "response_format type is unavailable"),
}


@pytest.mark.parametrize("ability", REFUSALS)
async def test_refusals_are_findings_with_their_words(
    probed_server: tuple[OddProvider, Answers], ability: Ability
) -> None:
    asked, answer, words = REFUSALS[ability]
    probed_server[1][asked] = answer
    report = await probe("odd/m", overflow_tokens=0)
    finding = of(report, ability)
    assert (finding.cell, finding.found) == ("no", False)
    assert words in finding.why
    others = {other for other in REFUSALS if other is not ability}
    assert {cells(report)[other] for other in others} == {"yes"}


async def test_what_is_passed_over_is_not_taken_for_done(probed_server: tuple[OddProvider, Answers]) -> None:
    changes = probed_server[1]
    changes |= {
        "lookup": Reply(text="I would look it up."),
        questions.SEE: Reply(text="Red."),
        questions.CHOOSE: Reply(text="Red has three letters."),
    }
    report = await probe("odd/m", overflow_tokens=0)
    assert [of(report, ability).found for ability in (Ability.TOOLS, Ability.IMAGES)] == [None, None]
    assert "“Red.”" in of(report, Ability.IMAGES).why
    assert cells(report)[Ability.SCHEMA] == "passed over"
    assert cells(report)[Ability.OVERFLOW] == NOT_FOUND


@pytest.mark.parametrize(
    ("reply", "cell", "context", "cuts"),
    [
        (Reply(usage={"prompt_tokens": 4_096}), "cuts silently", 4_096, True),
        (Reply(usage={"prompt_tokens": 12_000}), NOT_FOUND, 0, False),
        (refused("This model's maximum context length is 8192 tokens."), "yes", 8_192, False),
        (refused("The scroll is too heavy."), "in unknown words", 0, False),
    ],
)
async def test_overflow_shows_the_window(
    probed_server: tuple[OddProvider, Answers], reply: Reply, cell: str, context: int, cuts: bool
) -> None:
    probed_server[1][questions.REPEATED] = reply
    report = await probe("odd/m")
    assert cells(report)[Ability.OVERFLOW] == cell
    assert (report.learned.context_tokens, report.learned.cuts_silently) == (context, cuts)
    await remember(report)
    assert facts_of("odd/m").limits.context_tokens == context


async def test_found_is_remembered_and_used(probed_server: tuple[OddProvider, Answers]) -> None:
    provider, changes = probed_server
    changes |= {"lookup": without_tools, questions.SEE: without_sight, questions.CHOOSE: Reply(text="Red, three.")}
    assert resolve_model("odd/m").accepts_images
    await remember(await probe("odd/m", overflow_tokens=0))
    model = resolve_model("odd/m")
    assert (model.accepts_images, model.accepts_documents) == (False, True)
    assert (facts_of("odd/m").calls_tools, facts_of("odd/m").inputs) == (False, ("document",))
    events = await collect(guarded(model), make_request("lookup", tools=(questions.TOOL,)))
    assert text_of(events) == "hi"
    assert "tools" not in provider.bodies[-1]
    changes.clear()
    await remember(await probe("odd/m", overflow_tokens=0))  # the server was set up anew
    assert resolve_model("odd/m").accepts_images
    assert facts_of("odd/m").calls_tools is True


async def test_schema_that_is_passed_over_is_asked_for_by_a_tool(probed_server: tuple[OddProvider, Answers]) -> None:
    provider, changes = probed_server
    changes[questions.CHOOSE] = Reply(text="Red, three.")
    await remember(await probe("odd/m", overflow_tokens=0))
    changes[questions.CHOOSE] = Reply(calls=(("answer", {"colour": "red", "letters": 3}),))
    await collect(guarded(resolve_model("odd/m")), questions.with_schema())
    assert "response_format" not in provider.bodies[-1]
    assert len(provider.bodies[-1]["tools"]) == 1


async def test_declared_is_not_asked(probed_server: tuple[OddProvider, Answers], settings: Any) -> None:
    declared = {"accepts_images": False, "accepts_documents": True, "can_call_tools": False}
    settings.THINK_PROVIDERS = {"odd": {"base_url": probed_server[0].base_url, **declared}}
    report = await probe("odd/m", overflow_tokens=0)
    found = {finding.ability: finding for finding in report.findings}
    assert [found[ability].cell for ability in (Ability.IMAGES, Ability.PDF, Ability.TOOLS)] == ["no", "yes", "no"]
    assert {found[ability].found for ability in (Ability.IMAGES, Ability.PDF, Ability.TOOLS)} == {None}
    assert report.questions == 2


async def test_a_hanging_server_is_left(probed_server: tuple[OddProvider, Answers]) -> None:
    go_on = threading.Event()

    def hang(_body: dict[str, Any]) -> Reply:
        go_on.wait(20)
        return Reply()

    probed_server[1][questions.COUNT] = hang
    report = await probe("odd/m", seconds=0.3)
    go_on.set()
    assert len(probed_server[0].bodies) == 1
    assert report.problem == "it did not end within 0.3 s"
    assert not report.has_answered
    assert {finding.cell for finding in report.findings} == {NOT_FOUND}


async def test_one_question_that_hangs_costs_its_answer_only(probed_server: tuple[OddProvider, Answers]) -> None:
    go_on = threading.Event()

    def hang(_body: dict[str, Any]) -> Reply:
        go_on.wait(20)
        return Reply()

    probed_server[1][questions.SEE] = hang
    report = await probe("odd/m", seconds=2, overflow_tokens=0)
    go_on.set()
    assert "did not end" in of(report, Ability.IMAGES).why
    assert (cells(report)[Ability.PDF], cells(report)[Ability.SCHEMA]) == ("yes", "yes")


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply(body="<html><body>Welcome</body></html>"), "lost|ended|answer"),
        (Reply(status=502, body="<html>Bad gateway</html>"), "overloaded or failing"),
        (refused(f"Incorrect API key provided: {KEY}.", status=401, code="invalid_api_key"), "credentials"),
        (Reply(status=402, body={"error": {"message": "Insufficient credits"}}), "credit"),
        (Reply(status=404, body={"error": {"message": "no such model"}}), "no such model"),
        (Reply(status=429, body={"error": {"message": "Slow down"}}, headers={"retry-after": "9"}), "9 s"),
    ],
)
async def test_a_server_that_gives_nothing_is_asked_once(
    probed_server: tuple[OddProvider, Answers], reply: Reply, says: str
) -> None:
    probed_server[1][questions.COUNT] = reply
    report = await probe("odd/m")
    assert len(probed_server[0].bodies) == 1
    assert any(word in report.problem for word in says.split("|")), report.problem
    assert not report.has_answered
    assert KEY not in repr(report)


def test_command_says_what_it_asks_and_prints_the_table(probed_server: tuple[OddProvider, Answers]) -> None:
    probed_server[1][questions.SEE] = refused(f"images are not supported, key {KEY}")
    out, err = StringIO(), StringIO()
    call_command("probe_model", "odd/m", "--yes", stdout=out, stderr=err)
    table, told = out.getvalue(), err.getvalue()
    lines = {line[:15].strip(): line[15:].split() for line in table.splitlines()}
    assert list(lines) == list(Ability)
    assert lines["tools"][0] == "yes"
    assert lines["images"][:2] == ["no", "refused:"]
    assert "Up to 8 questions" in told
    assert "$0.03 by its list price" in told
    assert "what was found is remembered for odd/m" in told
    assert KEY not in table + told
    assert model_memory.of(probed_server[0].base_url, "m").abilities[Ability.TOOLS] is True


def test_command_asks_nothing_without_consent(
    probed_server: tuple[OddProvider, Answers], monkeypatch: pytest.MonkeyPatch
) -> None:
    for answer in ("", "n"):
        monkeypatch.setattr("builtins.input", lambda _prompt, said=answer: said)
        with pytest.raises(CommandError, match="Nothing was asked"):
            call_command("probe_model", "odd/m", stdout=StringIO(), stderr=StringIO())
    assert probed_server[0].bodies == []


def test_command_prints_json(probed_server: tuple[OddProvider, Answers]) -> None:
    out = StringIO()
    call_command("probe_model", "odd/m", "--yes", "--json", "--overflow-tokens=0", stdout=out, stderr=StringIO())
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [row["ability"] for row in rows] == list(Ability)
    assert rows[1] == {"ability": "tools", "cell": "yes", "found": True, "why": "it called the tool"}
    assert len(probed_server[0].bodies) == 6


@pytest.mark.parametrize("name", ["nobody/m", "m", "default"])
def test_command_says_what_is_not_configured(name: str) -> None:
    with pytest.raises(CommandError):
        call_command("probe_model", name, "--yes", stdout=StringIO(), stderr=StringIO())


def test_command_fails_where_nothing_was_found_out(probed_server: tuple[OddProvider, Answers]) -> None:
    probed_server[1][questions.COUNT] = refused("no", status=401)
    with pytest.raises(CommandError, match="credentials"):
        call_command("probe_model", "odd/m", "--yes", stdout=StringIO(), stderr=StringIO())
    assert model_memory.of(probed_server[0].base_url, "m").abilities == {}
