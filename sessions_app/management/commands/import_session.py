"""`import_session FILE`: make a session of a file that `export_session` wrote."""

import sys
from argparse import ArgumentParser
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from sessions_app.errors import ExportInvalid
from sessions_app.transfer.import_session import import_session, lines_of


class Command(BaseCommand):
    help = "Make a session of an exported file and print its id. A file that is wrong anywhere changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The file; - reads standard input.")
        parser.add_argument("--user", default="", help="The session's user; without one it has no owner.")
        parser.add_argument("--scope", default="", help="What it belongs to: the id of an instance, or your own word.")
        parser.add_argument("--name", default="", help="Instead of the exported name.")

    def handle(self, *_args: Any, **options: Any) -> None:
        owner_id = _owner_id(options["user"])
        try:
            with _opened(options["file"]) as file:
                made = import_session(lines_of(file), owner_id=owner_id, scope=options["scope"], name=options["name"])
        except (ExportInvalid, OSError) as error:
            raise CommandError(str(error)) from error
        self.stderr.write(f"{made.message_count} messages")
        self.stdout.write(made.session_id)


def _opened(path: Path) -> AbstractContextManager[BinaryIO]:
    return nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb")


def _owner_id(name: str) -> Any:
    if not name:
        return None
    model = get_user_model()
    user = model.objects.filter(**{model.USERNAME_FIELD: name}, is_active=True).first()
    if user is None:
        raise CommandError(f"There is no active user {name!r}.")
    return user.pk
