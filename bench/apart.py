"""One benchmark in a process of its own, on this checkout or on another one.

The driver is always this checkout's `bench`. The product, and the code of the tests that starts it, are those of the
checkout whose Python runs it: nothing but `bench` is taken from here.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bench.rows import Row, from_json

HERE = Path(__file__).resolve().parents[1]
LIMIT_SECONDS = 900
MARK = "rows: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """What is measured. `environ` is added to the process's own."""

    name: str
    python: str = sys.executable
    root: Path = HERE
    environ: dict[str, str] = field(default_factory=dict, repr=False)


@contextmanager
def other_checkout(name: str, root: Path) -> Iterator[Checkout]:
    """A checkout elsewhere, with an environment of its own in `.venv`. Errors: `FileNotFoundError`."""
    root = root.resolve(strict=True)
    python = root / ".venv" / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"{root} has no environment yet: say make check there")
    with tempfile.TemporaryDirectory(prefix="thkb") as folder:
        (Path(folder) / "bench").symlink_to(HERE / "bench", target_is_directory=True)
        # Celery puts the working directory in front of the path, which has a `bench` as well: ours is loaded before.
        (Path(folder) / "sitecustomize.py").write_text("import bench\n", encoding="utf-8")
        path = os.pathsep.join([folder, str(root)])
        yield Checkout(name=name, python=str(python), root=root, environ={"PYTHONPATH": path, "PYTHONSAFEPATH": "1"})


def run_apart(name: str, checkout: Checkout, options: Sequence[str]) -> list[Row] | None:
    """Run one benchmark as a process and return its rows; nothing if it failed."""
    command = [checkout.python, "-m", "bench", name, "--rows", *options]
    done = subprocess.run(
        command,
        cwd=checkout.root,
        env={**os.environ, **checkout.environ},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if done.returncode != 0 or not found:
        return None
    return from_json(found[-1].removeprefix(MARK))
