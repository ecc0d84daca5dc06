"""Migrations are complete, additive steps that can be taken back."""

import ast
from io import StringIO
from typing import TypeGuard

import pytest
from django.core.management import call_command

from tests.house.repository import ROOT, committed


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())


def test_every_data_step_can_be_reversed() -> None:
    offenders = []
    for path in committed():
        if "/migrations/" not in path or not path.endswith(".py"):
            continue
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
            if _is_data_step(node):
                keywords = {keyword.arg for keyword in node.keywords}
                if len(node.args) < 2 and not keywords & {"reverse_code", "reverse_sql"}:
                    offenders.append(path)
    assert not offenders


def _is_data_step(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in {"RunPython", "RunSQL"}
