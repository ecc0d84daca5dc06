"""Builds what the pages load into `static/dist/`: modules, one style sheet. Run at set-up and after each edit.

Each file that a page loads has the hash of its content in its name, so browsers may keep it for ever, and lies there
compressed as well (`.br`, `.gz`). `manifest.json` says which names belong to an entry; it is replaced last, in one
step. The files of the build before stay until the next one: pages that are open may still load them.

The libraries come from the npm registry as `deno.lock` pins them (hashes, no address) and stay in Deno's cache, so the
second run needs no network. Nothing in `dist/` is committed.
"""

import argparse
import fcntl
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src"
DIST = HERE / "dist"
ENTRIES = ("app/main.tsx", "app/shared.tsx", "app/simple.ts", "app/admin.ts")
JOINED = ("app/main.tsx", "app/shared.tsx")
"""Entries whose first chunks become one file: the bundler makes many, one for each set of later ones that need them."""
FRAMES = {"app/preview/frame.ts": "", "app/preview/mermaid.ts": "@mermaid-js/tiny/dist/mermaid.tiny.js"}
"""Scripts inside the frames of previews, each with a library that stands before it as its authors built it.

Each is one file, which no page loads and which shares nothing with one.
"""
WORKER = "app/worker.ts"
"""The service worker: the server gives it out under one address, with what it is to keep before it."""
FOR_TESTS = "app/testing.ts"
"""Browser tests import it by its plain name; no page loads it, and the entries' chunks do not depend on it."""
STYLES = (
    "tokens.css",
    "base.css",
    "layout.css",
    "sidebar.css",
    "head.css",
    "pickers.css",
    "approvals.css",
    "settings.css",
    "account.css",
    "usage.css",
    "conversation.css",
    "message.css",
    "tools.css",
    "content.css",
    "composer.css",
    "panel.css",
    "calls.css",
    "previews.css",
    "runs.css",
    "files.css",
    "extras.css",
    "selection.css",
    "projects.css",
    "sharing.css",
    "notifications.css",
    "branches.css",
    "threads.css",
    "simple.css",
    "forced.css",
    "print.css",
)
ADMIN_STYLES = ("tokens.css", "admin.css")
"""The look of the administration. Django's own rules for `html[data-theme]` are as specific as these then are."""
DOWNLOAD = "about 7 MB (esbuild and the libraries from the npm registry, once)"

