"""The web server process: `python -m thinkproject.run.server --port 8000`.

`THINK_WEB_SERVER` or `--server` chooses uvicorn (`servers/uvicorn_server.py`) or daphne (`servers/daphne_server.py`).
Both keep the same promises: `docs/deployment.md` lists them, and `tests/acceptance/ops` asks both for each.
"""

import argparse
import gc
import os
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from thinkproject.kernel.loading import starting
from thinkproject.run.gate import report, wait_at
from thinkproject.run.servers.shared import ListenAddress

FILES_WANTED = 65_536
EXIT_REFUSED = 3


def raise_file_limit() -> int:
    """Raise the number of files this process may open; each socket is one. Returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_WANTED if hard == resource.RLIM_INFINITY else min(FILES_WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal ends it."""
    options = _parser().parse_args(arguments)
    address = ListenAddress(host=options.host, port=options.port, unix_socket=options.unix_socket, fd=options.fd)
    raise_file_limit()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings")
    try:
        with starting():
            application, serve = load(options.server)
    except ImproperlyConfigured as error:
        if not options.prepare:
            raise
        report(options.report, {"refused": " ".join(str(error).split())})
        return EXIT_REFUSED
    if options.prepare and not _prepare(options.report):
        return EXIT_REFUSED
    if options.gate is not None and not wait_at(options.gate):
        return 1
    gc.freeze()  # what was loaded stays: a full collection need not look through it, and holds up the loop for less
    if options.report is not None:
        report(options.report, {"serves": True})
    return serve(application, address, behind_proxy=options.proxy_headers)


def load(server: str | None) -> tuple[Any, Callable[..., int]]:
    """Load the application with its URLs, and the function that serves it. Errors: `ImproperlyConfigured`."""
    from thinkproject import settings  # noqa: PLC0415 - reads the environment, which the arguments need not wait for

    serve: Callable[..., int]
    if (server or settings.WEB_SERVER) == "daphne":
        from thinkproject.run.servers.daphne_server import serve  # noqa: PLC0415 - before anything of Twisted
    else:
        from thinkproject.run.servers.uvicorn_server import serve  # noqa: PLC0415 - only one of them is loaded
    from django.urls import get_resolver  # noqa: PLC0415 - after the settings

    from thinkproject.asgi import application  # noqa: PLC0415 - loads the apps

    _ = get_resolver().url_patterns  # else the first request would wait for it
    return application, serve


def _prepare(fd: int) -> bool:
    from thinkproject.run.prepare import Refused, prepare  # noqa: PLC0415 - after the apps

    try:
        report(fd, {"prepared": prepare()})
    except Refused as error:
        report(fd, {"refused": str(error)})
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m thinkproject.run.server", description=main.__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT") or 8000))
    parser.add_argument("--unix-socket", help="listen on this path instead")
    parser.add_argument("--fd", type=int, help="an inherited listening socket")
    parser.add_argument("--proxy-headers", action="store_true", help="believe X-Forwarded-For and -Proto of a proxy")
    parser.add_argument("--server", choices=["uvicorn", "daphne"], help="default: THINK_WEB_SERVER")
    supervised = parser.add_argument_group("of `make run`")
    supervised.add_argument("--gate", type=int, help="file descriptor of a gate to wait at before it serves")
    supervised.add_argument("--report", type=int, help="file descriptor of a pipe for reports")
    supervised.add_argument("--prepare", action="store_true", help="prepare the database first, and report how it went")
    return parser


if __name__ == "__main__":
    sys.exit(main())
