"""Folders with packages of npm that tests need: installed once, by a lock with hashes, with the Deno of the wheel.

Such a folder has its own `deno.lock` and `node_modules`, and what runs in it is given that lock (`offline`): then it
needs neither a network nor Deno's cache, which may have been emptied since.
"""

import fcntl
import hashlib
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deno import find_deno_bin

from thinkproject.run.bootstrap import trusting_this_machine

INPUTS: Final = ("package.json", "deno.json", "deno.lock")
SECONDS: Final = 300.0
DENO: Final = find_deno_bin()
"""Found once, before threads ask for it at once, which Python 3.11 does not stand."""


class NpmFailed(Exception):
    """Packages could not be fetched or bundled; says what Deno said."""


@dataclass(frozen=True)
class Made:
    """A folder that is made of some files, and made again when one of them changes. `make` gets the folder."""

    folder: Path
    inputs: Sequence[Path]
    make: Callable[[Path], object]
    salt: str = ""

    @property
    def is_current(self) -> bool:
        """Whether it is there and was made of the files as they are now."""
        stamp = self.folder / "stamp"
        return stamp.exists() and stamp.read_text() == self._wanted()

    def get(self) -> Path:
        """The folder, made if need be. Several processes of tests may want it at once. Errors: those of `make`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".made.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.is_current:
                (self.folder / "stamp").unlink(missing_ok=True)
                for path in self.inputs:
                    shutil.copy(path, self.folder / path.name)
                self.make(self.folder)
                (self.folder / "stamp").write_text(self._wanted())
        return self.folder

    def _wanted(self) -> str:
        digest = hashlib.sha256(self.salt.encode())
        for path in self.inputs:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()


def installed(source: Path, folder: Path, *more: str) -> Made:
    """A folder with the packages of `source`, and the files named. Errors of making it: `NpmFailed`."""
    return Made(folder, [source / name for name in (*INPUTS, *more)], install)


def install(folder: Path) -> None:
    """Fetch what its lock says. Errors: `NpmFailed`."""
    deno(folder, "install", "--frozen")


def offline(folder: Path) -> list[str]:
    """Options of `deno run` for a script in an installed folder, whatever the working directory is."""
    return ["--quiet", "--cached-only", "--frozen", "--lock", str(folder / "deno.lock")]


def deno(folder: Path, *arguments: str) -> str:
    """Run Deno there and return what it printed. Errors: `NpmFailed`, also when it takes too long."""
    environ = {**trusting_this_machine(), "DENO_NO_UPDATE_CHECK": "1", "NO_COLOR": "1"}
    try:
        done = subprocess.run(
            [DENO, *arguments],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise NpmFailed(f"deno {arguments[0]} took more than {SECONDS:.0f} s") from error
    if done.returncode != 0:
        raise NpmFailed(f"deno {arguments[0]}:\n{done.stderr.strip()[-3000:]}")
    return done.stdout
