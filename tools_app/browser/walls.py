"""The small program that becomes a browser. It runs in the browser's namespaces, with the standard library alone.

    python walls.py CONTROL_FD FILE_BYTES OPEN_FILES COMMAND…

It makes the socket on which this browser's proxy listens, in the network of the browser, and hands it to the worker
through the socket CONTROL_FD. In a network namespace of its own the browser then reaches that proxy and nothing else,
and nothing else reaches the proxy. `{proxy}` in the command stands for its port. The browser's pipes are 3 and 4.
"""

import array
import contextlib
import fcntl
import os
import resource
import socket
import struct
import sys

SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1


def raise_loopback() -> None:
    """Switch the loopback device on: in a new network namespace it is off. Errors: none; `listen` fails then."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking, contextlib.suppress(OSError):
        request = struct.pack("16sH14s", b"lo", 0, b"")
        name, flags, rest = struct.unpack("16sH14s", fcntl.ioctl(asking, SIOCGIFFLAGS, request))
        if not flags & IFF_UP:
            fcntl.ioctl(asking, SIOCSIFFLAGS, struct.pack("16sH14s", name, flags | IFF_UP, rest))


def listen() -> socket.socket:
    """A socket that listens on a free port of the loopback device. Errors: `OSError`."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    return listener


def limit(file_bytes: int, open_files: int) -> None:
    """Set limits of the kernel. A limit may only be lowered."""
    for kind, wanted in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, open_files),
    ):
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def redirect() -> None:
    """Make the worker's pipes 3 and 4, and leave the browser nothing else to read or to write."""
    null = os.open(os.devnull, os.O_RDWR)
    read, write, null = (fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (0, 1, null))  # out of the way of 0 to 4
    for number, source in ((3, read), (4, write), (0, null), (1, null), (2, null)):
        os.dup2(source, number, inheritable=True)
    os.closerange(5, 65_536)


def main() -> None:
    """Hand the listener over and become the command."""
    control, file_bytes, open_files = (int(each) for each in sys.argv[1:4])
    raise_loopback()
    listener = listen()
    port = str(listener.getsockname()[1])
    with socket.socket(fileno=control) as worker:
        rights = array.array("i", [listener.fileno()])
        worker.sendmsg([port.encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    listener.close()
    command = [word.replace("{proxy}", port) for word in sys.argv[4:]]
    limit(file_bytes, open_files)
    redirect()
    os.execvp(command[0], command)  # noqa: S606 - the command is the worker's own


if __name__ == "__main__":
    main()
