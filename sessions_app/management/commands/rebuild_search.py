"""`rebuild_search`: index missing rows, or everything again, with progress."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import connection
from tqdm import tqdm

from sessions_app.models import Message
from sessions_app.search.engine import mend_index
from sessions_app.search.indexing import fill_entries, fill_messages


class Command(BaseCommand):
    help = "Index messages and context entries for the search. May be stopped at any time and run beside the product."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--anew", action="store_true", help="Also what is indexed already.")
        parser.add_argument("--after", type=int, default=0, metavar="ID", help="Go on behind this message row.")

    def handle(self, *_args: Any, **options: Any) -> None:
        mend_index(connection.alias)
        count, start = 0, options["after"]
        last = start
        with tqdm(desc="messages", unit="", file=sys.stderr, disable=None) as bar:
            for last, put in fill_messages(Message.objects, after=start, anew=options["anew"]):
                count += put
                bar.update(put)
                bar.set_postfix(last=last)
        entries = sum(put for _, put in fill_entries())
        self.stdout.write(f"indexed {count} messages, the last row is {last}, and {entries} context entries")
