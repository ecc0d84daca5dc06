"""`import_archive FILE`: conversations of ChatGPT, Claude, Open WebUI or LibreChat, with `--preview` only a look."""

import asyncio
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from chat.access.auth import open_archive
from chat.conversations import archive_imports
from chat.conversations.archive_imports import ImportStatus, status_of
from chat.management.users import find_user
from chat.models import ArchiveImport
from fibers.execution.recovery import sweep
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject

WORDS = {
    "hidden": "hidden messages, kept and not shown",
    "empty": "empty messages",
    "unknown": "contents of an unknown kind, kept and not shown",
    "file": "files that are not in the archive or cannot be attached",
    "link": "messages whose parent is missing",
    "shortened": "messages that were too large and are shortened",
}


class Command(BaseCommand):
    help = (
        "Import an archive of ChatGPT, Claude, Open WebUI or LibreChat, a zip or a JSON file, and print what was left "
        "out. What a user has already is passed over, so it can be run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="The archive.")
        parser.add_argument("--user", default="", help="The conversations' owner; without one the only user.")
        parser.add_argument("--agent", default="assistant", help="Route name of the agent, such as my-agent.")
        parser.add_argument("--preview", action="store_true", help="Say what is in it and import nothing.")

    def handle(self, *_args: Any, **options: Any) -> None:
        user = find_user(options["user"])
        try:
            with options["file"].open("rb") as file:
                row = archive_imports.take_in(user.pk, file, name=options["file"].name)
            row = self._work(user, row, "reading")
            self._print(row.preview or {}, "conversation_count", "in the archive")
            if row.error_text:
                raise CommandError(row.error_text)
            if not options["preview"]:
                row = archive_imports.start_import(user, row, options["agent"])
                row = self._work(user, row, "importing")
                self._print(row.report or {}, "added_count", "added")
        except (ThinkError, OSError) as error:
            raise CommandError(str(error)) from error
        if options["preview"]:
            archive_imports.remove_import(row)
        elif status_of(row) is not ImportStatus.DONE:
            raise CommandError(row.error_text or "The import has failed.")

    def _work(self, user: Any, row: ArchiveImport, title: str) -> ArchiveImport:
        """Do the work here, or wait until a worker that was faster has done it."""
        fiber_id = row.run_id or row.scan_id
        total = (row.preview or {}).get("conversation_count")
        with tqdm(desc=title, total=total, file=sys.stderr, disable=None) as bar:
            asyncio.run(_run(str(fiber_id), row.pk, bar))
        return open_archive(user, row.pk)

    def _print(self, found: JSONObject, key: str, words: str) -> None:
        self.stdout.write(
            f"{found.get(key, 0)} conversations {words}, {found.get('known_count', 0)} are here already, "
            f"{found.get('unreadable_count', 0)} cannot be read; {found.get('message_count', 0)} messages, "
            f"{found.get('file_count', 0)} files"
        )
        for each in found.get("unreadable", ()):
            self.stdout.write(f"cannot be read: {each['name']}: {each['reason']}")
        for kind, count in found.get("left_out", {}).items():
            self.stdout.write(f"{count} {WORDS.get(kind, kind)}")


async def _run(fiber_id: str, import_id: str, bar: Any) -> None:
    work = asyncio.create_task(_to_the_end(fiber_id))
    while not work.done():
        await asyncio.wait({work}, timeout=0.5)
        seen = await ArchiveImport.objects.filter(pk=import_id).values_list("seen_count", flat=True).afirst()
        bar.update(max(0, (seen or 0) - bar.n))
    await work


async def _to_the_end(fiber_id: str) -> None:
    """Run the fiber; where a worker has it, look at it until it has ended.

    An import of the same person that was killed stands before it: where no worker runs, it is gone on with here.
    """
    while await Fiber.objects.filter(pk=fiber_id, finished_at=None).aexists():
        await run_fiber(fiber_id)
        await asyncio.sleep(0.5)
        await db(sweep, prune=False)
