"""Functions, classes and modules stay small enough to be read."""

import ast

from tests.house.repository import PRODUCT, ROOT, Finding, judge, named_nodes, python_files

FOLDERS = (*PRODUCT, "tests", "bench")


def _lines(node: ast.AST) -> int:
    return (getattr(node, "end_lineno", 0) or 0) - getattr(node, "lineno", 0) + 1


def test_modules_have_at_most_500_lines() -> None:
    findings = [
        Finding("module-lines", path, f"{len(text.splitlines())} lines")
        for path, text, _ in python_files(*FOLDERS)
        if len(text.splitlines()) > 500
    ]
    judge(findings, {"module-lines"})


def test_functions_have_at_most_60_lines_and_6_arguments() -> None:
    findings = []
    for path, _, tree in python_files(*FOLDERS):
        for name, node in named_nodes(tree):
            if isinstance(node, ast.ClassDef) or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if _lines(node) > 60:
                findings.append(Finding("function-lines", f"{path}::{name}", f"{_lines(node)} lines"))
            positional = [argument for argument in node.args.args if argument.arg not in {"self", "cls"}]
            if not path.startswith("tests/") and len(positional) > 6:
                findings.append(Finding("function-arguments", f"{path}::{name}", f"{len(positional)} arguments"))
    judge(findings, {"function-lines", "function-arguments"})


def test_classes_have_at_most_300_lines_and_20_methods() -> None:
    findings = []
    for path, _, tree in python_files(*FOLDERS):
        for name, node in named_nodes(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            methods = [child for child in node.body if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))]
            if _lines(node) > 300:
                findings.append(Finding("class-lines", f"{path}::{name}", f"{_lines(node)} lines"))
            if len(methods) > 20:
                findings.append(Finding("class-methods", f"{path}::{name}", f"{len(methods)} methods"))
    judge(findings, {"class-lines", "class-methods"})


def test_app_packages_import_nothing_in_their_init() -> None:
    for app in PRODUCT:
        assert (ROOT / app / "__init__.py").read_text(encoding="utf-8") == "", f"{app}/__init__.py is not empty"
