"""Bundles the npm package just-bash into the one file that the shell's process loads. Run at set-up.

The package and all that it needs come from the npm registry as `runner/deno.lock` pins them (hashes, no address). The
bundle itself is pinned as well: `runner/bundle.sha256`. A wheel has it already. It is not committed.

    python -m tools_app.shell.bundling              make it, unless it is there
    python -m tools_app.shell.bundling --update     after a change of version: pin what is made now

Needs nothing but Python's own library and the program Deno, as the set-up runs it before anything else is imported.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

RUNNER: Final = Path(__file__).resolve().parent / "runner"
BUNDLE: Final = RUNNER / "dist" / "just_bash.js"
PINNED: Final = RUNNER / "bundle.sha256"
SECONDS: Final = 300
HEAD: Final = """// @ts-nocheck
// just-bash (https://github.com/vercel-labs/just-bash), Apache License 2.0: the whole text is in `LICENSE.just-bash`.
// Bundled with the packages that it needs, and changed in what `tools_app/shell/bundling.py` lists.
"""
MENDED: Final = {
    # `read` and `mapfile` keep the bytes of their input as letters of Latin-1: "ü" became two letters in a variable.
    b"let D=M=>n?M:M.replace": b"b=Ne(b);let D=M=>n?M:M.replace",
    b'`mapfile: string length limit exceeded (${e.limits.maxStringLength} bytes)`,"string_length");p.push(y)': (
        b'`mapfile: string length limit exceeded (${e.limits.maxStringLength} bytes)`,"string_length");p.push(Ne(y))'
    ),
    # Outputs of commands within a command may be text already, which their kind says.
    b"u=Ne(l.stdout).split": b"u=Dp(l).split",
    b"let h=Ne(p.stdout);": b"let h=Dp(p);",
    # The interpreter would run `a &` to its end before it goes on, and `sleep 300 &` for as long as a script may take.
    b"statement(e,t=[],r=!1,i,n){": (
        b"statement(e,t=[],r=!1,i,n){if(r)throw new vr("
        b'"there is no `&` here: commands run one after another, and nothing runs on after the script; leave it out",'
        b"e[0]?.commands?.[0]?.line??1,1);"
    ),
    # Options of `echo` come in any order, and together.
    b'if(a==="-n")r=!0,n++;else if(a==="-e")i=!0,n++;else if(a==="-E")i=!1,n++;'
    b'else if(a==="-ne"||a==="-en")r=!0,i=!0,n++;else break': (
        b'if(/^-[neE]+$/.test(a)){for(let o of a.slice(1))o==="n"?r=!0:i=o==="e";n++}else break'
    ),
    # What was printed before the time was over would be lost: only other errors carry it out of scripts, loops, groups.
    b"throw n instanceof ni&&n.prependOutput": b"throw (n instanceof ni||n instanceof vt)&&n.prependOutput",
    b"if(e instanceof ni||e instanceof gi||e instanceof Ue||e instanceof C)return e.prependOutput": (
        b"if(e instanceof ni||e instanceof gi||e instanceof Ue||e instanceof C||e instanceof vt)return e.prependOutput"
    ),
    b"n instanceof Us)throw n.prependOutput": b"n instanceof Us||n instanceof vt)throw n.prependOutput",
    # And what was on its way to the next command was not printed. A file that refuses a redirection fails its command,
    # and not the whole script with all that it has printed.
    b"nR(this.ctx,e,(t,r)=>this.executeCommand(t,r))": (
        b"nR(this.ctx,e,(t,r)=>this.executeCommand(t,r)"
        b'.catch(i=>{if(/^E[A-Z]+$/.test(i?.code))return Q("",`bash: ${i.message}\\n`,1);'
        b'throw i instanceof vt&&t!==e.commands.at(-1)&&(i.stdout=""),i}))'
    ),
    b"h instanceof Ue)throw h.prependOutput": b"h instanceof Ue||h instanceof vt)throw h.prependOutput",
    # What a script has printed is one or the other, and shown: bytes that are no UTF-8 are shown as they come.
    b'var WR=new TextDecoder("utf-8",{fatal:!0})': b'var WR=new StrictTextDecoder("utf-8",{fatal:!0})',
}
"""What stands in the bundle once, and what takes its place. `Ne` decodes bytes as all other commands do."""


class BundleFailed(Exception):
    """The bundle could not be made, or is another one than the pinned."""


def is_current() -> bool:
    """Whether the bundle is there and is the pinned one."""
    return BUNDLE.exists() and _hash(BUNDLE.read_bytes()) == PINNED.read_text().strip()


def build(*, updates_pin: bool = False, cache: Path | None = None) -> Path:
    """Make the bundle; it appears whole or not at all. Returns its path.

    `cache`: where Deno keeps what it fetches, in place of its own folder. Errors: `BundleFailed`.
    """
    made = HEAD.encode() + _mended(_bundled(cache, is_frozen=not updates_pin))
    if updates_pin:
        PINNED.write_text(_hash(made) + "\n")
    elif _hash(made) != PINNED.read_text().strip():
        raise BundleFailed("The bundle of just-bash is not the pinned one: another Deno? `--update` pins it anew.")
    BUNDLE.parent.mkdir(exist_ok=True)
    beside = BUNDLE.with_name(f".{BUNDLE.name}.{os.getpid()}")
    beside.write_bytes(made)
    beside.replace(BUNDLE)
    return BUNDLE


def _mended(bundle: bytes) -> bytes:
    for old, new in MENDED.items():
        if bundle.count(old) != 1:
            raise BundleFailed(f"The bundle of just-bash has not once what is to be mended: {old.decode()}")
        bundle = bundle.replace(old, new)
    return bundle


def _bundled(cache: Path | None, *, is_frozen: bool) -> bytes:
    from deno import find_deno_bin  # noqa: PLC0415 - of the environment, while `is_current` needs none

    with tempfile.TemporaryDirectory(prefix="just-bash-") as folder:
        target = Path(folder) / "made.js"
        command = [find_deno_bin(), "bundle", "--quiet", "--platform=browser", "--minify", "-o", str(target)]
        command += ["--frozen"] if is_frozen else []
        environment = {**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
        if cache is not None:
            environment["DENO_DIR"] = str(cache)
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [*command, "library.js"],
            cwd=RUNNER,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        if done.returncode != 0:
            raise BundleFailed(f"just-bash could not be fetched or bundled. Deno says:\n{done.stderr.strip()[-2000:]}")
        return target.read_bytes()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Make the bundle unless it is there."""
    parser = argparse.ArgumentParser(description="Bundle just-bash for the tool `bash`.")
    parser.add_argument("--update", action="store_true", help="allow deno.lock to change, and pin what is made")
    parser.add_argument("--cache", type=Path, help="folder for Deno's cache (default: Deno's own)")
    options = parser.parse_args()
    if is_current() and not options.update:
        return
    try:
        build(updates_pin=options.update, cache=options.cache)
    except BundleFailed as error:
        sys.exit(str(error))
    sys.stdout.write(f"The shell is bundled: {BUNDLE.stat().st_size // 1000} kB.\n")


if __name__ == "__main__":
    main()
