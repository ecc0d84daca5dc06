"""`python -m bench.compare [NAME=]DIRECTORY ... [--only NAME ...]`: this checkout beside others, in the same minutes.

A directory is a checkout with an environment of its own, as `git worktree add ../parent HEAD~1` and `make check` there
make one. Each benchmark runs on one checkout after the other, then on all again, `--runs` times; a figure is the median
of the runs. The driver is always this checkout's; what another cannot run has empty cells there.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench import machine
from bench.apart import Checkout, other_checkout, run_apart
from bench.catalogue import DATABASES, TITLES, runs_of
from bench.pages import COMPARISON, write_page
from bench.rows import Row, beside, median_of
from tests.acceptance import prepared
from thinkproject.postgres_for_tests import VARIABLE as POSTGRES
from thinkproject.postgres_for_tests import shared_postgres_url

DEFAULT = ("turns", "load", "calls", "reconnect", "idle", "start")
THIS = "this"

Found = dict[str, dict[str, list[list[Row]]]]  # title, checkout: rows of each run


def main() -> int:
    """Compare and print. Exit code 1: a run of this checkout failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("others", nargs="+", metavar="[NAME=]DIRECTORY", help="what this checkout is compared with")
    parser.add_argument("--only", nargs="+", choices=list(TITLES), default=DEFAULT, metavar="NAME")
    parser.add_argument("--database", choices=[*DATABASES, "both"], default="both")
    parser.add_argument("--runs", type=int, default=3, help="of each, on each checkout (default 3)")
    parser.add_argument("--seconds", type=float, default=12.0, help="length of long runs (default 12)")
    parser.add_argument("--processes", type=int, default=1, help="web servers, and as many workers (default 1)")
    parser.add_argument("--write", type=Path, help="put the table into this page")
    parser.add_argument("--smoke", action="store_true", help="as little as shows that it works")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        checkouts = [stack.enter_context(other_checkout(*named(word))) for word in options.others]
        checkouts.append(Checkout(name=THIS))
        is_postgres = options.database != "sqlite"
        checkouts = [with_databases(checkout, stack, is_postgres=is_postgres) for checkout in checkouts]
        found, loads = compare(checkouts, options)
    names = [checkout.name for checkout in checkouts]
    groups = [(title, merged(by_checkout, names)) for title, by_checkout in found.items()]
    text = f"{machine.describe(loads)} Median of {options.runs} runs each.\n\n{beside(names, groups)}\n"
    print(text)
    if options.write is not None:
        write_page(options.write, COMPARISON, text)
    failed = [
        (title, name)
        for title, by_checkout in found.items()
        for name, runs in by_checkout.items()
        if len(runs) < options.runs
    ]
    for title, name in failed:
        print(f"failed: {title}, {name}")
    return 1 if any(name == THIS for _, name in failed) else 0


def named(word: str) -> tuple[str, Path]:
    """The name and the directory; without a name that of the directory."""
    name, mark, path = word.rpartition("=")
    return (name if mark else Path(path).resolve().name), Path(path)


def with_databases(checkout: Checkout, stack: contextlib.ExitStack, *, is_postgres: bool) -> Checkout:
    """The checkout with a place for its prepared databases for all runs: one folder each, one PostgreSQL for all."""
    places = {prepared.VARIABLE: stack.enter_context(tempfile.TemporaryDirectory(prefix="thkt"))}
    if is_postgres:  # the name keeps the prepared database of one checkout apart from the others'
        places[POSTGRES] = f"{shared_postgres_url()}&application_name={checkout.name}"
    return replace(checkout, environ=checkout.environ | places)


def compare(checkouts: Sequence[Checkout], options: argparse.Namespace) -> tuple[Found, list[float]]:
    """Run everything, each benchmark on all checkouts before the next."""
    found: Found = {}
    loads: list[float] = []
    for number in range(options.runs):
        for title, name, database in runs_of(options.only, options.database):
            words = ["--seconds", str(options.seconds), "--database", database, "--processes", str(options.processes)]
            words += ["--smoke"] if options.smoke else []
            for checkout in checkouts:
                began = time.monotonic()
                rows = run_apart(name, checkout, words)
                said = "failed" if rows is None else f"{time.monotonic() - began:.0f} s"
                print(f"{number + 1}/{options.runs} {title}, {checkout.name}: {said}", file=sys.stderr, flush=True)
                loads.append(os.getloadavg()[0])
                by_checkout = found.setdefault(title, {each.name: [] for each in checkouts})
                if rows is not None:
                    by_checkout[checkout.name].append(rows)
    return found, loads


def merged(by_checkout: dict[str, list[list[Row]]], names: Sequence[str]) -> list[dict[str, Row]]:
    """One entry for each row of this checkout's or, where it has none, another's: the figures by checkout."""
    entries: dict[str, dict[str, Row]] = {}
    for name in reversed(names):
        rows: dict[str, list[Row]] = {}
        for run in by_checkout[name]:
            for entry in run:
                rows.setdefault(entry.what, []).append(entry)
        for what, measured in rows.items():
            entries.setdefault(what, {})[name] = median_of(measured)
    return list(entries.values())


if __name__ == "__main__":
    sys.exit(main())
