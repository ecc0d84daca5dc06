"""The address of a conversation's socket."""

from tests.acceptance.product import Product


def socket_url(product: Product, name: str, *, agent: str = "assistant", web: int = 0) -> str:
    token = product.token("alice")
    return product.url(f"/agents/{agent}/{name}?token={token}", web=web).replace("http", "ws", 1)
