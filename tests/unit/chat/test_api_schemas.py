"""The API's schemas are its published contract, and show what the product's values hold: no field is forgotten."""

from dataclasses import fields
from typing import Any

import pytest
from ninja import Schema

from chat.agent.values.turns import StoredSession
from chat.conversations.list import InstanceSummary
from chat.core.model.chosen_model import ChosenModel
from chat.http.api.schemas.common import InstanceOut, ModelChoice, TurnOut
from chat.http.api.schemas.models import InstanceDetailOut
from chat.http.api.schemas.sessions import SessionOut
from chat.reads.transcripts import TurnView


@pytest.mark.parametrize(
    ("value", "schema"), [(StoredSession, SessionOut), (TurnView, TurnOut), (InstanceSummary, InstanceOut)]
)
def test_a_schema_has_exactly_the_fields_of_its_value(value: Any, schema: type[Schema]) -> None:
    assert set(schema.model_fields) == {field.name for field in fields(value)}


def test_the_detail_of_a_conversation_adds_the_model_that_answers_next() -> None:
    assert set(InstanceDetailOut.model_fields) - set(InstanceOut.model_fields) == {"model", "model_notice"}


def test_a_choice_has_the_fields_of_its_value() -> None:
    assert list(ModelChoice.model_fields) == [field.name for field in fields(ChosenModel)]
