"""Triggers that write the change feed: with what changed, in its transaction, by whatever way it is written.

PostgreSQL runs them at the commit, so that the row of the feed is the last that is locked: who commits first has the
lower number, and no transaction that holds it waits for another row. SQLite has one writer. Nothing is written for
a person whose feed is not open. What is erased as a whole is one entry (`thinkproject.kernel.append_only`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from thinkproject.kernel.append_only import NONE_ERASED
from thinkproject.kernel.jsonvalue import fingerprint

_OF_SESSION: Final = "SELECT s.owner_id AS owner, s.scope AS instance, {} FROM think_sessions_session s WHERE s.id = {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTable:
    """A table. `place`: SQL of one row or none: owner, instance, type and key of what a changed `:row:` is.

    `updates`: columns whose change counts; `condition`: on rows. A row that is `erasable` is not named where it goes
    together with the whole that it belongs to.
    """

    table: str
    place: str
    inserts: bool = True
    updates: tuple[str, ...] = ()
    deletes: bool = True
    erasable: bool = True
    inserts_are: str = "insert"
    condition: str = ""


WATCHED: Final = (
    WatchedTable(
        table="think_chat_agentinstance",
        place="SELECT :row:.owner_id AS owner, :row:.id AS instance, 'conversation' AS type, :row:.id AS key",
        updates=(
            *("title", "session_id", "state_version", "config_version", "model_choice"),
            *("seen_at", "archived_at", "pinned_at", "project_id"),
        ),
        erasable=False,
    ),
    WatchedTable(
        table="think_sessions_session",
        place="SELECT :row:.owner_id AS owner, :row:.scope AS instance, 'session' AS type, :row:.id AS key",
        updates=("active_leaf_id", "name", "archived_depth", "archived_at", "pinned_at", "end_reason", "max_cost"),
        erasable=False,
    ),
    WatchedTable(
        table="think_erasing",
        place=_OF_SESSION.format("'session' AS type, s.id AS key", ":row:.whole"),
        inserts_are="reset",
        deletes=False,
        condition=":row:.whole <> ''",
    ),
    WatchedTable(
        table="think_sessions_message",
        place=_OF_SESSION.format("'message' AS type, s.id || '/' || :row:.message_id AS key", ":row:.session_id"),
        updates=("change_seq", "session_id"),
    ),
    WatchedTable(
        table="think_sessions_compaction",
        place=_OF_SESSION.format("'compaction' AS type, :row:.id AS key", ":row:.session_id"),
        updates=("summary", "edited_at", "undone_at"),
    ),
    WatchedTable(
        table="think_chat_turn",
        place="""SELECT a.owner_id AS owner, a.id AS instance, 'turn' AS type, :row:.id AS key
            FROM think_chat_agentinstance a WHERE a.id = :row:.instance_id""",
        updates=("delivery", "answered_by_id", "retry"),
    ),
    WatchedTable(
        table="think_fibers_fiber",
        place="""SELECT a.owner_id AS owner, a.id AS instance, 'turn' AS type, t.id AS key
            FROM think_chat_turn t JOIN think_chat_agentinstance a ON a.id = t.instance_id WHERE t.fiber_id = :row:.id
            UNION ALL SELECT a.owner_id, a.id, 'job', :row:.id FROM think_chat_agentinstance a
            WHERE a.id = :row:.scope AND NOT EXISTS (SELECT 1 FROM think_chat_turn t WHERE t.fiber_id = :row:.id)""",
        inserts=False,
        updates=("status",),
        deletes=False,
    ),
    WatchedTable(
        table="think_tools_toolcallrecord",
        place="""SELECT :row:.owner_id AS owner, :row:.scope AS instance, 'call' AS type,
            :row:.turn_id || '/' || :row:.call_id AS key""",
        updates=("status", "approval_id", "edited_input"),
        condition=":row:.scope <> ''",
    ),
    WatchedTable(
        table="think_tools_approvalevent",
        place="""SELECT c.owner_id AS owner, c.scope AS instance, 'approval' AS type,
            CAST(:row:.id AS varchar(20)) AS key FROM think_tools_toolcallrecord c
            WHERE c.id = :row:.call_id AND c.scope <> ''""",
        deletes=False,
    ),
    WatchedTable(
        table="think_chat_agentrun",
        place="SELECT :row:.owner_id AS owner, :row:.parent_id AS instance, 'run' AS type, :row:.id AS key",
        updates=("child_id", "outcome", "finished_at", "progress_at"),
    ),
    WatchedTable(
        table="think_chat_agentmessage",
        place="""SELECT a.owner_id AS owner, a.id AS instance, 'agent-message' AS type,
            CAST(:row:.seq AS varchar(20)) AS key FROM think_chat_agentinstance a WHERE a.id = :row:.room_id""",
        updates=("turn_id", "processed_at", "late"),
    ),
    WatchedTable(
        table="think_chat_membership",
        place="""SELECT a.owner_id AS owner, a.id AS instance, 'member' AS type, :row:.id AS key
            FROM think_chat_agentinstance a WHERE a.id = :row:.instance_id""",
        updates=("role", "revoked_at"),
    ),
    WatchedTable(
        table="think_tools_workspace",
        place="SELECT :row:.owner_id AS owner, '' AS instance, 'workspace' AS type, :row:.id AS key",
        updates=("version", "title"),
    ),
)
TYPES: Final = (
    "agent-message",
    "approval",
    "call",
    "compaction",
    "conversation",
    "job",
    "member",
    "message",
    "run",
    "session",
    "turn",
    "workspace",
)
"""Types of changes."""

_POSTGRES_FUNCTION: Final = """
CREATE OR REPLACE FUNCTION :name:() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    r record;
    n record;
