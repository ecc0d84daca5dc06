"""Addresses that a fetch may connect to: those of the public internet, and what was allowed explicitly. Pure.

An IPv6 address may carry an IPv4 address that is where the packets go in the end. Every such form is unwrapped, and
the carried address decides.
"""

import ipaddress
from collections.abc import Sequence
from typing import Final, TypeAlias

from tools_app.errors import ToolDeclarationInvalid

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_CARRIERS: Final = tuple(
    ipaddress.IPv6Network(each)
    for each in (
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated (SIIT)
        "64:ff9b::/96",  # NAT64
        "::/96",  # IPv4-compatible
    )
)
"""Networks whose addresses carry an IPv4 address in their last four bytes."""

_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC: Final = tuple(
    ipaddress.ip_network(each)
    for each in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # relays of 6to4
        "3fff::/20",  # documentation, which not every Python knows
        "2001::/23",  # protocol assignments, Teredo among them
    )
)


def private_networks(texts: Sequence[str]) -> tuple[Network, ...]:
    """The networks of an `allow_private`. Errors: `ToolDeclarationInvalid` for a text that is none."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        raise ToolDeclarationInvalid(f"allow_private has networks as 10.0.0.0/8: {error}") from error


def is_allowed(address: Address, private: Sequence[Network] = ()) -> bool:
    """Whether a connection to this address may be made. `private`: networks that are allowed although not public."""
    if any(address in network for network in private):
        return True
    carried = carried_address(address)
    if carried is not None:
        return is_allowed(carried, private)
    if isinstance(address, ipaddress.IPv6Address) and address not in _UNICAST:
        return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def carried_address(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address carries: mapped, translated, NAT64, compatible, 6to4 or ISATAP."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if any(address in network for network in _CARRIERS):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def parse_address(text: str) -> Address | None:
    """An address in its one usual spelling; `None` for what is none, and for one with a zone."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        return None
    return address
