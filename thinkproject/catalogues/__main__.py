"""The catalogues of translations: `python -m thinkproject.catalogues` checks them, `--write` brings them up to date.

`--add pt-br` begins a language, `--missing de` prints what it lacks, and `--fill de FILE` takes that list back with
translations. `docs/howto/translate.md` is about the rest.
"""

import argparse
import sys
from pathlib import Path

from thinkproject.catalogues import exchange, files, page_files


def main(arguments: list[str] | None = None) -> int:
    """Check or write the catalogues; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m thinkproject.catalogues", description="Catalogues of translations."
    )
    parser.add_argument("--write", action="store_true", help="bring the files up to date")
    parser.add_argument("--add", metavar="LANGUAGE", help="begin the catalogues of a language")
    parser.add_argument("--missing", metavar="LANGUAGE", help="print the texts that a language lacks")
    parser.add_argument("--fill", metavar=("LANGUAGE", "FILE"), nargs=2, help="write a filled list into the files")
    options = parser.parse_args(arguments)
    places = exchange.Places(server=files.FOLDER, page=page_files.FOLDER)
    if options.missing:
        sys.stdout.write(exchange.dump(exchange.missing(options.missing, places)))
        return 0
    if options.add:
        _say(f"Translate {files.add(options.add, files.FOLDER)}, then run this with --write.")
        (page_files.FOLDER / options.add).mkdir(exist_ok=True)
    if options.fill:
        language, name = options.fill
        if code := _fill(language, name, places):
            return code
    return _brought_up_to_date(is_written=bool(options.write or options.add or options.fill))


def _fill(language: str, name: str, places: exchange.Places) -> int:
    _write(_stale())
    try:
        count = exchange.fill(language, exchange.parse(Path(name).read_text(encoding="utf-8")), places)
    except exchange.ListWrong as error:
        _say(f"Nothing was taken. {error}")
        return 1
    _say(f"{count} texts were taken.")
    return 0


def _brought_up_to_date(*, is_written: bool) -> int:
    stale, surplus = _stale(), page_files.surplus_files(page_files.FOLDER)
    if is_written:
        _write(stale)
        for path in surplus:
            path.unlink()
        stale, surplus = {}, []
    for path in [*stale, *surplus]:
        _say(f"not up to date: {path}; run `make fix`")
    wrong = files.problems(files.FOLDER) + page_files.problems(page_files.FOLDER)
    for line in wrong:
        _say(f"places for values or plural forms differ: {line}")
    return 1 if stale or surplus or wrong else 0


def _stale() -> dict[Path, bytes]:
    wanted = files.wanted_files(files.all_entries(), files.FOLDER) | page_files.wanted_files(page_files.FOLDER)
    return {path: content for path, content in wanted.items() if not path.exists() or path.read_bytes() != content}


def _write(contents: dict[Path, bytes]) -> None:
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
