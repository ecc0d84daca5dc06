"""The process in which a stranger's file is read: one file, within limits of memory and time, then it ends.

It is started by `converting`, gets one line of JSON and the bytes on its input, and answers in the same form. It knows
no settings, no database and no secret. The readers are imported here alone, the one that is needed.

Walls of the kernel around it: memory, time, no files written, no network, no other process, no new rights, its end with
the parent (`walls`). It is the first to end where the machine runs out of memory.
"""

import contextlib
import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY_BYTES = 1536 * 1024 * 1024
CPU_SECONDS = 25
TOO_LARGE = "This file takes more memory than there is for reading it. Save a part of it as a file of its own."
DAMAGED = "This file is damaged, or not what its name says, and cannot be read. Save it again, or as PDF."


def limit() -> None:
    """Lower the limits of this process: memory and time."""
    wanted = ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, CPU_SECONDS), (resource.RLIMIT_CORE, 0))
    for kind, value in wanted:
        hard = resource.getrlimit(kind)[1]
        lowest = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (lowest, lowest))


def forbid_files() -> None:
    """Let this process write no file: after its imports, which keep their compiled form."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def read(data: bytes, reader: Callable[[bytes], str | tuple[bytes, str]]) -> tuple[dict[str, Any], bytes]:
    """Facts and bytes of a view: `{"text"}`, `{"note"}`, or `{"mediaType"}` with the bytes of a changed picture."""
    from tools_app.documents.readers.text import NoText  # noqa: PLC0415 - after the limits are set

    try:
        found = reader(data)
    except NoText as error:
        return {"note": str(error)}, b""
    except MemoryError:
        return {"note": TOO_LARGE}, b""
    except Exception:  # noqa: BLE001 - whatever a parser raises for a stranger's bytes, the file is what is wrong
        return {"note": DAMAGED}, b""
    if isinstance(found, str):
        return {"text": found}, b""
    made, media_type = found
    return {"mediaType": media_type}, b"" if made is data else made


def main() -> None:
    """Read one file."""
    limit()
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tools_app.documents.readers.choosing import reader_of  # noqa: PLC0415 - after the limits are set
    from tools_app.documents.walls import wall_off  # noqa: PLC0415 - after its path is known

    wall_off()
    head = json.loads(sys.stdin.buffer.readline())
    reader = reader_of(head["mediaType"])
    forbid_files()
    with contextlib.redirect_stdout(sys.stderr):
        facts, made = read(sys.stdin.buffer.read(), reader)
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n" + made)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
