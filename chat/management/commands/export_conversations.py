"""`export_conversations FILE`: all conversations of a user, for this product, to read, for Open WebUI or LibreChat."""

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat.conversations.exporting import ExportFormat, export_all, sentence
from chat.management.users import find_user


class Command(BaseCommand):
    help = (
        "Write all conversations of a user to a file: a zip with one file each, for Open WebUI one JSON list. Prints "
        "what the format has no place for."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The file to write. It must not be there yet.")
        parser.add_argument("--user", default="", help="The conversations' owner; without one the only user.")
        parser.add_argument("--format", default="jsonl", choices=[each.value for each in ExportFormat])

    def handle(self, *_args: Any, **options: Any) -> None:
        user = find_user(options["user"])
        count = 0

        def note(title: str, left_out: Counter[str]) -> None:
            nonlocal count
            count += 1
            if left_out:
                self.stdout.write(f"{title}: without {sentence(left_out)}")

        try:
            with options["file"].open("xb") as file:
                file.writelines(export_all(user.pk, ExportFormat(options["format"]), note=note))
        except OSError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{count} conversations")
