"""The source of the page: small files, layers, no circle of imports, functions within the linter's bound."""

import json
import re
from pathlib import PurePosixPath

from tests.house.repository import ROOT, Finding, circles, committed, judge

SOURCES = "static/src/app/"
GENERATED = {"static/src/app/net/openapi.d.ts"}
LAYERS = (
    {"lib", "messages"},
    {"net", "preview"},
    {"store"},
    {"ui"},
    {"panels", "dialogs"},
    {"settings"},
    {"later"},
)
"""Folders of the page, the lowest first. A file takes from its own folder and from those below; entries from all."""
_IMPORTS = re.compile(r'^(?:import|export)\s[^;]*?\bfrom\s+"(\.[^"]+)"|^import\s+"(\.[^"]+)"', re.MULTILINE)
_LATER = re.compile(r'\bimport\(\s*"(\.[^"]+)"')
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


def test_files_of_the_page_take_from_lower_layers_only() -> None:
    """Types count as well. What a view loads when it is needed may stand above it in `later` alone."""
    found = [problem for path in scripts() for problem in upward(path.removeprefix(SOURCES), _read(path))]
    assert found == []


def upward(path: str, text: str) -> list[str]:
    """What a file takes from a layer above its own, or from another folder of the same layer."""
    folder = PurePosixPath(path).parent
    at_once = [str(_resolved(folder, first or alone)) for first, alone in _IMPORTS.findall(text)]
    when_needed = [str(_resolved(folder, source)) for source in _LATER.findall(text)]
    may_load = _level(path) > _level("store/")  # the state names no view
    taken = [*at_once, *(name for name in when_needed if not (may_load and _layer(name) == "later"))]
    return [f"{path} takes {name}" for name in taken if not _may_take(path, name)]


def _layer(path: str) -> str:
    return path.partition("/")[0]


def _level(path: str) -> int:
    """Entries, which lie in no folder, are above all."""
    return next((level for level, folders in enumerate(LAYERS) if _layer(path) in folders), len(LAYERS))


def _may_take(path: str, name: str) -> bool:
    shares = _layer(path) == _layer(name) or {_layer(path), _layer(name)} == {"lib", "messages"}
    return shares or _level(name) < _level(path)


def test_every_folder_of_the_page_has_a_layer() -> None:
    folders = {path.removeprefix(SOURCES).partition("/")[0] for path in scripts() if "/" in path.removeprefix(SOURCES)}
    assert folders == set().union(*LAYERS)


def test_what_a_file_takes_from_above_is_found() -> None:
    lines = [
        'import type { App } from "../store/app.ts";',
        'export { View } from "../ui/view.tsx";',
        'import {\n  t,\n} from "../lib/i18n.ts";',
        'const dialogs = () => import("../later/dialogs.ts");',
    ]
    text = "\n".join(lines)
    assert upward("net/api.ts", text) == [
        "net/api.ts takes store/app.ts",
        "net/api.ts takes ui/view.tsx",
        "net/api.ts takes later/dialogs.ts",
    ]
    assert upward("ui/page.tsx", text) == []
    assert upward("store/app.ts", text) == ["store/app.ts takes ui/view.tsx", "store/app.ts takes later/dialogs.ts"]
    assert upward("panels/a.tsx", 'import "../dialogs/b.tsx";') == ["panels/a.tsx takes dialogs/b.tsx"]
    assert upward("main.tsx", text.replace("../", "./")) == []


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


_SIDE = re.compile(
    r"^ *((?:margin|padding|border)-(?:left|right)\b[\w-]*|left|right|border-\w+-(?:left|right)-radius):", re.MULTILINE
)
_ASIDE = re.compile(r"^ *(?:text-align|float): *(?:-webkit-)?(left|right)\b", re.MULTILINE)
_FOUR = re.compile(r"^ *(?:margin|padding|inset): *(\S+) (\S+) (\S+) (\S+);", re.MULTILINE)
_OF_MATH = re.compile(r"^\.math[^{}]*\{[^{}]*\}", re.MULTILINE)


def sided(text: str) -> list[str]:
    """Declarations of a style sheet that name a side which changes with the direction of reading."""
    text = _OF_MATH.sub("", text)  # formulas run from the left everywhere
    four = [" ".join(sides) for sides in _FOUR.findall(text) if sides[1] != sides[3]]
    return [*_SIDE.findall(text), *_ASIDE.findall(text), *four]


def test_styles_hold_for_both_directions_of_reading() -> None:
    styles = [path for path in committed() if path.startswith("static/src/css/")]
    assert len(styles) > 15
    found = {path: sided(_read(path)) for path in styles}
    assert {path: sides for path, sides in found.items() if sides} == {}, "use start and end, as `margin-inline-start`"


def test_sides_in_styles_are_found() -> None:
    lines = ["left: 0", "padding-right: 1px", "text-align: left", "margin: 0 1px 0 2px", "border-top-left-radius: 0"]
    text = "a {\n" + "".join(f"  {line};\n" for line in lines) + "}\n"
    assert sorted(sided(text)) == ["0 1px 0 2px", "border-top-left-radius", "left", "left", "padding-right"]
    assert sided("a {\n  margin: 0 1px 0 1px;\n  text-align: start;\n}\n.math b {\n  text-align: right;\n}\n") == []


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
