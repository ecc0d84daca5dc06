"""A public class name means one thing in the whole product; what is left is listed with its reason."""

import ast
import tomllib
from collections import defaultdict

import pytest

from tests.house.repository import PRODUCT, ROOT, python_files

_BY_DJANGO = {"Command", "Meta"}  # a command's class has the name that Django looks for


def repeated(modules: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Public classes at the top of several modules: name to the paths of these."""
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in modules.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name not in _BY_DJANGO:
                places[node.name].append(path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def test_a_public_class_name_means_one_thing() -> None:
    listed = tomllib.loads((ROOT / "tests/house/exceptions.toml").read_text(encoding="utf-8"))["shared-names"]
    assert all(len(entry["reason"]) > 15 for entry in listed)
    allowed = {(name, count) for entry in listed for name, count in entry["classes"].items()}
    found = repeated({path: tree for path, _, tree in python_files(*PRODUCT)})
    counted = {(name, len(paths)) for name, paths in found.items()}
    new = [f"{name}: {', '.join(found[name])}" for name, _ in sorted(counted - allowed)]
    assert not new, "\n" + "\n".join(new)
    assert not allowed - counted, f"listed, and no longer so: {sorted(allowed - counted)}"


@pytest.mark.parametrize(("text", "is_found"), [("class Page: ...", True), ("class _Page: ...", False)])
def test_a_name_of_two_modules_is_found(text: str, *, is_found: bool) -> None:
    trees = {path: ast.parse(text) for path in ("chat/a.py", "tools_app/b.py")}
    assert bool(repeated(trees)) is is_found
