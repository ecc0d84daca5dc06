"""The walls that a reader's process puts around itself: it needs no right and no program of the machine for them.

A filter of system calls refuses sockets, programs and further processes; threads are allowed. It holds for root too,
which limits of numbers do not. On processors that it does not know it is left out, and the limits stay.
"""

import contextlib
import ctypes
import errno
import platform
import signal
import struct
from pathlib import Path
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_SECCOMP: Final = 22
PR_SET_NO_NEW_PRIVS: Final = 38
SECCOMP_MODE_FILTER: Final = 2
CLONE_THREAD: Final = 0x10000
ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000  # with an error number
LOAD: Final = 0x20
EQUAL: Final = 0x15
HAS_BIT: Final = 0x45
RETURN: Final = 0x06
NUMBER_AT, ARCHITECTURE_AT, FIRST_ARGUMENT_AT = 0, 4, 16

# audit architecture, `clone`, `clone3`, and what is refused: socket, connect, bind, ptrace, execve, execveat,
# process_vm_readv, process_vm_writev, io_uring_setup, and on x86 fork and vfork
# Source: the tables of the kernel, arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
SYSTEM_CALLS: Final = {
    "x86_64": (0xC000003E, 56, 435, (41, 42, 49, 101, 59, 322, 310, 311, 425, 57, 58)),
    "aarch64": (0xC00000B7, 220, 435, (198, 203, 200, 117, 221, 281, 270, 271, 425)),
}


def wall_off() -> None:
    """Put up the walls, for good: also the end with the parent, and the first place where memory runs out."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    made = program(platform.machine())
    if made:
        buffer = ctypes.create_string_buffer(made)
        header = struct.pack("HP", len(made) // 8, ctypes.addressof(buffer))
        libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(header), 0, 0)


def program(machine: str) -> bytes:
    """The filter for a processor; empty for one that is not known."""
    if machine not in SYSTEM_CALLS:
        return b""
    architecture, clone, clone3, refused = SYSTEM_CALLS[machine]
    lines = [(LOAD, 0, 0, ARCHITECTURE_AT), (EQUAL, 1, 0, architecture), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    lines += [(LOAD, 0, 0, NUMBER_AT), (EQUAL, 0, 1, clone3), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]  # `clone` then
    for number in refused:
        lines += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    lines += [(EQUAL, 1, 0, clone), (RETURN, 0, 0, ALLOW), (LOAD, 0, 0, FIRST_ARGUMENT_AT)]
    lines += [(HAS_BIT, 0, 1, CLONE_THREAD), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
