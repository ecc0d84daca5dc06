r"""A model field for JSON that models and people wrote.

PostgreSQL's `jsonb` refuses `\u0000` and lone surrogates and reorders keys; model output has all of them. This field
stores the compact JSON as text, the same bytes on SQLite and PostgreSQL. It is not for querying inside the value.
"""

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper

from thinkproject.kernel.jsonvalue import JSONValue, dump, load

if TYPE_CHECKING:

    class _TextField(models.TextField[Any, Any]):
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any
        _pyi_lookup_exact_type: Any

else:
    _TextField = models.TextField  # generic for the type checker only


class JSONText(_TextField):
    """JSON value kept as text. `null=True` stores Python's `None` as SQL NULL."""

    description = "JSON value, stored as text"

    def from_db_value(self, value: str | None, _expression: object, _connection: BaseDatabaseWrapper) -> JSONValue:
        """Decode a database value."""
        return None if value is None else load(value)

    def get_prep_value(self, value: JSONValue) -> str | None:
        """Encode for the database."""
        return None if value is None else dump(value)

    def to_python(self, value: JSONValue) -> JSONValue:
        """Leave values as they are: text is a JSON value too."""
        return value

    def value_to_string(self, obj: models.Model) -> str:
        """Encode for fixtures."""
        return dump(self.value_from_object(obj))


if TYPE_CHECKING:

    class _CharField(models.CharField[Any, Any]):
        _pyi_private_set_type: Any
        _pyi_private_get_type: Any
        _pyi_lookup_exact_type: Any

else:
    _CharField = models.CharField  # as above


class CodePointText(_CharField):
    """Text that the database compares and sorts by code points, as Python and SQLite do.

    On PostgreSQL that is the collation `C`; with another one, ranges and the order of paths depend on a language.
    """

    def db_parameters(self, connection: BaseDatabaseWrapper) -> Any:
        """Say how the column is made."""
        found = super().db_parameters(connection)
        return {**found, "collation": "C"} if connection.vendor == "postgresql" else found
