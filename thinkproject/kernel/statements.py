"""SQL of the hot path: written once for SQLite and PostgreSQL, and sent without building it anew each time.

    ROW = Columns(Instance)
    TAKE = Statement("UPDATE instance SET turn_count = turn_count + 1 WHERE id = %s RETURNING :row:", row=ROW)
    instance = ROW.build(TAKE.one(instance_id))

The ORM spends several times what the database does on building a statement and its rows. A statement here stands in
the module that owns its table, behind a function whose test compares it with the ORM. All values are parameters. The
names of the project's tables are part of the product (ADR 0010 for labels), so they are written out.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.utils import timezone

M = TypeVar("M", bound=models.Model)

_CLOCK: Final[Mapping[str, Mapping[str, str]]] = {
    "sqlite": {
        "now": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')",
        "later": "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', PRINTF('%%+.3f seconds', %s))",
        "instant": r"(\1 || '')",
        "lock": "",  # a transaction that writes has the database's one write lock from its beginning
    },
    "postgresql": {
        "now": "STATEMENT_TIMESTAMP()",
        "later": "(STATEMENT_TIMESTAMP() + MAKE_INTERVAL(SECS => %s))",
        "instant": r"TO_CHAR(\1 AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
        "lock": "FOR NO KEY UPDATE",
    },
}
"""The database's clock, as `django.db.models.functions.Now` reads it, and that many seconds later.

And an instant as text, for `read_instant`; a row's lock.
"""

_INSTANT: Final = re.compile(r":instant_of_([a-z_.]+):")


def read_instant(text: str) -> datetime:
    """Read what `:instant_of_...:` gives. Both drivers take far longer to make an instant of a column's value."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Statement:
    """One statement. `:name:` in its text stands for a part given by name, or for `now`, `later` or `lock`.

    Shape: `lock_of_s` and the like lock the rows of one table of a join. `:instant_of_m.created_at:` is an instant for
    `read_instant`, for statements that read thousands. Parts may be `Columns`.
    """

    def __init__(self, text: str, **parts: "str | Columns[Any]") -> None:
        self._text = text
        self._parts = parts
        self._by_vendor: dict[str, str] = {}

    @property
    def sql(self) -> str:
        """The text for the database in use."""
        vendor = connection.vendor
        found = self._by_vendor.get(vendor)
        if found is None:
            found = self._by_vendor[vendor] = self._render(vendor)
        return found

    def one(self, *params: Any) -> tuple[Any, ...] | None:
        """Run it and give the first row, as the driver reads it."""
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            row: tuple[Any, ...] | None = cursor.fetchone()
            return row

    def all(self, *params: Any) -> list[tuple[Any, ...]]:
        """Run it and give all rows, as the driver reads them."""
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def all_in_binary(self, *params: Any) -> list[tuple[Any, ...]]:
        """As `all`, of PostgreSQL in its binary form: a fraction of the time for columns of bytes."""
        if connection.vendor != "postgresql":
            return self.all(*params)
        connection.ensure_connection()
        database: Any = connection  # Django's own cursor is one that cannot do this
        with database.wrap_database_errors, database.Database.Cursor(database.connection) as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(self.sql, params, binary=True).fetchall()
            return rows

    def run(self, *params: Any) -> int:
        """Run it and give the number of rows that it changed."""
        with connection.cursor() as cursor:
            cursor.execute(self.sql, params)
            return int(cursor.rowcount)

    def _render(self, vendor: str) -> str:
        text = self._text
        for name, part in self._parts.items():
            text = text.replace(f":{name}:", part if isinstance(part, str) else part.sql)
        words = _CLOCK[vendor]
        for name in ("now", "later", "lock"):
            text = text.replace(f":{name}:", words[name])
        text = _INSTANT.sub(words["instant"], text)
        text = text.replace(":lock_of_s:", f"{words['lock']} OF s" if words["lock"] else "")
        return " ".join(text.split())


