"""Random operations end alike on the database store and on the model."""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.budget import examples
from tests.workspace_model import SEQUENCES, agrees
from tools_app.workspace.services import open_for_scope

pytestmark = pytest.mark.django_db(transaction=True)
_scopes = itertools.count()


@given(calls=SEQUENCES)
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_the_database_agrees_with_the_model(calls: list[Any], settings: Any, transactional_db: None) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 20
    await agrees(open_for_scope(f"ins_{next(_scopes)}", None), calls)
