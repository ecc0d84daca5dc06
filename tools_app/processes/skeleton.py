"""The image of containers that use the programs of this machine: directories and a name, nothing else.

The engine binds the machine's programs into it, so that no image has to be fetched from anywhere.
"""

import functools
import hashlib
import io
import tarfile
from pathlib import Path
from typing import Final

from tools_app.processes.isolation import NOBODY, SYSTEM

FOLDERS: Final = ("usr", "proc", "sys", "dev", "etc", "etc/ssl", "etc/alternatives", "tmp", "workspace")
USERS: Final = f"root:x:0:0::/:/bin/sh\nuser:x:{NOBODY}:{NOBODY}::/workspace:/bin/sh\n"
BOUND_FILES: Final = ("ld.so.cache",)
BOUND_FOLDERS: Final = ("alternatives",)
NETWORK_FOLDERS: Final = ("ssl",)


@functools.cache
def skeleton() -> tuple[str, bytes]:
    """Its name, which changes with what is in it, and the archive to import."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in FOLDERS:
            archive.addfile(_entry(name, tarfile.DIRTYPE))
        for name in SYSTEM:
            if Path("/", name).is_symlink():
                link = _entry(name, tarfile.SYMTYPE)
                link.linkname = f"usr/{name}"
                archive.addfile(link)
            elif Path("/", name).is_dir():
                archive.addfile(_entry(name, tarfile.DIRTYPE))
        for name, data in (("etc/passwd", USERS.encode()), ("etc/ld.so.cache", b"")):
            file = _entry(name, tarfile.REGTYPE)
            file.size = len(data)
            archive.addfile(file, io.BytesIO(data))
    data = made.getvalue()
    return f"localhost/think-commands:{hashlib.sha256(data).hexdigest()[:16]}", data


def machine_volumes(*, network: bool) -> list[str]:
    """The folders and files of this machine that a command reads, as options of the engine."""
    paths = [Path("/usr"), *(Path("/", name) for name in SYSTEM)]
    paths += [Path("/etc", name) for name in (*BOUND_FILES, *BOUND_FOLDERS, *(NETWORK_FOLDERS if network else ()))]
    return [f"--volume={path}:{path}:ro" for path in paths if path.exists() and not path.is_symlink()]


def _entry(name: str, kind: bytes) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.mode = 0o644 if kind == tarfile.REGTYPE else 0o755
    return entry
