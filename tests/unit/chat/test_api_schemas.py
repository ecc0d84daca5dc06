"""The API's schemas are its published contract, and show what the product's values hold: no field is forgotten."""

from dataclasses import fields
from typing import Any

import pytest
from ninja import Schema

from chat.agent.operations import StoredSession
from chat.conversations.services import InstanceSummary
from chat.http.api.schemas.common import InstanceOut, TurnOut
from chat.http.api.schemas.sessions import SessionOut
from chat.reads.transcripts import TurnView


@pytest.mark.parametrize(
    ("value", "schema"), [(StoredSession, SessionOut), (TurnView, TurnOut), (InstanceSummary, InstanceOut)]
)
def test_a_schema_has_exactly_the_fields_of_its_value(value: Any, schema: type[Schema]) -> None:
    assert set(schema.model_fields) == {field.name for field in fields(value)}
