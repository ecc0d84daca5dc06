"""`export_session ID`: write a conversation to a file or to standard output, as lines of JSON or as Markdown."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from sessions_app.errors import SessionNotFound
from sessions_app.public.manager import SessionManager


class Command(BaseCommand):
    help = "Write a session out, with all its branches, as lines of JSON; with --markdown the shown path, to read."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", help="Id of the session.")
        parser.add_argument("--markdown", action="store_true", help="The shown path as Markdown.")
        parser.add_argument("--output", type=Path, default=None, help="File to write; without: standard output.")

    def handle(self, *_args: Any, **options: Any) -> None:
        manager = SessionManager()
        try:
            lines = (manager.export_markdown if options["markdown"] else manager.export)(options["session"])
        except SessionNotFound as error:
            raise CommandError(error.message) from error
        if options["output"] is None:
            for line in lines:
                self.stdout.write(line, ending="")
            return
        with options["output"].open("w", encoding="utf-8") as file:
            file.writelines(lines)
        self.stderr.write(f"Written to {options['output']}")
