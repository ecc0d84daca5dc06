"""Search messages and context entries. Reads only; a fixed number of queries per page.

The newest 5,000 matches are ranked; where there are more, the result is marked. A query that cannot be understood finds
nothing and says why.
"""

import base64
import binascii
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from django.db import connection
from django.db.models import Q

from sessions_app.core.search.ranking import Snippet, snippet
from sessions_app.core.search.search_query import Phrase, parse_query
from sessions_app.core.search.words import text_of
from sessions_app.errors import CursorInvalid
from sessions_app.models import ContextEntry, EntryWords, Message, MessageWords, Session
from sessions_app.search.engine import Within, best_matches
from sessions_app.search.indexing import block_tag, tag
from sessions_app.search.ordering import HitsPage, Sql
from sessions_app.search.scoping import forks_with, on_path, shared_rows
from thinkproject.kernel.jsonvalue import JSONValue, dump, load

_Cursor: TypeAlias = tuple[int, int, int]
"""The newest row when the first page was made, how many hits were given, and the last one's row."""

MAX_RANKED: Final = 5_000
MAX_LIMIT: Final = 100
MAX_SCOPES: Final = 500
TEXT_CHARS: Final = 4_000  # of a hit's text
READ_AT_ONCE: Final = 4  # contents that are in memory while snippets are cut


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message that matches, in the session where it can be opened.

    `highlights` are ranges of the snippet. `is_on_path` is nothing where the leaf is too far away to check cheaply;
    `leaf_id` ends the shown path of a hit that is on it. Another hit's branch is shown by `select_leaf`.
    """

    session_id: str
    scope: str
    message_id: str
    role: str
    created_at: datetime
    text: str  # the first 4,000 characters
    snippet: str
    highlights: tuple[tuple[int, int], ...]
    score: float
    is_on_path: bool | None
    leaf_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """Hits, best first. `is_partial`: more matched than were ranked. `problem`: why nothing was looked for."""

    hits: list[SearchHit]
    next_cursor: str | None = None
    is_partial: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundEntries:
    """Context entries that match, best first, or why nothing was looked for."""

    entries: list[ContextEntry]
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """Messages that are looked at: of a role, written at `since` or later and before `until`. Empty: all."""

    role: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def sql(self) -> Sql | None:
        """The condition on a message's row called `about`."""
        found: list[tuple[str, Any]] = []
        adapt = connection.ops.adapt_datetimefield_value
        if self.role:
            found.append(("about.role = %s", self.role))
        if self.since is not None:
            found.append(("about.created_at >= %s", adapt(self.since)))
        if self.until is not None:
            found.append(("about.created_at < %s", adapt(self.until)))
        return (" AND ".join(sql for sql, _ in found), [value for _, value in found]) if found else None


ALL: Final = Only()


def search(  # noqa: PLR0913 - each narrows the search, and callers name it
    query: str,
    *,
    session_id: str | None = None,
    scopes: Collection[str] | None = None,
    owner_id: object = None,
    shared: Collection[str] = (),
    only: Only = ALL,
    with_hidden: bool = False,
    limit: int = 20,
    cursor: str = "",
) -> SearchPage:
    """Search one session, the sessions of some scopes, or all of an owner; all given filters apply.

    `shared`: scopes of others that count as the owner's. `with_hidden`: also sessions that no search finds otherwise.
    A fork's session finds the messages that it shares too. Words must all occur; also "a phrase", -without and OR.
    **Shape:** at most 100 hits; `cursor` is the former page's `next_cursor`; at most 500 scopes.
    **Errors:** `CursorInvalid`. A malformed query is none: it finds nothing and says why.
    """
    chosen = None if scopes is None else sorted(set(scopes))
    place = _Place(session_id, chosen, owner_id, sorted(set(shared)), only, with_hidden)
    if session_id is None and scopes is None and owner_id is None:
        raise ValueError("A search needs a session, scopes or an owner.")
    return _search(query, place, limit, cursor)


def search_everything(query: str, *, limit: int = 20, cursor: str = "") -> SearchPage:
    """Search the sessions of everybody: for staff who may read them all. Otherwise as `search`."""
    return _search(query, _Place(None, None, None), limit, cursor)


def _search(query: str, place: "_Place", limit: int, cursor: str) -> SearchPage:
    parsed = parse_query(query)
    came_from = _decode(cursor) if cursor else None
    if parsed.problem or place.is_empty:
        return SearchPage(hits=[], problem=parsed.problem)
    newest, given, last = came_from or (None, 0, -1)
    page = HitsPage(limit=min(max(limit, 1), MAX_LIMIT), of_newest=MAX_RANKED, given=given, last=last)
    found = best_matches(MessageWords, parsed, place.within(newest), page)
    next_cursor = None
    if found.has_more:
        next_cursor = _next(newest or found.newest, found.end, found.rows[-1][1])
    return SearchPage(hits=_hits(found.rows, parsed.phrases, place), next_cursor=next_cursor, is_partial=found.is_cut)