BEGIN
    IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
    UPDATE think_chat_feedhead h SET seq = h.seq + 1 FROM (:place:) p WHERE h.owner_id = p.owner AND h.is_open
    RETURNING h.owner_id, h.seq, p.instance, p.type, p.key INTO n;
    IF FOUND THEN  -- a statement that inserts nothing costs a third of the trigger
        INSERT INTO think_chat_feedchange (feed_id, seq, instance_id, type, key, op, at)
        VALUES (n.owner_id, n.seq, n.instance, n.type, n.key, TG_ARGV[0], clock_timestamp());
    END IF;
    RETURN NULL;
END $$"""
_POSTGRES_TRIGGER: Final = """CREATE CONSTRAINT TRIGGER :name:_:event: AFTER :EVENT: ON :table:
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (:when:) EXECUTE FUNCTION :name:(':op:')"""
_POSTGRES_ERASING: Final = f"""
CREATE OR REPLACE FUNCTION think_none_erased() RETURNS boolean LANGUAGE sql STABLE AS 'SELECT {NONE_ERASED}'"""

_SQLITE_TRIGGER: Final = """CREATE TRIGGER :name:_:event: AFTER :EVENT: ON :table:
WHEN (:when:) AND EXISTS (SELECT 1 FROM think_chat_feedhead WHERE is_open)
BEGIN
    UPDATE think_chat_feedhead SET seq = seq + 1 WHERE is_open AND owner_id = (SELECT owner FROM (:place:));
    INSERT INTO think_chat_feedchange (feed_id, seq, instance_id, type, key, op, at)
    SELECT h.owner_id, h.seq, p.instance, p.type, p.key, ':op:', strftime('%Y-%m-%d %H:%M:%f', 'now')
    FROM (:place:) p JOIN think_chat_feedhead h ON h.owner_id = p.owner AND h.is_open;
END"""

_SQLITE_HEAD: Final = """CREATE TRIGGER think_feed_head_delete AFTER DELETE ON think_chat_feedhead
BEGIN
    DELETE FROM think_chat_feedchange WHERE feed_id = OLD.owner_id;