_CHUNK = re.compile(r"(?P<stem>.+)-(?P<hash>[A-Z0-9]{8})\.js")
_AREA = re.compile(r"""["']\./en/([\w-]+)\.json["']""")
_HASHED = re.compile(r"\.[0-9a-f]{12}\.")
_STATIC_IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*["']\./([\w.-]+\.js)["']""")
_NAMES = re.compile(r"""import\{(?P<names>[^}]*)\}from["']\./(?P<file>[\w.-]+\.js)["'];?""")
_BARE = re.compile(r"""import["']\./(?P<file>[\w.-]+\.js)["'];?""")
_EXPORTS = re.compile(r"export\{(?P<names>[^}]*)\};?")
_LAZY_IMPORT = re.compile(r"""import\(["']\./([\w.-]+\.js)["']\)""")
_ANY_IMPORT = re.compile(r"""["']\./([\w.-]+\.js)["']""")


def say(text: str) -> None:
    """Print a line for the person at the terminal."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def source_stamp() -> str:
    """One hash of everything that a build depends on."""
    digest = hashlib.sha256()
    sources = [*sorted(SOURCE.rglob("*.*")), *sorted((HERE / "vendor").rglob("*.*"))]
    for path in [HERE / "deno.json", HERE / "deno.lock", Path(__file__), *(path for path in sources if path.is_file())]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def is_current() -> bool:
    """Whether `dist/` was built from exactly these sources."""
    stamp = DIST / "stamp"
    return stamp.exists() and stamp.read_text() == source_stamp()


# --- Deno ---------------------------------------------------------------------------------------------------------


def run_deno(arguments: list[str], *, cache: Path | None) -> subprocess.CompletedProcess[str]:
    """Run the Deno of the wheel in this folder, without its update check."""
    from deno import find_deno_bin  # noqa: PLC0415 - of the environment, while `is_current` needs none

    environment = {**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    if cache:
        environment["DENO_DIR"] = str(cache)
    command = [find_deno_bin(), *arguments]
    return subprocess.run(command, cwd=HERE, env=environment, text=True, capture_output=True, check=False)  # noqa: S603 - fixed arguments


def has_libraries(cache: Path | None) -> bool:
    """Whether Deno's cache holds the pinned libraries, so that nothing will be fetched."""
    packages = json.loads((HERE / "deno.lock").read_text()).get("npm", {}) if (HERE / "deno.lock").exists() else {}
    folder = Path(json.loads(run_deno(["info", "--json"], cache=cache).stdout)["npmCache"])
    fetched = [name for name, facts in packages.items() if facts.get("integrity")]  # others lie in `vendor/`
    wanted = [name.rpartition("@") for name in fetched if not name.startswith("@")]
    return bool(wanted) and all(any(folder.glob(f"*/{name}/{version}")) for name, _, version in wanted)


def bundle(folder: Path, *, cache: Path | None, is_frozen: bool) -> None:
    """Bundle the entries with their libraries, and the style sheet. Errors: exits with Deno's own words.

    What several entries use, and what is imported when it is needed, comes as chunks of their own beside them.
    """
    if not has_libraries(cache):
        say(f"Fetching the page's libraries: {DOWNLOAD}.")
    frozen = ["--frozen"] if is_frozen else []
    deno_or_exit(["install", *frozen], cache=cache)
    (HERE / "node_modules").mkdir(exist_ok=True)  # without libraries there is none
    # They take the libraries as they are: else each would tidy away what another needs at the same time.
    common = ["bundle", "--node-modules-dir=manual", "--platform=browser", "--minify", *frozen]
    with_map = "--sourcemap=linked"
    style = folder / "app.css"
    style.write_text("\n".join((SOURCE / "css" / name).read_text() for name in STYLES))
    admin_style = folder / "admin.css"
    admin_texts = "\n".join((SOURCE / "css" / name).read_text() for name in ADMIN_STYLES)
    admin_style.write_text(re.sub(r"(?<!html)(?=:root\b)", "html", admin_texts))
    frames = [["--format=iife", f"src/{frame}"] for frame in FRAMES]
    apart = [[with_map, "--code-splitting", f"src/{entry}"] for entry in ENTRIES if entry not in JOINED]
    small = [*apart, [f"src/{WORKER}"], [with_map, f"src/{FOR_TESTS}"], *frames, [str(style)], [str(admin_style)]]
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        done = [threads.submit(bundle_joined, folder, entry, common, cache=cache) for entry in JOINED]
        done += [threads.submit(deno_or_exit, [*common, f"--outdir={folder}", *each], cache=cache) for each in small]
    for each in done:
        each.result()
    for frame, library in FRAMES.items():
        if library:
            script = folder / Path(frame).with_suffix(".js").name
            script.write_text(f"{(HERE / 'node_modules' / library).read_text()}\n{script.read_text()}")


def bundle_joined(folder: Path, source: str, common: list[str], *, cache: Path | None) -> None:
    """Bundle an entry. It and the chunks that it needs before it runs become one file, from which later ones take."""
    entry = Path(source).with_suffix(".js").name
    with tempfile.TemporaryDirectory(dir=folder) as name:
        made = Path(name)
        options = [*common, "--sourcemap=linked"]
        deno_or_exit([*options, f"--outdir={made}", "--code-splitting", f"src/{source}"], cache=cache)
        texts = {path.name: path.read_text() for path in made.iterdir()}
        first = [entry, *preloads(entry, texts)]
        later = reached(first, texts)
        aliases = {
            (chunk, each): f"{each}_{number}"
            for number, chunk in enumerate(first[1:])
            for exported in _EXPORTS.findall(texts[chunk])
            for each in (pair.split(" as ")[-1] for pair in exported.split(","))
        }
        taken = [f'export {{{each} as {alias}}} from "./{chunk}";' for (chunk, each), alias in aliases.items()]
        (made / "first.js").write_text("\n".join([f'import "./{entry}";', *taken]))
        outside = [f"--external=./{chunk}" for chunk in later]
        deno_or_exit([*options, *outside, f"--outdir={made / 'out'}", str(made / "first.js")], cache=cache)
        text, source_map = ((made / "out" / f"first.js{suffix}").read_text() for suffix in ("", ".map"))
    joined = f"first-{short_hash(text.encode())[:8].upper()}.js"
    bundled = {joined: text.replace("=first.js.map", f"={joined}.map"), f"{joined}.map": source_map}
    names = {}  # of all later ones: the bundler's says nothing of the file that they take from, or those that they load
    for chunk in later:
        bundled[chunk], bundled[f"{chunk}.map"] = taking_from(joined, texts[chunk], aliases), texts[f"{chunk}.map"]
        stem, _, _ = chunk.rpartition("-")
        names[chunk] = f"{stem}-{short_hash(chunk.encode(), joined.encode())[:8].upper()}.js"
    for chunk, content in {**bundled, entry: f'import"./{joined}";\n'}.items():
        plain = chunk.removesuffix(".map")
        for old, new in names.items():
            content = content.replace(old, new)  # noqa: PLW2901 - one text, changed step by step
        (folder / chunk.replace(plain, names.get(plain, plain))).write_text(content)


def reached(first: list[str], texts: dict[str, str]) -> list[str]:
    """The chunks that these load later, and all that those need."""
    found: list[str] = []
    waiting = list(first)
    while waiting:
        text = texts[waiting.pop()]
        for name in (*_LAZY_IMPORT.findall(text), *_STATIC_IMPORT.findall(text)):
            if name in texts and name not in first and name not in found:
                found.append(name)
                waiting.append(name)
    return found


def taking_from(joined: str, text: str, aliases: dict[tuple[str, str], str]) -> str:
    """A chunk that takes from one file what it took from several. What it imports is blank: all else keeps its place.

    Errors: exits when it names one of these files in another way.
    """
    gone = {file for file, _ in aliases}
    names: list[str] = []

    def blank(found: re.Match[str]) -> str:
        if found["file"] not in gone:
            return found[0]
        for each in found.groupdict().get("names", "").split(",") if "names" in found.groupdict() else ():
            exported, _, local = each.partition(" as ")
            names.append(f"{aliases[found['file'], exported]} as {local or exported}")
        return " " * len(found[0])

    text = _BARE.sub(blank, _NAMES.sub(blank, text))
    if left := gone & set(_ANY_IMPORT.findall(text)):
        sys.exit(f"A chunk that is loaded later names {left.pop()}, which is a part of {joined} now.")
    code, mark, rest = text.rpartition("//# sourceMappingURL=")
    return f'{code}import{{{",".join(names)}}}from"./{joined}";\n{mark}{rest}' if names else text


def deno_or_exit(arguments: list[str], *, cache: Path | None) -> None:
    """Run Deno. Errors: exits with its own words."""
    done = run_deno(arguments, cache=cache)
    if done.returncode != 0:
        sys.exit(f"The page could not be built. Deno says:\n{done.stderr.strip()}")


# --- Names --------------------------------------------------------------------------------------------------------


def short_hash(*contents: bytes) -> str:
    """Twelve hexadecimal digits, as Django's own hashed names have."""
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:12]


