"""The source of the page: small files, no circle of imports, functions within the linter's bound."""

import json
import re
from pathlib import PurePosixPath

from tests.house.repository import ROOT, Finding, circles, committed, judge

SOURCES = "static/src/app/"
GENERATED = {"static/src/app/net/openapi.d.ts"}
_VALUES = re.compile(
    r'^(?:import|export)\s+(?!type\b)([^;]*?)\bfrom\s+"(\.[^"]+)";|^import\s+"(\.[^"]+)";', re.MULTILINE
)


def scripts() -> list[str]:
    """Paths of the page's own files."""
    found = [path for path in committed() if path.startswith(SOURCES) and path.endswith((".ts", ".tsx"))]
    assert len(found) > 200, "the page's files are elsewhere"
    return [path for path in found if path not in GENERATED]


def test_scripts_of_the_page_have_at_most_400_lines() -> None:
    lengths = {path: len(_read(path).splitlines()) for path in scripts()}
    found = [Finding("script-lines", path, f"{lines} lines") for path, lines in lengths.items() if lines > 400]
    judge(found, {"script-lines"})


def test_no_scripts_import_each_other() -> None:
    """For values: a type may stand on both sides, and what is loaded later is there by then."""
    graph = {path: imported(path, _read(path)) for path in scripts()}
    assert sum(map(len, graph.values())) > 500
    assert circles(graph) == []


def imported(path: str, text: str) -> set[str]:
    """Paths of the files whose values a script takes when it is loaded."""
    taken = set()
    for names, source, alone in _VALUES.findall(text):
        listed = re.findall(r"[^{},\s][^{},]*", names)
        if alone or any(not name.startswith("type ") for name in listed):
            taken.add(str(_resolved(PurePosixPath(path).parent, alone or source)))
    return taken


def _resolved(folder: PurePosixPath, source: str) -> PurePosixPath:
    for part in PurePosixPath(source).parts:
        folder = folder.parent if part == ".." else folder / part
    return folder


def test_values_of_other_scripts_are_found() -> None:
    lines = [
        'import { a, type B } from "../lib/a.ts";',
        'import {\n  c,\n} from "./c.tsx";',
        'import { type D } from "./d.ts";',
        'import type { E } from "./e.ts";',
        'import "./f.ts";',
        'export { g } from "./g.ts";',
        'const h = () => import("./h.ts");',
    ]
    text = "\n".join(lines)
    assert imported("x/ui/page.tsx", text) == {"x/lib/a.ts", "x/ui/c.tsx", "x/ui/f.ts", "x/ui/g.ts"}


def test_the_linter_bounds_the_functions_of_the_page() -> None:
    """`make check` runs it; its rule is `static/lint/function_lines.ts`."""
    config = json.loads(_read("static/deno.json"))
    assert "./lint/function_lines.ts" in config["lint"]["plugins"]
    assert [path for path in scripts() if "think-lines/function-lines" in _read(path)] == []


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
