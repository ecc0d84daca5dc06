"""Addresses that a fetch may connect to, and those that it may not."""

import ipaddress

import pytest

from tools_app.fetching.addresses import is_allowed, parse_address

REFUSED = """
127.0.0.1 127.255.255.255 0.0.0.0 10.0.0.1 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1 192.0.0.1 192.0.2.1
198.18.0.1 198.51.100.1 203.0.113.1 192.88.99.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255
:: ::1 fe80::1 fec0::1 fc00::1 fd00:ec2::254 ff02::1 ff0e::1 100::1 2001:db8::1 3fff::1 2001::1 2001:10::1
5f00::1 4000::1
::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:169.254.169.254 ::ffff:0:10.0.0.1 ::127.0.0.1 ::a00:1
64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b:1::1 2002:7f00:1:: 2002:a9fe:a9fe::1 2002:a00:1::
2606:4700::5efe:7f00:1 2606:4700::200:5efe:a00:1 2606:4700:0:0:0:5efe:169.254.169.254
2001:0:4136:e378:8000:63bf:3fff:fdd2
"""
ALLOWED = """
1.1.1.1 8.8.8.8 93.184.216.34 2606:4700:4700::1111 2a00:1450:4001:80b::200e 64:ff9b::808:808 ::ffff:8.8.8.8
2002:808:808::1
"""


@pytest.mark.parametrize("text", REFUSED.split())
def test_addresses_that_are_not_public_are_refused(text: str) -> None:
    assert not is_allowed(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ALLOWED.split())
def test_public_addresses_are_allowed(text: str) -> None:
    assert is_allowed(ipaddress.ip_address(text))


def test_a_network_may_be_allowed_and_nothing_beside_it() -> None:
    networks = [ipaddress.ip_network("10.1.0.0/16"), ipaddress.ip_network("::1/128")]
    assert is_allowed(ipaddress.ip_address("10.1.2.3"), networks)
    assert is_allowed(ipaddress.ip_address("::ffff:10.1.2.3"), networks)
    assert is_allowed(ipaddress.ip_address("::1"), networks)
    assert not is_allowed(ipaddress.ip_address("10.2.0.1"), networks)
    assert not is_allowed(ipaddress.ip_address("127.0.0.1"), networks)


@pytest.mark.parametrize(
    "text", ["127.1", "0x7f.0.0.1", "2130706433", "010.0.0.1", "fe80::1%eth0", "1.2.3.4.", "", "a"]
)
def test_odd_spellings_are_no_addresses(text: str) -> None:
    assert parse_address(text) is None
