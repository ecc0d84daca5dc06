"""No function, class, method or constant of the product is there for nothing, or for tests alone."""

import re
import tomllib
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from vulture import Vulture

from tests.house.repository import PRODUCT, ROOT, committed

_KINDS = {"class", "function", "import", "method", "property"}
_DECORATORS = [
    "@override",
    "@*router.*",
    "@durable*",
    "@admin.*",
    "@register*",
    "@receiver*",
    "@*_validator*",
    "@*.connect*",
    "@client_callable*",
]
_BY_FRAMEWORKS = [
    "*Config",  # of apps
    "Command",
    "Meta",
    "add_arguments",
    "clean_*",  # of forms
    "get_*",  # of admins and fields
    "handle",
    "has_*_permission",
    "ready",
    "__*__",
]
_OF_TESTS = ("/settings.py", "/settings_test.py", "/testing.py", "/postgres_for_tests.py")
"""Settings, which Django reads, and kits for tests."""


def test_everything_is_used() -> None:
    text = (ROOT / "tests/house/exceptions.toml").read_text(encoding="utf-8")
    listed = tomllib.loads(text)["unused"]
    assert all(len(entry["reason"]) > 15 for entry in listed)
    allowed = {name for entry in listed for name in entry["names"]}
    found = list(unused([ROOT / name for name in PRODUCT]))
    new = {where: name for where, name in found if name not in allowed and name not in named_elsewhere()}
    assert not new, "\n".join(f"{where} {name}" for where, name in sorted(new.items()))
    gone = allowed - {name for _, name in found}
    assert not gone, f"listed, and used or gone: {sorted(gone)}"


def unused(paths: Collection[Path]) -> Iterator[tuple[str, str]]:
    """Places and names that no Python of these paths uses, and no part of the protocol of a framework has."""
    finder = Vulture(ignore_names=_BY_FRAMEWORKS, ignore_decorators=_DECORATORS)
    finder.scavenge([str(path) for path in paths], exclude=["*/migrations/*"])
    for item in finder.get_unused_code():
        is_counted = item.typ in _KINDS or (item.typ == "variable" and item.name.isupper())
        if is_counted and not str(item.filename).endswith(_OF_TESTS):
            yield f"{item.filename}:{item.first_lineno}", item.name


@cache
def named_elsewhere() -> frozenset[str]:
    """Names in pages and templates, which are public, and in texts of code: paths of settings, names of events."""
    words: set[str] = set()
    for path in committed():
        is_page = path.endswith(".md") and path != "CHANGELOG.md" and not path.startswith("tests/house/parity/")
        if is_page or (path.endswith(".html") and not path.startswith("tests/")):
            words |= set(re.findall(r"\w+", (ROOT / path).read_text(encoding="utf-8")))
        elif path.startswith(PRODUCT) and path.endswith(".py"):
            for literal in re.findall(r'"([\w.]+)"', (ROOT / path).read_text(encoding="utf-8")):
                words |= {literal.replace(".", "_"), literal.rpartition(".")[2]}
    return frozenset(words)


def test_unused_code_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("LIMIT = 1\ndef used(): ...\ndef dead(): ...\nclass Dead: ...\nused()\n", encoding="utf-8")
    assert {name for _, name in unused([planted])} == {"LIMIT", "dead", "Dead"}
