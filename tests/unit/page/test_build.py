"""The build of the page's files: hashed names that hold together, compressed forms, one build after another."""

import gzip
import importlib.util
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import brotli
import pytest

ROOT = Path(__file__).resolve().parents[3]
SHARED = 'export const greet = (name) => "hello " + name + document.title;'
SOURCES = {
    "worker.js": 'self.kept = "worker";\n',
    "main.js": 'import { greet } from "./shared.js"; greet("main"); onclick = () => import("./panel.js");',
    "simple.js": 'import { greet } from "./shared.js"; greet("simple");',
    "testing.js": 'export { greet } from "./shared.js";',
    "shared.js": SHARED,
    # two chunks that import each other, one of them when it is needed
    "panel.js": 'import { greet } from "./shared.js"; export const open = () => import("./deep.js"); greet("panel");',
    "deep.js": 'import { open } from "./panel.js"; export const deep = () => open;',
}


@pytest.fixture
def build(tmp_path: Path) -> ModuleType:
    """The build script, for sources of a page as small as can be."""
    spec = importlib.util.spec_from_file_location("page_build", ROOT / "static" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = tmp_path / "src"
    (source / "js").mkdir(parents=True)
    (source / "css").mkdir()
    for name, text in SOURCES.items():
        (source / "js" / name).write_text(text)
    (source / "css" / "a.css").write_text("p {\n  color: red;\n}\n")
    (source / "icon.svg").write_text("<svg/>")
    (tmp_path / "deno.json").write_text("{}")
    (tmp_path / "deno.lock").write_text((ROOT / "static" / "deno.lock").read_text())
    changed: dict[str, object] = {"HERE": tmp_path, "SOURCE": source, "DIST": tmp_path / "dist", "STYLES": ("a.css",)}
    changed["ADMIN_STYLES"] = ("a.css",)
    changed |= {
        "ENTRIES": ("js/main.js", "js/simple.js"),
        "JOINED": ("js/main.js",),
        "FRAMES": {},
        "FOR_TESTS": "js/testing.js",
        "WORKER": "js/worker.js",
    }
    for name, value in changed.items():
        setattr(module, name, value)
    return module


@pytest.fixture
def run_build(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, str]]:
    """Build, and return the files by name."""
    monkeypatch.setattr("sys.argv", ["build.py", "--update-lock"])

    def run_build() -> dict[str, str]:
        build.main()
        return {path.name: path.read_text() for path in build.DIST.iterdir() if path.suffix in {".js", ".css", ".map"}}

    return run_build


def manifest(build: ModuleType) -> dict[str, dict[str, list[str] | str]]:
    entries: dict[str, dict[str, list[str] | str]] = json.loads((build.DIST / "manifest.json").read_text())["entries"]
    return entries


def test_modules_import_each_other_by_names_that_exist(
    build: ModuleType, run_build: Callable[[], dict[str, str]]
) -> None:
    files = run_build()
    imported = {name for text in files.values() for name in re.findall(r"""["'(]\./([\w.-]+)["')]""", text)}
    hashed = re.compile(r"[a-z]+\.[0-9a-f]{12}\.js")
    assert {name.partition(".")[0] for name in imported} >= {"panel", "deep", "first"}
    assert imported <= files.keys()
    assert all(hashed.fullmatch(name) for name in imported)
    assert sorted(entry for entry in manifest(build)) == [
        "admin.css",
        "app.css",
        "icon.svg",
        "main.js",
        "simple.js",
        "worker.js",
    ]
    for name, text in files.items():
        # The worker is given out at another address, and the main entry is a line that names its one file.
        if name.endswith(".js") and not name.startswith(("worker.", "main.")):
            assert text.rstrip().endswith(f"sourceMappingURL={name}.map")
            assert f"{name}.map" in files


