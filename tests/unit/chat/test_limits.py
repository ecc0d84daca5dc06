"""Every limit of the product says when to ask again, and whether it ends by itself."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from chat.core.wire import frames, sdk_frames
from chat.core.wire.limited import with_wait
from chat.errors import LIMIT_SECONDS, QuotaExceeded, limit_wait
from chat.http.api.problems import problem, problem_of
from thinkproject.kernel.errors import Conflict
from thinkproject.kernel.jsonvalue import load

ROOT = Path(__file__).resolve().parents[3]
APPS = ("chat", "tools_app", "sessions_app", "fibers", "thinkproject")
LIMIT = "QuotaExceeded"
PASSING = ("wait", "try again", "at a time", "under way", "within a minute", "too many programs", "at the moment")
OF_ROOM = (" first.", "decide some of them first")


def raised() -> Iterator[tuple[str, ast.Call, str]]:
    """Where the product makes an error of a limit: the place, the call, and its sentence."""
    for app in APPS:
        for path in sorted((ROOT / app).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if LIMIT not in source:
                continue  # to parse all modules takes seconds, in each process that collects this one
            tree = ast.parse(source)
            names = {
                target.id: node.value
                for node in ast.walk(tree)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == LIMIT:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node, sentence(node.args[0], names)


def sentence(node: ast.expr, names: dict[str, ast.expr]) -> str:
    """All the text in an expression, with the names in it looked up in their module."""
    found = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in names:
            found.append(sentence(names[each.id], {}))
    return " ".join(found)


SITES = list(raised())


def test_the_limits_of_the_product_are_found() -> None:
    assert len(SITES) >= 20


@pytest.mark.parametrize(("place", "call", "text"), SITES, ids=[site[0] for site in SITES])
def test_a_limit_that_passes_gives_its_time_and_one_of_room_says_what_to_do(
    place: str, call: ast.Call, text: str
) -> None:
    gives_time = any(keyword.arg == "retry_after_seconds" for keyword in call.keywords)
    said = text.lower()
    if gives_time:
        assert any(words in said for words in PASSING), f"{place}: {text}"
    else:
        assert any(words in said for words in OF_ROOM), f"{place}: without a time it names what to remove: {text}"


def test_only_limits_answer_429() -> None:
    """Every other place that gives this status goes through `problem`, which adds the time."""
    found = {
        str(path.relative_to(ROOT))
        for app in APPS
        for path in (ROOT / app).rglob("*.py")
        if "status=429" in path.read_text() or "http_status = 429" in path.read_text()
    }
    assert found == {"chat/errors.py", "chat/client/errors.py", "chat/access/sign_in_attempts.py"}


def test_a_pace_tells_when_it_ends() -> None:
    error = QuotaExceeded("You have sent 2 messages within a minute.", retry_after_seconds=41.2)
    reply = problem_of(error)
    body = load(reply.content)
    assert (reply.status_code, reply["Retry-After"]) == (429, "42")
    assert body["data"] == {"retry_after_seconds": 42, "passes": True}


def test_a_limit_of_room_does_not_pass() -> None:
    reply = problem_of(QuotaExceeded("You can keep 3 files. Delete some first.", limit=3))
    assert reply["Retry-After"] == str(LIMIT_SECONDS)
    assert load(reply.content)["data"] == {"retry_after_seconds": LIMIT_SECONDS, "passes": False, "limit": 3}


def test_a_429_of_anything_else_has_the_time_too() -> None:
    reply = problem(429, "quota", "Too many requests.")
    assert (reply["Retry-After"], load(reply.content)["data"]) == ("60", {"retry_after_seconds": 60})


def test_sockets_have_it_in_their_frames() -> None:
    wait = limit_wait(QuotaExceeded("You have sent 2 messages within a minute.", retry_after_seconds=7))
    for text in (
        frames.refusal("req", "no"),
        frames.error("req", "no"),
        frames.rpc_error("call", "no"),
        sdk_frames.error("req", "no"),
    ):
        assert load(with_wait(text, wait)) == {**load(text), "retryAfterSeconds": 7}
        assert with_wait(text, limit_wait(Conflict())) == text
