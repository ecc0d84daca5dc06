"""What `manage.py check` says about names, configurations and prices."""

from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from chat.agent import declared
from chat.checks import check_configs, check_names, check_prices
from chat.llm.prices import price_table
from chat.think import Agent


class Fitting(BaseModel):
    """A configuration."""


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, []),
        ({"config_model": Fitting, "config_access": "read"}, []),
        ({"config_model": dict}, ["config_model must be a pydantic class"]),
        ({"config_model": Fitting()}, ["config_model must be a pydantic class"]),
        ({"config_access": "all"}, ["config_access must be one of 'private', 'read', 'write', not 'all'"]),
    ],
)
def test_values_that_cannot_be_served(values: dict[str, Any], said: list[str]) -> None:
    made = type("Configurable", (Agent,), values)
    try:
        found = [str(message.msg) for message in check_configs() if "Configurable" in str(message.msg)]
    finally:
        declared.unregister(made)
    assert len(found) == len(said)
    assert all(text in message for text, message in zip(said, found, strict=True))


@pytest.mark.parametrize("name", ["Sub", "_", "A" + "a" * 200])
def test_a_class_that_no_address_leads_to_is_an_error(name: str) -> None:
    before = check_names()  # other tests' classes
    made = type(name, (Agent,), {})
    try:
        [message] = [each for each in check_names() if each not in before]
    finally:
        declared.unregister(made)
    assert (message.id, f".{name} is served at /agents/" in message.msg) == ("chat.E002", True)
    assert check_names() == before


def test_prices_that_cannot_be_read(settings: Any) -> None:
    assert check_prices() == []
    settings.THINK_PRICES = {"acme/m": {"input": "free", "output": 1}}
    [message] = check_prices()
    assert (message.id, "acme/m input" in message.msg) == ("chat.E005", True)


def test_settings_in_python_may_hold_decimals(settings: Any) -> None:
    settings.THINK_PRICES = {"acme/m": {"input": Decimal("0.25"), "output": 1.5}}
    price = price_table()["acme/m"]
    assert (price.input, price.output) == (Decimal("0.25"), Decimal("1.5"))