def with_hash(name: str, digest: str) -> str:
    """`main.js` with a hash: `main.0123456789ab.js`."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{digest}.{suffix}"


def with_hashed_chunks(bundled: dict[str, str]) -> dict[str, str]:
    """Give chunks the form of name that all hashed files have; the bundler's is `stem-8LETTERS.js`.

    Shape: texts by file name. The bundler's hash covers what a chunk imports, so chunks that import each other are no
    difficulty. Errors: exits when a chunk imports an entry, whose name would not be the one that pages load.
    """
    entries = {Path(entry).with_suffix(".js").name for entry in ENTRIES}
    names = {}
    for name in bundled:
        if found := _CHUNK.fullmatch(name):
            names[name] = with_hash(f"{found['stem']}.js", short_hash(name.encode()))
    renamed = {}
    for name, text in bundled.items():
        if name.endswith(".js") and (wrong := entries & set(_ANY_IMPORT.findall(text))):
            sys.exit(f"{name} imports {wrong.pop()}, which is an entry: move what both need into a module of its own.")
        for old, new in names.items():
            text = text.replace(old, new)  # noqa: PLW2901 - one text, changed step by step
        plain = name.removesuffix(".map")
        renamed[name.replace(plain, names.get(plain, plain))] = text
    return renamed


def preloads(name: str, texts: dict[str, str]) -> list[str]:
    """The chunks that a module needs before it runs, as its imports name them, and those that these need."""
    found: list[str] = []
    waiting = [name]
    while waiting:
        for imported in _STATIC_IMPORT.findall(texts[waiting.pop(0)]):
            if imported in texts and imported not in found:
                found.append(imported)
                waiting.append(imported)
    return found


# --- Languages ----------------------------------------------------------------------------------------------------


def translations() -> dict[str, str]:
    """Modules with the texts of each language besides English: for the first view, and for what is opened later.

    Shape: texts by file name, as that of a language and of what it says later. What is not translated is left out, and
    is English on the page.
    """
    folder = SOURCE / "app" / "messages"
    found = {}
    for language in sorted(path for path in folder.glob("*") if path.is_dir() and path.name != "en"):
        for suffix, index in (("", "en.ts"), ("-later", "later.ts")):
            texts: dict[str, object] = {}
            for area in _AREA.findall((folder / index).read_text()):
                file = language / f"{area}.json"
                texts |= json.loads(file.read_text()) if file.exists() else {}
            known = {key: text for key, text in texts.items() if text}
            content = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
            found[f"messages-{language.name}{suffix}.js"] = f"export default {content};\n"
    return found


def name_translations(modules: dict[str, str]) -> tuple[dict[str, bytes], dict[str, dict[str, object]]]:
    """Give the modules of the languages their hashed names.

    Shape: contents by final name; entries of a language, which preload what is opened later.
    """
    names = {name: with_hash(name, short_hash(text.encode())) for name, text in modules.items()}
    listed: dict[str, dict[str, object]] = {}
    for name, file in names.items():
        if not name.endswith("-later.js"):
            listed[name] = {"file": file, "preload": [names[name.replace(".js", "-later.js")]]}
    return {names[name]: text.encode() for name, text in modules.items()}, listed


def name_files(bundled: dict[str, str]) -> tuple[dict[str, bytes], dict[str, dict[str, object]]]:
    """Give everything its hashed name.

    Shape: contents by final name; entries by plain name (`main.js`) with their `file` and the files to `preload`.
    """
    texts = with_hashed_chunks(bundled)
    entries = {Path(entry).with_suffix(".js").name for entry in (*ENTRIES, *FRAMES, WORKER)} | {"app.css", "admin.css"}
    files = {}
    listed: dict[str, dict[str, object]] = {}
    for icon in sorted(SOURCE.glob("icon*.*")):
        final = with_hash(icon.name, short_hash(icon.read_bytes()))
        files[final] = icon.read_bytes()
        listed[icon.name] = {"file": final, "preload": []}
    for name, text in texts.items():
        if name not in entries:
            if name.removesuffix(".map") not in entries:
                files[name] = text.encode()
            continue
        source_map = texts.get(f"{name}.map", "")
        final = with_hash(name, short_hash(text.encode(), source_map.encode()))
        files[final] = text.replace(f"sourceMappingURL={name}.map", f"sourceMappingURL={final}.map").encode()
        if source_map:
            files[f"{final}.map"] = source_map.encode()
        listed[name] = {"file": final, "preload": preloads(name, texts)}
    return files, listed


# --- Files --------------------------------------------------------------------------------------------------------


def write(files: dict[str, bytes], entries: dict[str, dict[str, object]]) -> None:
    """Write the files, then the manifest; remove what neither this build nor the one before has."""
    manifest = DIST / "manifest.json"
    before = json.loads(manifest.read_text())["files"] if manifest.exists() else []
    DIST.mkdir(exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as threads:  # compression is most of a build
        list(threads.map(lambda name: put(DIST / name, files[name]), files))
    replace(manifest, json.dumps({"entries": entries, "files": sorted(files)}, indent=1).encode())
    kept = {"manifest.json"}
    for name in {*files, *before}:
        kept |= {name, f"{name}.br", f"{name}.gz"} if is_compressed(name) else {name}
    for path in DIST.iterdir():
        if path.name not in kept:
            path.unlink()


def is_compressed(name: str) -> bool:
    """Whether a file has compressed forms: what pages load, but no source maps, which only developers load."""
    return _HASHED.search(name) is not None and not name.endswith((".map", ".png"))


def replace(path: Path, content: bytes) -> None:
    """Write a file in one step: a reader gets all of the old one or all of the new one."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(content)
    beside.replace(path)


