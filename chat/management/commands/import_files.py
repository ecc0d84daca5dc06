"""`import_files SOURCE`: a folder or an archive, a repository with its `.git` too, as the files of a conversation."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat.access.auth import open_agent, open_instance
from chat.conversations.changes import create_instance, new_instance_name
from chat.instance.workspaces import view_workspace
from chat.instances.rows import key_of
from chat.management.users import find_user
from chat.models import AgentInstance, Role
from thinkproject.kernel.errors import ThinkError
from tools_app.core.files.workspace import EntryKind, FileChange
from tools_app.core.guard.reach import written_as
from tools_app.core.origins import Origin
from tools_app.workspace.unpacking import import_archive, import_folder


class Command(BaseCommand):
    help = (
        "Make a conversation that works on the files of a folder or of a zip, tar or tar.gz file, hidden ones and .git "
        "included, and print what was left out."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", type=Path, help="The folder or the archive.")
        parser.add_argument("--user", default="", help="The conversation's owner; without one the only user.")
        parser.add_argument("--agent", default="assistant", help="Route name of the agent, such as my-agent.")
        parser.add_argument("--title", default="", help="The conversation's title; without one the source's name.")
        parser.add_argument("--conversation", default="", help="Id of a conversation to add to, instead of a new one.")
        parser.add_argument("--target", default="/", help="The directory in the conversation's files.")

    def handle(self, *_args: Any, **options: Any) -> None:
        user: Any = find_user(options["user"])
        source: Path = options["source"]
        if not source.exists():
            raise CommandError(f"There is no {str(source)!r}.")
        try:
            if options["conversation"]:
                instance = open_instance(user, options["conversation"], needs=Role.WRITER)
            else:
                opened = open_agent(user, options["agent"], new_instance_name())
                instance = create_instance(opened, title=options["title"] or source.resolve().name)
            changes, left_out = _imported(instance, source, options["target"])
        except (ThinkError, OSError) as error:
            raise CommandError(str(error)) from error
        for each in left_out:
            self.stdout.write(f"left out: {each}")
        count = sum(change.entry_kind is EntryKind.FILE for change in changes)
        self.stdout.write(f"{count} files are in /c/{instance.pk}")


def _imported(instance: AgentInstance, source: Path, target: str) -> tuple[list[FileChange], list[str]]:
    workspace = asyncio.run(view_workspace(key_of(instance), instance.pk)).workspace
    with written_as(Origin.FILE):
        if source.is_dir():
            return asyncio.run(import_folder(workspace, source, target))
        with source.open("rb") as file:
            return asyncio.run(import_archive(workspace, file, target)), []
