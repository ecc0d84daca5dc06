"""`prune`: delete expired data, with progress; `--dry-run` only counts."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from tqdm import tqdm

from chat.operations.retention import POLICIES, prune_all


class Command(BaseCommand):
    help = (
        "Remove old chunk logs, journals, unclaimed files, ended tokens and finished fibers. No conversation, but for "
        "those of sub-agents whose run ended long ago."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        names = [policy.name for policy in POLICIES]
        parser.add_argument("kinds", nargs="*", choices=[*names, []], help=f"Of {', '.join(names)}; without: all.")
        parser.add_argument("--dry-run", action="store_true", help="Say what would go; change nothing.")

    def handle(self, *_args: Any, **options: Any) -> None:
        chosen = [policy for policy in POLICIES if not options["kinds"] or policy.name in options["kinds"]]
        for policy in chosen:
            count = policy.count()
            if options["dry_run"]:
                self.stdout.write(f"{policy.name}: {'not known' if count is None else count} would go")
                continue
            removed = 0
            with tqdm(total=count, desc=policy.name, file=sys.stderr, disable=None) as bar:
                for step in prune_all(policy):
                    removed += step
                    bar.update(step)
            self.stdout.write(f"{policy.name}: {removed} removed")
