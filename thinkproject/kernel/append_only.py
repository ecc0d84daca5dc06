"""Tables whose rows are only added. The database refuses to change or delete one, but for what is erased as a whole.

    with erasing():
        ToolCallRecord.objects.filter(turn_id__in=turn_ids).delete()

Triggers look for a row in `think_erasing`, which is there from the beginning of such an erasure to its end, in one
transaction: no other sees it, and a rollback takes it back. It is no table of a model, so a flush does not empty it.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.apps import AppConfig
from django.db import DEFAULT_DB_ALIAS, connections, models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.signals import post_delete, post_migrate, pre_delete

from thinkproject.kernel.ids import new_id

SWITCH: Final = "think_erasing"
NONE_ERASED: Final = "NOT EXISTS (SELECT 1 FROM think_erasing)"
"""SQL: whether the present transaction erases nothing as a whole."""

_SQLITE: Final = (
    "CREATE TABLE IF NOT EXISTS think_erasing (id varchar(100) NOT NULL PRIMARY KEY, whole varchar(100) NOT NULL)",
    "CREATE TRIGGER IF NOT EXISTS :table:_unchanged BEFORE UPDATE ON :table: WHEN :kept: BEGIN :raise: END",
    "CREATE TRIGGER IF NOT EXISTS :table:_undeleted BEFORE DELETE ON :table: WHEN :kept: BEGIN :raise: END",
)
_POSTGRES: Final = (
    "CREATE TABLE IF NOT EXISTS think_erasing (id varchar(100) NOT NULL PRIMARY KEY, whole varchar(100) NOT NULL)",
    """CREATE OR REPLACE FUNCTION think_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF :kept: THEN
            RAISE EXCEPTION 'Rows of % are only added.', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
        END IF;
        IF TG_OP = 'UPDATE' THEN RETURN NEW; END IF;
        RETURN OLD;
    END $$""",
    "DROP TRIGGER IF EXISTS :table:_kept ON :table:",
    """CREATE TRIGGER :table:_kept BEFORE UPDATE OR DELETE ON :table:
        FOR EACH ROW EXECUTE FUNCTION think_append_only()""",
    "DROP TRIGGER IF EXISTS :table:_not_emptied ON :table:",
    """CREATE TRIGGER :table:_not_emptied BEFORE TRUNCATE ON :table:
        FOR EACH STATEMENT EXECUTE FUNCTION think_append_only()""",
)
_RAISE: Final = "SELECT RAISE(ABORT, 'Rows of :table: are only added.');"


@contextmanager
def erasing(using: str = DEFAULT_DB_ALIAS, *, whole: str = "") -> Iterator[None]:
    """Open a transaction in which rows of append-only tables may go, or be without a person. Two statements.

    `whole`: id of what loses all that it holds; the change feed has one entry of it then (`chat/feed`).
    """
    key = new_id("ers")
    with transaction.atomic(using=using, savepoint=False):
        _begin(key, using, whole)
        yield
        if not connections[using].needs_rollback:  # else the rollback takes it back, and no statement may be made
            _end(key, using)


def erase_with(model: type[models.Model]) -> None:
    """Let such rows go with each row of this model that Django deletes, and with all that it deletes because of that.

    A deletion by SQL alone is refused. Call it when the models are loaded.
    """

    def begin(*, instance: models.Model, using: str, **_facts: Any) -> None:
        _begin(_key_of(instance), using)

    def end(*, instance: models.Model, using: str, **_facts: Any) -> None:
        _end(_key_of(instance), using)

    pre_delete.connect(begin, sender=model, weak=False, dispatch_uid=f"think_erasing_{model._meta.label}")
    post_delete.connect(end, sender=model, weak=False, dispatch_uid=f"think_erased_{model._meta.label}")


def keep_installed(app: AppConfig, tables: Iterable[str]) -> None:
    """Install it again after each `migrate` of the app: Django makes a table of SQLite anew, without its triggers."""

    def mend(*, using: str, **_facts: Any) -> None:
        install(connections[using], tables)

    post_migrate.connect(mend, sender=app, weak=False, dispatch_uid=f"{app.label}.append_only")


def install(database: BaseDatabaseWrapper, tables: Iterable[str]) -> None:
    """Make what keeps the rows of these tables, where it is missing. Safe to repeat."""
    existing = set(database.introspection.table_names())
    wanted = _POSTGRES if database.vendor == "postgresql" else _SQLITE
    with database.cursor() as cursor:
        for table in existing.intersection(tables):
            for text in wanted:
                filled = text.replace(":raise:", _RAISE).replace(":kept:", NONE_ERASED).replace(":table:", table)
                cursor.execute(filled)


def remove(database: BaseDatabaseWrapper, tables: Iterable[str]) -> None:
    """Take the triggers of these tables away, for the way back of a migration."""
    with database.cursor() as cursor:
        for table in tables:
            if database.vendor == "postgresql":
                cursor.execute(f"DROP TRIGGER IF EXISTS {table}_kept ON {table}")
                cursor.execute(f"DROP TRIGGER IF EXISTS {table}_not_emptied ON {table}")
            else:
                cursor.execute(f"DROP TRIGGER IF EXISTS {table}_unchanged")
                cursor.execute(f"DROP TRIGGER IF EXISTS {table}_undeleted")


def _key_of(instance: models.Model) -> str:
    # The object, too: what a signal deletes may be among what its sender deletes.
    return f"{instance._meta.label} {id(instance)} {instance.pk}"[:100]


def _begin(key: str, using: str, whole: str = "") -> None:
    with connections[using].cursor() as cursor:
        cursor.execute("INSERT INTO think_erasing (id, whole) VALUES (%s, %s)", [key, whole])


def _end(key: str, using: str) -> None:
    with connections[using].cursor() as cursor:
        cursor.execute("DELETE FROM think_erasing WHERE id = %s", [key])
