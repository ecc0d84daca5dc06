"""Keys that stand for paths in indexes: a path itself where it is short, its beginning with a hash where it is long.

PostgreSQL refuses index entries above 2.7 kB, and a path may have 16 kB. A key is computed alike here and in SQL, as
directories are copied and moved by one statement. Keys sort as their paths do, except among paths that have the same
first 360 characters.
"""

import hashlib
from typing import Any, Final

from django.db.models import Case, CharField, F, Q, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import MD5, Concat, Left, Length, Substr
from django.db.models.lookups import LessThanOrEqual

from tools_app.core.files.paths import name_of, parent_of

MAX_KEY_CHARS: Final = 400
HEAD_CHARS: Final = 360
_MARK: Final = "\x1f"  # in no path, so that no path is the key of another
_LAST: Final = "\U0010ffff"


def key_of(path: str) -> str:
    """The key of a path."""
    if len(path) <= MAX_KEY_CHARS:
        return path
    return f"{path[:HEAD_CHARS]}{_MARK}{hashlib.md5(path.encode(), usedforsecurity=False).hexdigest()}"


def below_prefix(prefix: str) -> Q:
    """Entries whose path begins with a prefix that ends in a slash: a range of the index, never a pattern."""
    if len(prefix) <= HEAD_CHARS:
        return Q(path_key__gte=prefix, path_key__lt=_after(prefix))
    head = prefix[:HEAD_CHARS]
    inside = Q(path__gte=prefix, path__lt=_after(prefix))
    return Q(path_key__gte=head, path_key__lt=head + _LAST) & inside


def range_below(prefix: str) -> tuple[str, str, str, str]:
    """As `below_prefix`, for a statement: keys from and below, paths from and below."""
    keys = (prefix, _after(prefix)) if len(prefix) <= HEAD_CHARS else (prefix[:HEAD_CHARS], prefix[:HEAD_CHARS] + _LAST)
    return (*keys, prefix, _after(prefix))


def relocated(source: str, target: str) -> dict[str, Any]:
    """New values of an entry at or below `source` when that becomes `target`: path, keys, name."""
    path = Concat(Value(target, _TEXT), Substr("path", len(source) + 1), output_field=_TEXT)
    is_top = Q(path_key=key_of(source))
    parent = Left(path, Length(path) - Length("name") - 1, output_field=_TEXT)
    return {
        "path": path,
        "path_key": _key(path),
        "parent_key": _top_or_else(is_top, key_of(parent_of(target)), _key(parent)),
        "name": _top_or_else(is_top, name_of(target), F("name")),
    }


_TEXT: "Final[CharField[Any, Any]]" = CharField()


def _key(path: Any) -> Case:
    hashed = Concat(Left(path, HEAD_CHARS), Value(_MARK, _TEXT), MD5(path), output_field=_TEXT)
    return Case(When(LessThanOrEqual(Length(path), MAX_KEY_CHARS), then=path), default=hashed, output_field=_TEXT)


def _top_or_else(is_top: Q, value: str, other: Combinable) -> Case:
    return Case(When(is_top, then=Value(value, _TEXT)), default=other, output_field=_TEXT)


def _after(prefix: str) -> str:
    """The first text after all that begin with the prefix."""
    return prefix[:-1] + chr(ord("/") + 1)
