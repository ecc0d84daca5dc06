"""`python -m bench [NAME ...] [--seconds S] [--smoke] [--write FILE]`: the benchmarks, as one table.

Each runs in a process of its own. Nothing is asserted: a goal that is missed is said in the table.
"""

import argparse
import asyncio
import contextlib
import importlib
import inspect
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import uvloop

from bench import machine
from bench.apart import MARK, Checkout, run_apart
from bench.catalogue import DATABASES, TITLES, runs_of
from bench.pages import TABLE, write_page
from bench.rig import Kept, Options
from bench.rows import Row, table, to_json


def main() -> int:
    """Run the named benchmarks, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TITLES))
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the long run (default 60)")
    parser.add_argument("--smoke", action="store_true", help="as little as shows that they work")
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both", help="both: where it matters most")
    parser.add_argument("--processes", type=int, default=1, help="web servers, and as many workers (default 1)")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    parser.add_argument("--rows", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.names) - TITLES.keys()
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}; known are {', '.join(TITLES)}")
    if options.rows:
        wanted = Options(
            seconds=options.seconds,
            is_smoke=options.smoke,
            database="sqlite" if options.database == "both" else options.database,
            processes=options.processes,
        )
        with contextlib.closing(Kept()) as kept:
            for name in options.names:
                rows = run_here(name, replace(wanted, kept=kept if options.smoke else None))
                print(MARK + to_json(rows), flush=True)
        return 0
    return report(options)


def run_here(name: str, options: Options) -> list[Row]:
    """Run one benchmark in this process."""
    outcome = importlib.import_module(f"bench.{name}").run(options)
    if inspect.iscoroutine(outcome):
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            outcome = runner.run(outcome)
    rows: list[Row] = outcome
    return rows


def report(options: argparse.Namespace) -> int:
    """Run each benchmark as a process and print the table."""
    groups: list[tuple[str, list[Row]]] = []
    failed: list[str] = []
    loads: list[float] = []
    for title, name, database in runs_of(options.names, options.database):
        began = time.monotonic()
        print(f"{title} ...", end=" ", flush=True)
        here = Checkout(name="this", environ={"TEST_DATABASE": database})  # for those that start no product
        rows = run_apart(name, here, passed_on(options, database))
        print(f"{time.monotonic() - began:.0f} s", flush=True)
        loads.append(os.getloadavg()[0])
        if rows is None:
            failed.append(title)
        else:
            groups.append((title, rows))
    text = f"{machine.describe(loads)}\n\n{table(groups)}\n"
    print(text)
    if options.write is not None:
        write_page(options.write, TABLE, text)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def passed_on(options: argparse.Namespace, database: str) -> list[str]:
    """The options for the process of one benchmark."""
    words = ["--seconds", str(options.seconds), "--database", database, "--processes", str(options.processes)]
    return words + (["--smoke"] if options.smoke else [])


if __name__ == "__main__":
    sys.exit(main())
