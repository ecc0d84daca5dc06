"""Migrations are complete, additive steps that can be taken back."""

import ast
import importlib
from io import StringIO
from typing import TypeGuard

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.house.repository import ROOT, committed

FIRST = importlib.import_module("chat.migrations.0001_tables").Migration


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


@pytest.mark.django_db
def test_a_database_that_was_left_half_way_is_not_migrated() -> None:
    recorder = MigrationRecorder(connection)
    since = sorted(name for app, name in recorder.applied_migrations() if app == "think_chat" and name[:4] < "0029")
    for name in ("0029_kept_changes", *since):
        recorder.record_unapplied("think_chat", name)
    for number in range(1, 29):
        recorder.record_applied("think_chat", _replaced(number))
    with pytest.raises(CommandError, match="think_chat lacks 0029_kept_changes"):
        call_command("migrate", verbosity=0)
    for name in ("0029_kept_changes", *(name for name in since if name != "0001_tables")):
        recorder.record_applied("think_chat", name)
    call_command("migrate", verbosity=0)
    assert ("think_chat", "0001_tables") in recorder.applied_migrations()


def _replaced(number: int) -> str:
    """The name of a migration of chat that the first one stands for."""
    [name] = [name for _app, name in FIRST.replaces if name.startswith(f"{number:04d}_")]
    return str(name)


def _is_data_step(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in {"RunPython", "RunSQL"}
