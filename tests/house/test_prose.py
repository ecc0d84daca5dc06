"""Prose in comments, docstrings and documentation uses the field's words, not a private vocabulary."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tests.house.repository import PRODUCT, ROOT, committed

BANNED = re.compile(
    r"\b(told|heard|nobody|somebody|whoever|bells?|doorbells?|rung|says so|who gets|of before|of now)\b", re.IGNORECASE
)
"""Words that stood for several things each. The glossary and `CONTRIBUTING.md` name the standard ones."""

CLAUSE = re.compile(r"(What|Who|Whose|Whom|Which|How|Where|Those|That)\b")
"""Beginnings of a summary line that describes its subject instead of naming it."""

_SCRIPTS = (".js", ".ts", ".tsx", ".css")

QUOTED = {"CHANGELOG.md", "tests/house/parity_rows.txt", "tests/house/test_prose.py"}
"""Files that quote the titles of other documents, or name the words themselves."""


def test_no_banned_words() -> None:
    read = list(_prose())
    found = [f"{where}: {word}" for where, text in read for word in BANNED.findall(text)]
    assert sum(where.startswith("static/src/app/") for where, _ in read) > 500
    assert found == [], "\n".join(found)


def test_a_banned_word_is_found() -> None:
    source = '"""Whoever asks."""\n\nx = "told"  # nobody reads it\n'
    assert [BANNED.findall(text) for _, text in _python_prose("x.py", source)] == [["Whoever"], ["nobody"]]


def test_a_banned_word_of_a_script_is_found() -> None:
    source = "// Nobody reads it.\n/** Told once. */\n * heard here\nconst told = 1;\n"
    assert [BANNED.findall(text) for _, text in _script_comments("x.tsx", source)] == [["Nobody"], ["Told"], ["heard"]]


def test_summary_lines_name_their_subject() -> None:
    assert [where for where, line in _summaries() if CLAUSE.match(line)] == []


def test_a_clause_is_found() -> None:
    found = [
        line for _, line in _summaries_of("x.py", '"""What goes wrong."""\n\n\ndef f():\n    """Whether it may."""\n')
    ]
    assert [bool(CLAUSE.match(line)) for line in found] == [True, False]


def _summaries() -> Iterator[tuple[str, str]]:
    """The first lines of all docstrings of the product."""
    for path in committed():
        if path.endswith(".py") and path.startswith(PRODUCT) and "/migrations/" not in path:
            yield from _summaries_of(path, _read(path))


def _summaries_of(path: str, source: str) -> Iterator[tuple[str, str]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (docstring := ast.get_docstring(node)):
            yield f"{path}:{getattr(node, 'lineno', 1)}", docstring.splitlines()[0]


def _prose() -> Iterator[tuple[str, str]]:
    for path in committed():
        if path in QUOTED or path.startswith("tests/house/parity/") or "/migrations/" in path or "/fixtures/" in path:
            continue
        if path.endswith(".py"):
            yield from _python_prose(path, _read(path))
        elif path.endswith(_SCRIPTS) and not path.startswith("tests/clients") and not path.endswith("openapi.d.ts"):
            yield from _script_comments(path, _read(path))
        elif path.endswith(".md"):
            for number, line in enumerate(_read(path).splitlines(), 1):
                yield f"{path}:{number}", _without_code(line)


def _python_prose(path: str, source: str) -> Iterator[tuple[str, str]]:
    """Comments, and strings in triple quotes."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and token.string.startswith(('"""', 'r"""'))
        if is_docstring or token.type == tokenize.COMMENT:
            yield f"{path}:{token.start[0]}", token.string


def _script_comments(path: str, source: str) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(source.splitlines(), 1):
        comment = re.search(r"(?:^|\s)//.*|/\*.*|^\s*\*.*", line)
        if comment:
            yield f"{path}:{number}", comment[0]


def _without_code(line: str) -> str:
    return re.sub(r"`[^`]*`", "", line)


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
