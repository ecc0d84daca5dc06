"""The price table of this installation: `THINK_PRICES` before the list prices that come with the product."""

import json
from collections.abc import Mapping
from functools import lru_cache

from chat.core.model.catalogue import PUBLISHED
from chat.core.model.prices import Price, read_prices
from chat.llm.conf import llm_settings
from thinkproject.kernel.jsonvalue import load


def price_table() -> Mapping[str, Price]:
    """Prices by model name. Errors: `ValueError` for a setting that `manage.py check` refuses."""
    return _table(json.dumps(llm_settings.prices, default=str))  # settings in Python may hold decimals


@lru_cache(maxsize=4)
def _table(text: str) -> Mapping[str, Price]:
    return {**PUBLISHED, **read_prices(load(text))}
