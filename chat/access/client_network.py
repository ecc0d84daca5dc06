"""The network that a request comes from, as limits count it. Needs no app that a project may lack."""

import ipaddress
from typing import Final

from django.conf import settings
from django.http import HttpRequest

UNKNOWN_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - of a peer on a unix socket; nothing listens on it
_V6_PREFIX: Final = 64  # one customer has at least so much


def client_network(request: HttpRequest) -> str:
    """The network whose attempts count together: an IPv4 address, or an IPv6 prefix.

    Behind a proxy that is trusted (`THINK_TRUST_PROXY`) it is the last address of `X-Forwarded-For`, which the proxy
    wrote itself; what stands before it may be the client's invention.
    """
    peer = str(request.META.get("REMOTE_ADDR", ""))
    if getattr(settings, "TRUSTS_PROXY", False):
        peer = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip() or peer
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return UNKNOWN_ADDRESS
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _V6_PREFIX), strict=False).network_address)
