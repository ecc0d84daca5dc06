"""`sign_in_link [USER]`: print a one-time link that signs in on this machine."""

import re
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError
from django.urls import reverse

from chat.access.sign_in import create_link
from chat.errors import SignInDenied
from chat.management.users import find_user


class Command(BaseCommand):
    help = "Print a one-time sign-in link for this machine. Not on a production server."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", default="", help="Name of the user; without: the only one.")
        parser.add_argument(
            "--port", type=int, default=0, help="Port of the web server; without: that of the running server."
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            secret = create_link(find_user(options["user"]))
        except SignInDenied as error:
            raise CommandError(error.message) from error
        except DatabaseError as error:
            folder = getattr(settings, "DATA_DIR", None)
            where = f" in {folder}. Name the server's data directory: THINK_DATA_DIR=…" if folder else "."
            raise CommandError(f"There is no database with users{where}") from error
        port = options["port"] or _running_port() or getattr(settings, "PORT", 8000)
        self.stdout.write(f"http://127.0.0.1:{port}{reverse('sign-in-link', args=[secret])}")


def _running_port() -> int:
    """The port of `make run` over this data directory, as its lock names it; 0 where there is none."""
    folder = getattr(settings, "DATA_DIR", None)
    try:
        held = (Path(folder) / "run.lock").read_text(encoding="utf-8") if folder else ""
    except OSError:
        return 0
    found = re.search(r"port (\d+)", held)
    return int(found[1]) if found else 0