class Columns(Generic[M]):
    """Columns of a model in a statement, and how their values are read and written."""

    def __init__(self, model: type[M], names: Sequence[str] | None = None, *, prefix: str = "") -> None:
        """`names`: attribute names (`owner_id`), all by default. `prefix`: the table's alias in the statement."""
        self._model = model
        self._wanted = None if names is None else tuple(names)
        self._prefix = f"{prefix}." if prefix else ""
        self._fields: list[models.Field[Any, Any]] | None = None
        self._converters: dict[str, list[tuple[int, list[Callable[..., Any]], Any]]] = {}

    @property
    def fields(self) -> "list[models.Field[Any, Any]]":
        """The fields, in the model's order, which is that of the columns."""
        if self._fields is None:
            wanted = self._wanted
            fields = self._model._meta.concrete_fields
            self._fields = [field for field in fields if wanted is None or field.attname in wanted]
            assert wanted is None or len(self._fields) == len(wanted), "names of columns are attribute names"
        return self._fields

    @property
    def sql(self) -> str:
        """The list of columns."""
        return ", ".join(f'{self._prefix}"{field.column}"' for field in self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def values(self, row: Sequence[Any]) -> list[Any]:
        """Read a row: JSON, instants and numbers as the model's fields give them. Further values are left out."""
        found = list(row[: len(self.fields)])
        for at, converters, expression in self._converters_here():
            for convert in converters:
                found[at] = convert(found[at], expression, connection)
        return found

    def table(self, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
        """Read many rows, column by column, which costs a fraction of reading each. No object of the model is made.

        Shape: the values of each row in the order of `names`, or of the model's columns. Further values are left out.
        """
        columns = list[Sequence[Any]](zip(*rows, strict=True))[: len(self.fields)]
        here = connections[DEFAULT_DB_ALIAS]  # `connection` looks for it at each use
        for at, converters, expression in self._converters_here():
            for convert in converters:
                columns[at] = [convert(value, expression, here) for value in columns[at]]
        if columns and self._wanted is not None:
            places = {field.attname: at for at, field in enumerate(self.fields)}
            columns = [columns[places[name]] for name in self._wanted]
        return zip(*columns, strict=True)

    def build(self, row: Sequence[Any]) -> M:
        """Make an object of the model from a row that has these columns first."""
        names = [field.attname for field in self.fields]
        return self._model.from_db(connection.alias, names, self.values(row))

    def prepare(self, values: Mapping[str, Any]) -> list[Any]:
        """Encode one value for each column, in their order; a missing one gets the field's default."""
        return [
            field.get_db_prep_save(
                values[field.attname] if field.attname in values else field.get_default(), connection
            )
            for field in self.fields
        ]

    def _converters_here(self) -> list[tuple[int, list[Callable[..., Any]], Any]]:
        vendor = connection.vendor
        found = self._converters.get(vendor)
        if found is None:
            found = []
            for at, field in enumerate(self.fields):
                expression = field.get_col(self._model._meta.db_table)
                converters = [
                    *connection.ops.get_db_converters(expression),
                    *expression.get_db_converters(connection),
                ]
                if converters:
                    found.append((at, converters, expression))
            self._converters[vendor] = found
        return found


class Insert(Generic[M]):
    """An INSERT of one row."""

    def __init__(
        self, model: type[M], *names: str, then: str = "", row: Columns[Any] | None = None, **computed: str
    ) -> None:
        """`names`: attribute names of the columns that get a value, all by default.

        `computed`: SQL of further columns; its parameters follow the values. `then`: the end of the statement, such as
        `RETURNING id`, or `RETURNING :row:` for the columns of `row`.
        """
        self._columns = Columns(model, names or None)
        self._model = model
        self._computed = computed
        self._then = then
        self._parts = {} if row is None else {"row": row}
        self._statement: Statement | None = None

    def one(self, values: Mapping[str, Any], *params: Any) -> tuple[Any, ...] | None:
        """Insert these values by attribute name, others by the fields' defaults; gives what `then` returns."""
        return self._ready().one(*self._columns.prepare(values), *params)

    def run(self, values: Mapping[str, Any], *params: Any) -> int:
        """Do the same for a statement that returns nothing; gives the number of rows."""
        return self._ready().run(*self._columns.prepare(values), *params)

    def _ready(self) -> Statement:
        if self._statement is None:  # the names of columns are known once the apps are loaded
            listed = ", ".join([self._columns.sql, *(f'"{name}"' for name in self._computed)])
            marks = ", ".join([*["%s"] * len(self._columns), *self._computed.values()])
            table = self._model._meta.db_table
            text = f'INSERT INTO "{table}" ({listed}) VALUES ({marks}) {self._then}'  # noqa: S608 - names and constants
            self._statement = Statement(text, **self._parts)
        return self._statement


def instant(value: datetime | None = None) -> Any:
    """Encode an instant, now by default, as the database's driver takes it."""
    return connection.ops.adapt_datetimefield_value(value or timezone.now())
