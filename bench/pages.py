"""Tables within a page, each between two marks of its own."""

from pathlib import Path

TABLE, COMPARISON, REFERENCE = "table", "comparison", "reference"


def write_page(path: Path, name: str, text: str) -> None:
    """Put a text between the page's two marks of that name. Errors: `ValueError` for a page without them."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{path} has no place for it: {begin} and {end}")
    path.write_text(f"{head}{begin}\n\n{text}\n{end}{tail}", encoding="utf-8")