def test_an_entry_preloads_what_it_needs_at_once_and_nothing_else(
    build: ModuleType, run_build: Callable[[], dict[str, str]]
) -> None:
    files = run_build()
    main = manifest(build)["main.js"]
    loaded = "".join(files[name] for name in [main["file"], *main["preload"]] if isinstance(name, str))
    assert '"hello "' in loaded
    assert not any(name.startswith(("panel", "deep")) for name in main["preload"])
    assert manifest(build)["app.css"]["preload"] == []


def test_what_is_needed_first_is_one_file_and_later_modules_take_from_it(
    build: ModuleType, run_build: Callable[[], dict[str, str]]
) -> None:
    files = run_build()
    main = manifest(build)["main.js"]
    first = main["preload"][0]
    assert main["preload"] == [first]
    assert files[str(main["file"])].strip() == f'import"./{first}";'
    assert '"hello "' in files[first]
    later = "".join(text for name, text in files.items() if re.match(r"(panel|deep|chunk)\..*\.js$", name))
    assert f'from"./{first}"' in later
    assert '"hello "' not in later
    sources = json.loads(files[f"{first}.map"])["sources"]
    assert any(
        source.endswith("src/js/shared.js") for source in sources
    )  # what a developer has written, not what was made


def test_compressed_forms_hold_the_same_and_source_maps_have_none(
    build: ModuleType, run_build: Callable[[], dict[str, str]]
) -> None:
    run_build()
    served = [path for path in build.DIST.iterdir() if re.search(r"\.[0-9a-f]{12}\.(js|css|svg)$", path.name)]
    assert len(served) >= 6
    for path in served:
        assert brotli.decompress(path.with_name(path.name + ".br").read_bytes()) == path.read_bytes()
        assert gzip.decompress(path.with_name(path.name + ".gz").read_bytes()) == path.read_bytes()
    assert not list(build.DIST.glob("*.map.*"))
    assert (build.DIST / "testing.js").exists()
    assert not list(build.DIST.glob("testing.js.[bg]*"))  # its content changes below its name


def test_a_change_gives_new_names_and_the_same_sources_the_same(
    build: ModuleType, run_build: Callable[[], dict[str, str]]
) -> None:
    first = run_build()
    before = manifest(build)
    panel = build.SOURCE / "js" / "panel.js"
    panel.write_text(SOURCES["panel.js"].replace('"panel"', '"another panel"'))
    second = run_build()
    after = manifest(build)
    assert after["main.js"]["file"] != before["main.js"]["file"]  # it names the panel
    assert after["simple.js"] == before["simple.js"]
    assert first.keys() <= second.keys()  # a page that is open still gets its panel
    panel.write_text(SOURCES["panel.js"])
    third = run_build()
    assert manifest(build) == before
    assert first.keys() <= third.keys()


def test_the_build_before_the_last_one_is_removed(build: ModuleType, run_build: Callable[[], dict[str, str]]) -> None:
    main = build.SOURCE / "js" / "main.js"
    names = []
    for number in range(3):
        main.write_text(f"{SOURCES['main.js']} greet({number});")
        run_build()
        names.append(str(manifest(build)["main.js"]["file"]))
    left = {path.name for path in build.DIST.iterdir()}
    assert {names[1], names[2]} <= left
    assert not [name for name in left if name.startswith(names[0])]
    assert not [name for name in left if name.startswith(".")]


def test_a_chunk_may_not_import_an_entry(build: ModuleType, run_build: Callable[[], dict[str, str]]) -> None:
    (build.SOURCE / "js" / "panel.js").write_text('import("./main.js");')
    with pytest.raises(SystemExit, match=r"imports main\.js, which is an entry"):
        run_build()


def test_a_mistake_is_told_in_the_words_of_the_bundler(
    build: ModuleType, run_build: Callable[[], dict[str, str]]
) -> None:
    first = run_build()
    (build.SOURCE / "js" / "main.js").write_text("const = 1;")
    with pytest.raises(SystemExit, match="The page could not be built"):
        run_build()
    assert first.keys() == {p.name for p in build.DIST.iterdir() if p.suffix in {".js", ".css", ".map"}}
    assert not list(build.HERE.glob("dist.*"))