def put(path: Path, content: bytes) -> None:
    """Write a file, after its compressed forms. What an earlier build has left of this name and content stays."""
    if is_compressed(path.name):
        if path.exists() and path.read_bytes() == content and all(form.exists() for form in forms(path)):
            return
        compress(path, content)
    replace(path, content)


def forms(path: Path) -> tuple[Path, Path]:
    """Where the compressed forms of a file are: Brotli, gzip."""
    return path.with_name(f"{path.name}.br"), path.with_name(f"{path.name}.gz")


def compress(path: Path, content: bytes) -> None:
    """Put a file's compressed forms beside it."""
    import brotli  # noqa: PLC0415 - of the environment, while `is_current` needs none

    brotli_form, gzip_form = forms(path)
    replace(brotli_form, brotli.compress(content, quality=11))
    replace(gzip_form, gzip.compress(content, 9, mtime=0))


def first_load(entries: dict[str, dict[str, object]]) -> int:
    """Bytes that the page of conversations loads at first, compressed."""
    main, style = entries["main.js"], entries["app.css"]
    preload = main["preload"]
    assert isinstance(preload, list)
    return sum((DIST / f"{name}.br").stat().st_size for name in (main["file"], *preload, style["file"]))


def main() -> None:
    """Build unless nothing has changed."""
    parser = argparse.ArgumentParser(description="Build the web page's files into static/dist/.")
    parser.add_argument("--cache", type=Path, help="folder for Deno's cache (default: Deno's own)")
    parser.add_argument("--force", action="store_true", help="build although nothing has changed")
    parser.add_argument("--update-lock", action="store_true", help="allow deno.lock to change")
    options = parser.parse_args()
    if is_current() and not options.force:
        return
    with (HERE / ".build.lock").open("w") as lock:  # one at a time: another may be at it, for tests or a second start
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_current() or options.force:
            build(options)


def build(options: argparse.Namespace) -> None:
    """Bundle, name, compress and write everything."""
    stamp = source_stamp()
    with tempfile.TemporaryDirectory(prefix="dist.", dir=HERE) as folder:
        bundle(Path(folder), cache=options.cache, is_frozen=not options.update_lock)
        bundled = {path.name: path.read_text() for path in sorted(Path(folder).iterdir())}
    files, entries = name_files(bundled)
    texts, languages = name_translations(translations())
    write({**files, **texts}, {**entries, **languages})
    replace(DIST / "stamp", stamp.encode())
    say(f"The web page is built: {first_load(entries) // 1000} kB at first, compressed.")


if __name__ == "__main__":
    main()
