"""Builds what the pages load into `static/dist/`: bundled modules, one style sheet. Run at set-up and after each edit.

The libraries come from the npm registry as `deno.lock` pins them (hashes, no address) and stay in Deno's cache, so the
second run needs no network. Nothing in `dist/` is committed.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "src"
DIST = HERE / "dist"
ENTRIES = ("main.js", "simple.ts", "testing.ts")
STYLES = (
    "tokens.css",
    "base.css",
    "layout.css",
    "conversation.css",
    "content.css",
    "composer.css",
    "panel.css",
    "simple.css",
    "forced.css",
)
DOWNLOAD = "about 8 MB (esbuild and the libraries of the page from the npm registry, once)"


def say(text: str) -> None:
    """Print a line for the person at the terminal."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def source_stamp() -> str:
    """One hash of everything that a build depends on."""
    digest = hashlib.sha256()
    for path in [HERE / "deno.json", HERE / "deno.lock", Path(__file__), *sorted(SOURCE.rglob("*.*"))]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def is_current() -> bool:
    """Whether `dist/` was built from exactly these sources."""
    stamp = DIST / "stamp"
    return stamp.exists() and stamp.read_text() == source_stamp()


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
    packages = json.loads((HERE / "deno.lock").read_text())["npm"] if (HERE / "deno.lock").exists() else {}
    folder = Path(json.loads(run_deno(["info", "--json"], cache=cache).stdout)["npmCache"])
    wanted = [name.rpartition("@") for name in packages if not name.startswith("@")]
    return bool(wanted) and all(any(folder.glob(f"*/{name}/{version}")) for name, _, version in wanted)


def bundle(*, cache: Path | None, is_frozen: bool) -> None:
    """Bundle each entry with its libraries; what it imports on demand becomes a file of its own. Errors: exits with Deno's words.

    One by one, so that no entry has to load what it shares with another from a second file.
    """
    arguments = ["bundle", "--platform=browser", "--minify", "--code-splitting", "--sourcemap=linked", "--outdir=dist"]
    if is_frozen:
        arguments.append("--frozen")
    if not has_libraries(cache):
        say(f"Fetching the page's libraries: {DOWNLOAD}.")
    for entry in ENTRIES:
        done = run_deno([*arguments, f"src/js/{entry}"], cache=cache)
        if done.returncode != 0:
            sys.exit(f"The page could not be built. Deno says:\n{done.stderr.strip()}")


def main() -> None:
    """Build unless nothing has changed."""
    parser = argparse.ArgumentParser(description="Build the web page's files into static/dist/.")
    parser.add_argument("--cache", type=Path, help="folder for Deno's cache (default: Deno's own)")
    parser.add_argument("--force", action="store_true", help="build although nothing has changed")
    parser.add_argument("--update-lock", action="store_true", help="allow deno.lock to change")
    options = parser.parse_args()
    if is_current() and not options.force:
        return
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    bundle(cache=options.cache, is_frozen=not options.update_lock)
    (DIST / "app.css").write_text("\n".join((SOURCE / "css" / name).read_text() for name in STYLES))
    (DIST / "icon.svg").write_bytes((SOURCE / "icon.svg").read_bytes())
    (DIST / "stamp").write_text(source_stamp())
    size = sum((DIST / name).stat().st_size for name in ("main.js", "app.css"))
    say(f"The web page is built: {size // 1000} kB.")


if __name__ == "__main__":
    main()