def search_entries(
    query: str, *, label: str, session_id: str | None = None, owner_id: object = None, limit: int = 10
) -> FoundEntries:
    """Search the entries of one block, of a session or of an owner. Two queries."""
    parsed = parse_query(query)
    if parsed.problem:
        return FoundEntries(entries=[], problem=parsed.problem)
    block = block_tag(label=label, session_id=session_id, owner_id=owner_id)
    page = HitsPage(limit=max(limit, 0), of_newest=MAX_RANKED)
    ranked = best_matches(EntryWords, parsed, Within(tags=[[block]]), page).rows
    whose = {"owner_id": owner_id} if session_id is None else {"session_id": session_id}
    rows = ContextEntry.objects.filter(**whose, label=label).in_bulk([row_id for _, row_id in ranked])
    return FoundEntries(entries=[rows[row_id] for _, row_id in ranked if row_id in rows])


@dataclass(frozen=True, slots=True)
class _Place:
    """Scope of a search: tags for the index, and columns to verify its hits."""

    session_id: str | None
    scopes: Sequence[str] | None
    owner_id: object
    shared: Sequence[str] = ()
    only: Only = ALL
    with_hidden: bool = False

    def __post_init__(self) -> None:
        if max(len(self.scopes or ()), len(self.shared)) > MAX_SCOPES:
            raise ValueError(f"A search takes at most {MAX_SCOPES} scopes.")

    @property
    def is_empty(self) -> bool:
        return self.scopes is not None and not self.scopes

    @property
    def condition(self) -> Q:
        given = {"pk": self.session_id, "scope__in": self.scopes}
        found = Q(**{name: value for name, value in given.items() if value is not None})
        if (found or self.owner_id is not None) and not self.with_hidden:
            found &= Q(hidden_at=None)
        return found if self.owner_id is None else found & (Q(owner_id=self.owner_id) | Q(scope__in=self.shared))

    def within(self, newest: int | None) -> Within:
        tags = []
        if self.session_id is not None:
            tags.append([tag("session", self.session_id)])
        if self.scopes is not None:
            tags.append([tag("scope", scope) for scope in self.scopes])
        if self.owner_id is not None:
            tags.append([tag("owner", self.owner_id), *(tag("scope", scope) for scope in self.shared)])
        # What is searched by its owner alone needs no look at forks: they have the owner of their origins.
        also = None
        if self.session_id is not None:
            also = shared_rows("id", [self.session_id])
        elif scopes := self.scopes or self.shared:
            also = shared_rows("scope", scopes)
        return Within(tags=tags, also=also, newest=newest, only=self.only.sql())


def _hits(ranked: Sequence[tuple[float, int]], phrases: Sequence[Phrase], place: _Place) -> list[SearchHit]:
    rows = Message.objects.defer("content").in_bulk([row_id for _, row_id in ranked])
    own = {row.session_id for row in rows.values() if row.session_id is not None}
    homes = Session.objects.filter(place.condition).only("scope").in_bulk(list(own))
    foreign = [row for row in rows.values() if row.session_id not in homes]
    forks = forks_with(foreign, place.condition)
    opened: list[tuple[float, Message, Session]] = []
    for score, row_id in ranked:
        row = rows.get(row_id)
        home = None if row is None else homes.get(row.session_id or "") or forks.get(row_id)
        if row is not None and home is not None:
            opened.append((score, row, home))
    are_shown, leaves = on_path((home.pk, row) for _, row, home in opened)
    texts = _texts([row.pk for _, row, _ in opened], phrases)
    return [_hit(scored, texts[scored[1].pk], are_shown, leaves) for scored in opened if scored[1].pk in texts]


def _texts(row_ids: Sequence[int], phrases: Sequence[Phrase]) -> dict[int, tuple[str, Snippet]]:
    """Beginnings and snippets of messages. Contents are decoded a few at a time and let go of once they are cut."""
    texts: dict[int, tuple[str, Snippet]] = {}
    contents = Message.objects.filter(pk__in=row_ids).values_list("pk", "content")
    for row_id, content in contents.iterator(chunk_size=READ_AT_ONCE):
        text = text_of(content["parts"])
        texts[row_id] = text[:TEXT_CHARS], snippet(text, phrases)
    return texts


def _hit(
    scored: tuple[float, Message, Session],
    texts: tuple[str, Snippet],
    are_shown: dict[tuple[str, int], bool],
    leaves: dict[str, str],
) -> SearchHit:
    score, row, home = scored
    text, shown = texts
    is_on_path = are_shown.get((home.pk, row.pk))
    return SearchHit(
        session_id=home.pk,
        scope=home.scope,
        message_id=row.message_id,
        role=row.role,
        created_at=row.created_at,
        text=text,
        snippet=shown.text,
        highlights=shown.highlights,
        score=score,
        is_on_path=is_on_path,
        leaf_id=leaves[home.pk] if is_on_path else None,
    )


def _next(newest: int | None, end: int, last: int) -> str:
    return base64.urlsafe_b64encode(dump([newest, end, last]).encode()).decode()


def _decode(cursor: str) -> _Cursor:
    try:
        value: JSONValue = load(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, binascii.Error):
        raise CursorInvalid from None
    match value:
        case [int(newest), int(given), int(last)] if all(0 <= number < 2**63 for number in value):
            return newest, given, last
    raise CursorInvalid
