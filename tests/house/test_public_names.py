"""What developers import is one list: every name exists, and the pages and examples import nothing else."""

import ast
import importlib
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.repository import ROOT
from thinkproject.reference import PUBLIC, meaning

OURS = ("chat", "fibers", "sessions_app", "tools_app", "thinkproject")
FOR_CONTRIBUTORS = ("docs/design/", "docs/adr/")
SETTINGS = "thinkproject.settings"  # settings modules of other projects extend it
CODE = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
IMPORT = re.compile(rf"^from ((?:{'|'.join(OURS)})[a-z_.]*) import ([^(\n#]+)", re.MULTILINE)


def documented_imports() -> Iterator[tuple[str, str, str]]:
    """Page, module and name of each import of ours in a block of Python that a page for developers shows."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page = path.relative_to(ROOT).as_posix()
        if page.startswith(FOR_CONTRIBUTORS):
            continue
        for found in CODE.finditer(path.read_text(encoding="utf-8")):
            for module, names in IMPORT.findall(textwrap.dedent(found.group(2))):
                for name in names.split(","):
                    yield page, module, name.strip().partition(" ")[0]


@pytest.mark.parametrize("module_name", PUBLIC)
def test_every_public_name_exists_and_is_described(module_name: str) -> None:
    module = importlib.import_module(module_name)
    assert len(module.__all__) == len(set(module.__all__))
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert meaning(module, name), f"{module_name}.{name} has no docstring"


def test_pages_import_public_names_only() -> None:
    imports = list(documented_imports())
    assert ("README.md", "chat.think", "Think") in imports
    private = [
        f"{page}: from {module} import {name}"
        for page, module, name in imports
        if module not in PUBLIC or name not in importlib.import_module(module).__all__
    ]
    assert private == []


def test_examples_and_new_agents_import_public_names_only() -> None:
    paths = [path for path in Path(ROOT / "examples").rglob("*.py") if "dist" not in path.parts]
    assert paths
    for path in [*paths, ROOT / "chat" / "agents.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OURS:
                assert node.module in {*PUBLIC, SETTINGS}, f"{path}: {node.module}"
