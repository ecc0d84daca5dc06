"""The cold log: segments of records in the database, one JSON text a line.

Sync, as all services. `write_segments` runs inside the caller's fenced transaction, together with the journal record
of the step that it closes, so that neither exists without the other.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from django.db import IntegrityError, connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from chat.models import StreamSegment, Turn
from chat.streams.records import Record
from thinkproject.kernel.statements import Insert

SEGMENT_BYTES = 512_000
SEGMENTS_PER_QUERY = 100
RETENTION_SECONDS = 86_400.0  # of the log of a turn that is over

# The newest segment is always among them: it says where the log ends, and of which life it is.
_COLD_PAGE: Final = """
WITH newest AS (
    SELECT n.first_offset, n.last_offset, n.epoch FROM think_chat_streamsegment n
    WHERE n.stream = %s ORDER BY n.first_offset DESC LIMIT 1
)
SELECT s.first_offset, CASE WHEN s.last_offset >= %s THEN s.data END, newest.last_offset, newest.epoch
FROM newest CROSS JOIN think_chat_streamsegment s
WHERE s.stream = %s AND (s.last_offset >= %s OR s.first_offset = newest.first_offset)
ORDER BY s.first_offset LIMIT %s
"""


def write_segments(stream: str, records: Sequence[Record], epoch: str = "") -> None:
    """Insert records, without gaps among them, as segments. Inside the caller's transaction.

    **Errors:** `IntegrityError` when the first offset of a segment is taken.
    """
    for run in _runs(records):
        _INSERT.run(
            {
                "stream": stream,
                "first_offset": run[0].offset,
                "last_offset": run[-1].offset,
                "epoch": epoch,
                "data": "\n".join(record.text for record in run),
                "created_at": timezone.now(),
            }
        )


_INSERT: Final = Insert(StreamSegment, "stream", "first_offset", "last_offset", "data", "epoch", "created_at")


def write_missing(stream: str, records: Sequence[Record], epoch: str = "") -> None:
    """Insert the records that the database lacks. Inside the caller's transaction."""
    following = next_cold_offset(stream)
    write_segments(stream, [record for record in records if record.offset >= following], epoch)


def next_cold_offset(stream: str) -> int:
    """Return the first offset that the database does not hold."""
    segments = StreamSegment.objects.filter(stream=stream).order_by("-first_offset")
    last: int | None = segments.values_list("last_offset", flat=True).first()
    return 0 if last is None else last + 1


def cold_records(stream: str, offset: int, limit: int) -> list[Record]:
    """Return up to `limit` records from the offset on, as they stand, in order. May start later than asked for."""
    return cold_page(stream, offset, limit).records


class ColdPage(NamedTuple):
    """Records from an offset on, and how far the log goes in the database. `epoch`: of its newest segment."""

    records: list[Record]
    end: int
    epoch: str | None


def cold_page(stream: str, offset: int, limit: int) -> ColdPage:
    """Up to `limit` records from the offset on, and the end of the log. One query for each hundred segments."""
    found: list[Record] = []
    while True:
        following = found[-1].offset + 1 if found else offset
        with connection.cursor() as cursor:
            cursor.execute(_COLD_PAGE, [stream, following, stream, following, SEGMENTS_PER_QUERY])
            rows = cursor.fetchall()
        fresh = [
            Record(at, text)
            for first, data, _, _ in rows
            if data is not None
            for at, text in enumerate(data.split("\n"), first)
            if at >= following
        ]
        found += fresh
        if not fresh or len(rows) < SEGMENTS_PER_QUERY or len(found) >= limit:
            _, _, last, epoch = rows[0] if rows else (0, None, -1, None)
            return ColdPage(found[:limit], last + 1, epoch or None)


def archive(stream: str, records: Sequence[Record], epoch: str = "") -> None:
    """Copy records that exist only in the hot log, left by a dead writer; for final turns. Idempotent."""
    if records:
        try:
            with transaction.atomic():
                write_missing(stream, records, epoch)
        except IntegrityError:
            return  # another process does the same at this moment


def prunable_segments(*, retention_seconds: float = RETENTION_SECONDS) -> QuerySet[StreamSegment]:
    """Segments that `prune_segments` would delete."""
    cutoff = timezone.now() - timedelta(seconds=retention_seconds)
    turn = Turn.objects.filter(pk=OuterRef("stream"))
    return StreamSegment.objects.filter(created_at__lt=cutoff).filter(
        Q(Exists(turn.filter(finished_at__lt=cutoff))) | ~Q(Exists(turn))
    )


def prune_segments(*, retention_seconds: float = RETENTION_SECONDS, max_rows: int = 10_000) -> int:
    """Delete segments of turns that are over for longer than the retention, and of turns that are gone.

    Returns the number of deleted rows; call again while it equals `max_rows`.
    """
    old = prunable_segments(retention_seconds=retention_seconds)
    ids = list(old.order_by("pk").values_list("pk", flat=True)[:max_rows])
    return StreamSegment.objects.filter(pk__in=ids).delete()[0] if ids else 0


def _runs(records: Sequence[Record]) -> Iterable[list[Record]]:
    run: list[Record] = []
    size = 0
    for record in records:
        if run and size + len(record.text) > SEGMENT_BYTES:
            yield run
            run, size = [], 0
        run.append(record)
        size += len(record.text)
    if run:
        yield run
