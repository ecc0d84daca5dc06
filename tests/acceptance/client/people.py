"""Clients of a product under test."""

from typing import Any

from chat.client import ChatClient, Options
from tests.acceptance.product import Product


def client(product: Product, name: str, *, agent: str = "assistant", web: int = 0, **options: Any) -> ChatClient:
    """Alice's client of a conversation, through the proxy when there is one."""
    url = product.proxy.url if product.proxy is not None else product.url("", web=web)
    return ChatClient(url, agent=agent, name=name, token=product.token("alice"), options=Options(**options))
