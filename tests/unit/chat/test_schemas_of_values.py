"""Schemas that show a value class."""

from dataclasses import dataclass
from decimal import Decimal

import pytest
from ninja import Schema

from chat.http.api.schemas.from_values import shows


@dataclass(frozen=True)
class _Inner:
    name: str


@dataclass(frozen=True)
class _Value:
    id: str
    cost: Decimal
    inner: _Inner | None = None
    hidden: int = 0


class _InnerOut(Schema):
    name: str


@shows(_Value, without={"hidden"})
class _Out(Schema):
    """A value."""

    inner: _InnerOut | None
    more: int


def test_a_schema_has_the_fields_of_its_value_in_their_order() -> None:
    assert list(_Out.model_fields) == ["id", "cost", "inner", "more"]
    assert all(field.is_required() for field in _Out.model_fields.values())
    assert _Out.__doc__ == "A value."


def test_amounts_are_texts_and_declared_fields_have_their_own_schema() -> None:
    shown = _Out.model_validate({"id": "a", "cost": Decimal("0.5600"), "inner": _Inner("b"), "more": 1})
    assert shown.model_dump(mode="json") == {"id": "a", "cost": "0.56", "inner": {"name": "b"}, "more": 1}


def test_a_value_within_needs_a_schema_of_its_own() -> None:
    with pytest.raises(TypeError, match="inner needs a schema"):

        @shows(_Value)
        class _Bare(Schema):
            """Nothing is declared."""
