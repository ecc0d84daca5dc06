"""The catalogues of translations: `python -m thinkproject.catalogues` checks them, `--write` brings them up to date.

`--add pt-br` begins a language. `docs/howto/translate.md` is about the rest.
"""

import argparse
import sys

from thinkproject.catalogues import files


def main(arguments: list[str] | None = None) -> int:
    """Check or write the catalogues; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m thinkproject.catalogues", description="Catalogues of translations."
    )
    parser.add_argument("--write", action="store_true", help="bring the files up to date")
    parser.add_argument("--add", metavar="LANGUAGE", help="begin the catalogue of a language")
    options = parser.parse_args(arguments)
    if options.add:
        _say(f"Translate {files.add(options.add, files.FOLDER)}, then run this with --write.")
    wanted = files.wanted_files(files.all_entries(), files.FOLDER)
    stale = [path for path, content in wanted.items() if not path.exists() or path.read_bytes() != content]
    if options.write or options.add:
        for path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted[path])
        stale = []
    for path in stale:
        _say(f"not up to date: {path}; run `make fix`")
    wrong = files.problems(files.FOLDER)
    for line in wrong:
        _say(f"places for values differ: {line}")
    return 1 if stale or wrong else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
