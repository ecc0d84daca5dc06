"""What the house tests look at: the committed files, parsed."""

import ast
import subprocess
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("chat", "fibers", "sessions_app", "tools_app", "thinkproject")


@dataclass(frozen=True, slots=True)
class Finding:
    """A place that breaks a rule. `where` is what exceptions.toml names."""

    rule: str
    where: str
    said: str


@cache
def committed() -> tuple[str, ...]:
    """Paths of committed and new files, as git names them (a copy without git: every file)."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return tuple(sorted({line for line in done.stdout.splitlines() if (ROOT / line).is_file()}))
    hidden = {".venv", "var", "node_modules", "__pycache__", ".git", "dist", "staticfiles"}
    paths = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
    return tuple(sorted(str(path) for path in paths if not hidden & set(path.parts)))


def python_files(*folders: str) -> Iterator[tuple[str, str, ast.Module]]:
    """Path, text and tree of each Python file below the folders, migrations left out."""
    for path in committed():
        is_below = path.startswith(tuple(f"{folder}/" for folder in folders))
        if is_below and path.endswith(".py") and "/migrations/" not in path:
            yield path, *_parsed(path)


@cache
def _parsed(path: str) -> tuple[str, ast.Module]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return text, ast.parse(text)


def dotted(path: str) -> str:
    """The name by which a file is imported."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def circles(graph: Mapping[str, Collection[str]]) -> list[set[str]]:
    """Groups of nodes that lead to each other."""
    left = {name: set(targets) for name, targets in graph.items()}
    while ends := {name for name, targets in left.items() if not targets & left.keys()}:
        left = {name: targets for name, targets in left.items() if name not in ends}
    reached = {name: _reached(name, left) for name in left}
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in left}
    return [set(group) for group in groups if group]


def _reached(name: str, graph: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    open_ones = [name]
    while open_ones:
        new = (graph[open_ones.pop()] & graph.keys()) - found
        found |= new
        open_ones += new
    return found


def named_nodes(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Every function and class with its dotted name."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{prefix}{child.name}"
                yield name, child
                yield from walk(child, f"{name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(tree, "")


def judge(findings: list[Finding], rules: set[str]) -> None:
    """Fail for each finding without an exemption, and for each exemption of these rules without a finding."""
    text = (ROOT / "tests/house/exceptions.toml").read_text(encoding="utf-8")
    entries = [entry for entry in tomllib.loads(text).get("exempt", []) if entry["rule"] in rules]
    assert all(len(entry.get("reason", "")) > 15 for entry in entries), "an exemption needs a reason"
    exempt = {(entry["rule"], entry["where"]) for entry in entries}
    found = {(finding.rule, finding.where): finding.said for finding in findings}
    broken = [f"{where}: {said} ({rule})" for (rule, where), said in found.items() if (rule, where) not in exempt]
    unneeded = [f"{where} ({rule})" for rule, where in exempt - found.keys()]
    assert not broken, "\n" + "\n".join(sorted(broken))
    assert not unneeded, "exemptions that are no longer needed:\n" + "\n".join(sorted(unneeded))
