"""`python -m bench.coding [--runs N] [TASK ...]`: the coding tasks with the model that `THINK_MODEL` names.

Without `THINK_MODEL` the scripted solutions run, which says that the tasks can be done and nothing about any model.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Final

import django

FOLDER: Final = tempfile.TemporaryDirectory(prefix="thk-coding-")
"""For the database of this run."""
os.environ |= {"THINK_DATA_DIR": FOLDER.name, "DJANGO_SETTINGS_MODULE": "thinkproject.settings"}
os.environ.setdefault("THINK_LOG_LEVEL", "WARNING")
django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - after the set-up
from django.core.management import call_command  # noqa: E402 - after the set-up
from django.test import override_settings  # noqa: E402 - after the set-up

from bench.coding.report import report  # noqa: E402 - after the set-up
from bench.coding.running import TASKS, Outcome, run_task  # noqa: E402 - after the set-up
from chat.testing import think_test_settings  # noqa: E402 - after the set-up

MODEL: Final = os.environ.get("THINK_MODEL", "")


def main() -> int:
    """Run the tasks and print the table. Exit code 1 where a scripted solution fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.coding", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TASK", help="parts of names; without: all tasks")
    parser.add_argument("--runs", type=int, default=1, help="how often each task is run (default 1)")
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_user("bench")
    with override_settings(**think_test_settings):
        outcomes = asyncio.run(all_of_them(options.names, options.runs, user.pk))
    print(report(outcomes, MODEL))
    FOLDER.cleanup()
    return 0 if MODEL or all(each.passed for each in outcomes) else 1


async def all_of_them(names: Sequence[str], runs: int, owner_id: int) -> list[Outcome]:
    """Run them one after the other."""
    found = []
    for task in TASKS:
        for _ in range(runs if not names or any(name in task.name for name in names) else 0):
            outcome = await run_task(task, owner_id, model=MODEL)
            word = "passed" if outcome.passed else "FAILED"
            print(f"{word}  {outcome.seconds:6.1f} s  {task.name}  {outcome.why}", flush=True)
            found.append(outcome)
    return found


if __name__ == "__main__":
    sys.exit(main())
