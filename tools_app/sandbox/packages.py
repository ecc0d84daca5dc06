"""Packages of the npm registry for code: bundled once into a folder, and read from there ever after.

Only exact versions are taken, and only from the caller's list: the code itself can name none. Fetching and bundling
runs in Deno with this process' environment, as it is the operator's act; what it makes runs in the sandbox.
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from thinkproject.kernel.trees import remove_tree
from tools_app.errors import CodeInvalid, SandboxUnavailable
from tools_app.sandbox.process import deno_path

NAME: Final = re.compile(r"(?:@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*")
VERSION: Final = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?")
FETCH_SECONDS: Final = 300
MAX_BUNDLE_BYTES: Final = 8_000_000
PYODIDE: Final = "314.0.7"
"""Version of Pyodide, whose first number is that of its Python: 3.14."""
ENTRY: Final = """import * as all from "npm:{package}";
export * from "npm:{package}";
export default (all as Record<string, unknown>).default ?? all;
"""


logger = logging.getLogger(__name__)
_fetching: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="packages")
"""One at a time: what waits for a slow registry holds no other thread."""

_sources: Final[dict[tuple[Path, str, str], str]] = {}
"""Sources by folder, name and version, as this process has read them."""


def allowed(given: object) -> dict[str, str]:
    """The packages of a setting, names to exact versions.

    Shape: a mapping, or text such as `"date-fns@4.1.0, @scope/name@1.0.0"`. Errors: `CodeInvalid`.
    """
    pairs: list[tuple[Any, Any]]
    if isinstance(given, str):
        words = [word.strip().rpartition("@") for word in given.split(",") if word.strip()]
        pairs = [(name, version) for name, _at, version in words]
    elif isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        raise CodeInvalid(f"{given!r} names no packages.")
    for name, version in pairs:
        _check(name, version)
    if len(dict(pairs)) != len(pairs):
        raise CodeInvalid("A package is named twice.")
    return dict(pairs)


async def sources_of(folder: Path, packages: Mapping[str, str]) -> dict[str, str]:
    """Do as `bundled`, off the loop, and read each file once in a process.

    Errors: `CodeInvalid`; `SandboxUnavailable` without the details, which are for operators and logged.
    """
    missing = {name: version for name, version in packages.items() if (folder, name, version) not in _sources}
    if missing:
        try:
            made = await asyncio.get_running_loop().run_in_executor(_fetching, bundled, folder, missing)
        except SandboxUnavailable as error:
            logger.warning("packages for code: %s", error.message)
            names = ", ".join(sorted(missing))
            raise SandboxUnavailable(
                f"Packages for code cannot be fetched now ({names}): `manage.py install_sandbox_packages` says why."
            ) from error
        _sources.update({(folder, name, packages[name]): source for name, source in made.items()})
    return {name: _sources[folder, name, version] for name, version in packages.items()}


def missing_packages(folder: Path, packages: Mapping[str, str]) -> list[str]:
    """The names of those that are not in the folder yet."""
    return [name for name, version in packages.items() if not _place(folder, name, version).exists()]


def bundled(folder: Path, packages: Mapping[str, str]) -> dict[str, str]:
    """Sources of packages by name, for `Script.modules`. Those that are in the folder need no network.

    Shape: `packages` maps names to exact versions. Durability: a bundle appears whole or not at all. Blocks for seconds
    where something is fetched. Errors: `CodeInvalid` for a name or version, `SandboxUnavailable` for what cannot be
    fetched or bundled, or is larger than 8 MB.
    """
    return {name: _bundle(folder, name, version).read_text() for name, version in packages.items()}


def _bundle(folder: Path, name: str, version: str) -> Path:
    _check(name, version)
    path = _place(folder, name, version)
    if path.exists():
        return path
    with _workshop(folder) as work:
        (work / "entry.ts").write_text(ENTRY.format(package=f"{name}@{version}"))
        options = ["--quiet", "--no-config", "--no-lock", "--platform=browser", "--minify", "-o", "made.js", "entry.ts"]
        _run(["bundle", *options], work, f"{name}@{version}")
        made = work / "made.js"
        if made.stat().st_size > MAX_BUNDLE_BYTES:
            raise SandboxUnavailable(f"The package {name}@{version} is larger than {MAX_BUNDLE_BYTES} bytes.")
        made.replace(path)
    return path


def install_python(folder: Path) -> Path:
    """Fetch Pyodide into the folder, unless it is there. Returns where it lies. Errors: `SandboxUnavailable`."""
    target = folder / f"pyodide-{PYODIDE}"
    if target.exists():
        return target
    with _workshop(folder) as work:
        (work / "package.json").write_text(json.dumps({"dependencies": {"pyodide": PYODIDE}}))
        _run(["install", "--quiet", "--no-lock", "--node-modules-dir=auto"], work, f"pyodide@{PYODIDE}")
        shutil.copytree(work / "node_modules" / "pyodide", work / "made", symlinks=False)
        for path in (work / "made", *(work / "made").rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)  # the sandbox reads it as another user
        (work / "made").replace(target)
    return target


def python_folder(folder: Path) -> Path:
    """Find the folder of Pyodide. Errors: `SandboxUnavailable` where it was not installed."""
    target = folder / f"pyodide-{PYODIDE}"
    if not target.exists():
        raise SandboxUnavailable(f"Python for code is not installed in {folder}: `manage.py install_sandbox_python`.")
    return target


def _place(folder: Path, name: str, version: str) -> Path:
    return folder / f"{name.replace('/', '__')}@{version}.js"


def _check(name: object, version: object) -> None:
    if isinstance(name, str) and isinstance(version, str) and NAME.fullmatch(name) and VERSION.fullmatch(version):
        return
    raise CodeInvalid(f"{name!r} at {version!r} is not a package at an exact version.")


@contextlib.contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".work-", dir=folder))
    try:
        yield work
    finally:
        with contextlib.suppress(OSError):
            remove_tree(work)


def _run(arguments: Sequence[str], work: Path, what: str) -> None:
    environment = {**os.environ, "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1", "DENO_DIR": str(work / ".deno")}
    try:
        done = subprocess.run(  # noqa: S603 - names and versions were checked
            [deno_path(), *arguments],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxUnavailable(f"{what} could not be fetched in {FETCH_SECONDS} s.") from error
    if done.returncode != 0:
        raise SandboxUnavailable(f"{what} could not be fetched or bundled: {done.stderr.strip()[-500:]}")
