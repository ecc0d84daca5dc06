"""Workbooks: each sheet by its name, as a table of values."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Final

from python_calamine import CalamineError, CalamineWorkbook, PasswordError, SheetVisibleEnum

from tools_app.documents.readers.archive import check_archive
from tools_app.documents.readers.text import NoText, TextWriter, cleaned, table

CellValue = int | float | str | bool | time | date | datetime | timedelta
MAX_COLUMNS: Final = 200
_STEP: Final = 200  # rows that are written at once


def read_sheets(data: bytes) -> str:
    """All sheets, hidden ones marked, each cell by its value. Errors: `NoText`."""
    if data.startswith(b"PK"):
        check_archive(data)
    try:
        book = CalamineWorkbook.from_filelike(BytesIO(data))
        return _book(book)
    except PasswordError as error:
        raise NoText("This workbook is protected by a password. Save it without one, then attach it again.") from error
    except CalamineError as error:
        raise NoText("This workbook is damaged and cannot be read. Save it again as .xlsx.") from error


def _book(book: CalamineWorkbook) -> str:
    writer = TextWriter()
    is_empty = True
    for sheet in book.sheets_metadata:
        if "Sheet" not in str(sheet.typ):
            continue
        hidden = "" if sheet.visible == SheetVisibleEnum.Visible else " (hidden)"
        rows = _trimmed(book.get_sheet_by_name(sheet.name).iter_rows())
        writer.add(f"## Sheet: {cleaned(sheet.name)}{hidden}")
        is_empty = _write(writer, rows) and is_empty
        if writer.is_full:
            break
    if is_empty:
        raise NoText("The sheets of this workbook are empty.")
    return writer.text()


def _write(writer: TextWriter, rows: Iterator[list[str]]) -> bool:
    """Write the rows of a sheet. Returns whether there was none."""
    lines: list[str] = []
    room = 0
    columns = 0
    for row in rows:
        columns = columns or len(row)
        lines.append(table([row]).split("\n", 1)[0])
        room += len(lines[-1])
        if room > 1_000_000:
            break
    if not lines:
        writer.add("(empty)")
        return True
    writer.add("\n".join([lines[0], f"|{' --- |' * columns}", *lines[1:]]))
    return False


def _trimmed(rows: Iterable[Sequence[CellValue]]) -> Iterator[list[str]]:
    """Rows of text, without empty ones."""
    for row in rows:
        cells = [shown(value) for value in row[:MAX_COLUMNS]]
        if any(cells):
            yield cells


def shown(value: CellValue) -> str:
    """A value as a person sees it in its cell; whole numbers without a fraction."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return cleaned(str(value))
