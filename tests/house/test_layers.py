"""Rules about imports and excepts that import-linter and ruff do not see."""

import ast
import subprocess
import sys
from collections.abc import Collection

import pytest

from tests.house.repository import PRODUCT, ROOT, Finding, circles, dotted, judge, named_nodes, python_files


def test_chat_think_imports_without_settings_and_without_django() -> None:
    code = "import sys, chat.think; print([m for m in sys.modules if m.split('.')[0] == 'django'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={"PATH": ""}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_no_broad_except_outside_the_named_places() -> None:
    findings = []
    for path, _, tree in python_files(*PRODUCT):
        for name, node in named_nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _catches_everything(node):
                findings.append(Finding("broad-except", f"{path}::{name}", "catches Exception"))
    judge(findings, {"broad-except"})


def test_no_double_of_the_standard_library_is_imported() -> None:
    offenders = [path for path, text, _ in python_files(*PRODUCT, "tests", "bench") if "unittest" + ".mock" in text]
    assert not offenders


def test_nothing_waits_in_a_way_that_may_lose_a_cancel() -> None:
    """Before Python 3.12 a cancel that comes with the result is lost there: `asyncio.timeout` keeps it."""
    offenders = [path for path, text, _ in python_files(*PRODUCT, "bench") if "asyncio.wait_for(" in text]
    assert not offenders


def test_tasks_are_never_imported_by_the_product() -> None:
    offenders = []
    for path, _, tree in python_files(*PRODUCT):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(".tasks"):
                offenders.append(path)
            if isinstance(node, ast.ImportFrom) and any(alias.name == "tasks" for alias in node.names):
                offenders.append(path)
    assert not offenders, "tasks are sent by name (docs/adr/0007)"


FOR_TYPES_ALONE = ("chat.agent.ports", "chat.instance.instance")
"""The one import upward, where type checkers alone look: a protocol in its place would repeat 80 methods (ADR 0014)."""


def test_no_module_imports_in_a_circle_at_run_time_or_for_types() -> None:
    """import-linter leaves imports for types out of its graph, and those by `import_module("a.name")`."""
    modules = {dotted(path): tree for path, _, tree in python_files(*PRODUCT)}
    graph = {name: _imported(tree, modules) - {name} for name, tree in modules.items()}
    graph[FOR_TYPES_ALONE[0]].remove(FOR_TYPES_ALONE[1])
    found = [" + ".join(sorted(circle)) for circle in circles(graph)]
    judge([Finding("import-circle", circle, "import each other") for circle in found], {"import-circle"})


@pytest.mark.parametrize(
    "text",
    ["import a.b", "from a import b", "from a.b import f", "import_module('a.b')", "importlib.import_module('a.b')"],
)
def test_an_import_is_found(text: str) -> None:
    assert _imported(ast.parse(f"def late():\n    {text}"), {"a.b", "a.c"}) == {"a.b"}


def _imported(tree: ast.AST, modules: Collection[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else str(node.module) for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            literals = [value.value for value in node.args if isinstance(value, ast.Constant)]
            found |= {value for value in literals if isinstance(value, str)}
    return found & set(modules)


def _catches_everything(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    for node in _own_nodes(function):
        if isinstance(node, ast.ExceptHandler):
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {kind.id if isinstance(kind, ast.Name) else "" for kind in kinds}
            reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in node.body[-1:])
            if (node.type is None or names & {"Exception", "BaseException"}) and not reraises:
                return True
    return False


def _own_nodes(function: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found += [child, *_own_nodes(child)]
    return found


_ALONE = """
import sys
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "sessions_app.apps.SessionsConfig"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.core.management import call_command

call_command("migrate", verbosity=0)
from sessions_app.public.manager import SessionManager

sessions = SessionManager(scope="mine")
question = sessions.create("First").append("hi")
copy = sessions.import_session(sessions.export(sessions.current_id))
print([m.parts[0]["text"] for m in sessions.fork(copy.id, question).history()])
print([name for name in ("chat", "fibers", "tools_app", "celery", "channels") if name in sys.modules])
"""


def test_sessions_stand_alone() -> None:
    """In a project that has nothing else of ours, `SessionManager` makes, copies and forks conversations."""
    done = subprocess.run([sys.executable, "-c", _ALONE], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["['hi']", "[]"]
