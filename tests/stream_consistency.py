"""Check of a stream's invariants over both tiers. For tests and for `doctor` commands; reads everything."""

from chat.streams.logs import database_log
from chat.streams.logs.log import get_log
from chat.streams.logs.port import StreamLog
from thinkproject.kernel.aio import db

ALL = 1_000_000


async def inconsistencies(stream: str, *, log: StreamLog | None = None) -> list[str]:
    """Check a stream's invariants; returns a description of each violation."""
    hot = await (log or get_log()).read(stream, 0, ALL)
    stored = await db(database_log.cold_records, stream, 0, ALL)
    problems = []
    for name, records in (("cold", stored), ("hot", hot.records)):
        offsets = [record.offset for record in records]
        if offsets and offsets != list(range(offsets[0], offsets[-1] + 1)):
            problems.append(f"{name} log has holes or repeats")
    if stored and stored[0].offset != 0:
        problems.append(f"cold log starts at {stored[0].offset}")
    following = stored[-1].offset + 1 if stored else 0
    if hot.records and hot.records[0].offset > following:
        problems.append(f"records {following} to {hot.records[0].offset - 1} are in no tier")
    if hot.records and hot.records[-1].offset + 1 != hot.next_offset:
        problems.append(f"hot log ends before its next offset {hot.next_offset}")
    texts = dict(stored)
    problems += [f"record {at} differs between tiers" for at, text in hot.records if texts.get(at, text) != text]
    return problems
