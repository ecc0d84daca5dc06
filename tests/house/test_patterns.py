"""Patterns that one of the supported Pythons reads otherwise."""

import ast
import re

from tests.house.repository import PRODUCT, python_files

POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{\d*,?\d*\})\+")


def test_no_group_is_possessive() -> None:
    """Python 3.11.0 to 3.11.4, which Debian has, match them wrongly; an atomic group, `(?>…)`, says the same."""
    found = []
    for path, _, tree in python_files(*PRODUCT):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                if POSSESSIVE_GROUP.search(text):
                    found.append(f"{path}:{node.lineno}")
    assert found == []