END"""
"""What a deletion of a person wrote to the feed that it deletes. PostgreSQL writes at the commit, when that is gone."""


def install(*, using: str, **_facts: Any) -> None:
    """Make the triggers after a migration, where they are not as they are here. Open feeds begin anew then.

    What changed while there were none is in no feed, so that its readers have to look at everything again.
    """
    database = connections[using]
    existing = set(database.introspection.table_names())
    if not existing.issuperset(watched.table for watched in WATCHED):
        return
    wanted = list(_statements(database.vendor))
    mark = fingerprint(wanted)
    with database.cursor() as cursor:
        if _installed(database) == mark:
            return
        for statement in (*removals(database), *wanted):
            cursor.execute(statement)
        if database.vendor == "postgresql":
            cursor.execute(f"COMMENT ON FUNCTION think_none_erased() IS '{mark}'")
        cursor.execute("UPDATE think_chat_feedhead SET seq = seq + 1, floor = seq + 1")


def uninstall(*, using: str, plan: Any = (), **_facts: Any) -> None:
    """Take the triggers away before a migration on SQLite: a table that is made anew must not be named by one."""
    database = connections[using]
    if plan and database.vendor == "sqlite":
        with database.cursor() as cursor:
            for statement in removals(database):
                cursor.execute(statement)


def _installed(database: BaseDatabaseWrapper) -> str:
    """The mark of the triggers that are there."""
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            cursor.execute("SELECT obj_description(to_regprocedure('think_none_erased()'), 'pg_proc')")
            return str(cursor.fetchone()[0])
        cursor.execute(
            "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'think_feed_%' ORDER BY name"
        )
        found = {text for (text,) in cursor.fetchall()}
    wanted = list(_statements(database.vendor))
    return fingerprint(wanted) if found == set(wanted) else ""


def removals(database: BaseDatabaseWrapper) -> list[str]:
    """Statements that take the triggers away which are there."""
    with database.cursor() as cursor:
        if database.vendor == "postgresql":
            cursor.execute(
                "SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
                "WHERE t.tgname LIKE 'think_feed_%' AND c.relnamespace = to_regnamespace(current_schema()::text)"
            )
            return [f"DROP TRIGGER {name} ON {table}" for name, table in cursor.fetchall()]
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE 'think_feed_%'")
        return [f"DROP TRIGGER {name}" for (name,) in cursor.fetchall()]


def _statements(vendor: str) -> Iterator[str]:
    yield _POSTGRES_ERASING if vendor == "postgresql" else _SQLITE_HEAD
    for watched in WATCHED:
        name = f"think_feed_{watched.table.rpartition('_')[2]}"
        if vendor == "postgresql":
            yield _POSTGRES_FUNCTION.replace(":name:", name).replace(":place:", watched.place).replace(":row:", "r")
        for event, op, when in _events(watched, vendor):
            text = _POSTGRES_TRIGGER if vendor == "postgresql" else _SQLITE_TRIGGER
            row = "OLD" if event == "delete" else "NEW"
            for placeholder, value in (
                (":when:", f"({when}) AND ({watched.condition})" if watched.condition else when),
                (":place:", watched.place),
                (":row:", row),
                (":name:", name),
                (":event:", event),
                (":EVENT:", event.upper()),
                (":table:", watched.table),
                (":op:", op),
            ):
                text = text.replace(placeholder, value)
            yield text


def _events(watched: WatchedTable, vendor: str) -> Iterator[tuple[str, str, str]]:
    """Each event of a table that counts: its name, its operation, its condition."""
    differs, kept = ("IS NOT", NONE_ERASED) if vendor == "sqlite" else ("IS DISTINCT FROM", "think_none_erased()")
    if watched.inserts:
        yield "insert", watched.inserts_are, "1 = 1"
    if watched.updates:
        yield "update", "update", " OR ".join(f"NEW.{column} {differs} OLD.{column}" for column in watched.updates)
    if watched.deletes:
        yield "delete", "delete", kept if watched.erasable else "1 = 1"
