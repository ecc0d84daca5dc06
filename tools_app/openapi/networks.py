"""Networks that a developer allows although they are not public."""

import ipaddress
from collections.abc import Sequence

from tools_app.errors import ToolDeclarationInvalid
from tools_app.fetching.addresses import Network


def networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """Read them. Errors: `ToolDeclarationInvalid` for one that is none."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise ToolDeclarationInvalid(f"allow_private has networks as 10.0.0.0/8: {error}") from error
