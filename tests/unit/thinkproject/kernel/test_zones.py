"""Time zones by name: what is one everywhere, and what was meant by a name that is none."""

import zoneinfo

import pytest

from thinkproject.kernel.zones import current_zone, enter_zone, in_zone, is_zone, near_zones


def test_each_name_of_the_database_is_a_zone() -> None:
    of_machines = {"localtime", "Factory", "posixrules"}
    assert all(is_zone(name) for name in zoneinfo.available_timezones() - of_machines)


@pytest.mark.parametrize(
    "name",
    [
        *("localtime", "Factory", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin", "", "Europe", "zone.tab"),
        *("../../etc/passwd", "/etc/localtime", "Mars/Base", "E" * 500, "Europe/Berlin\0", "CEST", "PST", "+02:00"),
    ],
)
def test_what_differs_from_machine_to_machine_or_names_nothing_is_none(name: str) -> None:
    assert not is_zone(name)
    with in_zone("Asia/Tokyo"), in_zone(name):
        assert current_zone() == ""


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Europe/Wien", "Europe/Vienna"),
        ("europe/vienna", "Europe/Vienna"),
        ("Vienna", "Europe/Vienna"),
        ("Austria", "Europe/Vienna"),
        ("Europ/Vienna", "Europe/Vienna"),
        ("Europe/München", "Europe/Berlin"),
        ("Europe/Zürich", "Europe/Zurich"),
        ("New York", "America/New_York"),
        ("America/New York", "America/New_York"),
        ("US/New_York", "America/New_York"),
        ("America/San_Francisco", "America/Los_Angeles"),
        ("Asia/Bejing", "Asia/Shanghai"),
        ("Asia/Delhi", "Asia/Kolkata"),
        ("America/São_Paulo", "America/Sao_Paulo"),
        ("CEST", "Europe/Berlin"),
        ("MESZ", "Europe/Berlin"),
        ("pst", "America/Los_Angeles"),
        ("EDT", "America/New_York"),
        ("JST", "Asia/Tokyo"),
        ("AEDT", "Australia/Sydney"),
        ("W. Europe Standard Time", "Europe/Berlin"),
        ("Eastern Time (US & Canada)", "America/New_York"),
        ("Pacific Standard Time", "America/Los_Angeles"),
        ("UTC+2", "Etc/GMT-2"),
        ("-05:00", "Etc/GMT+5"),
        ("GMT+0", "UTC"),
        ("Z", "UTC"),
        ("right/Europe/Paris", "Europe/Paris"),
        ("Europe/Berln", "Europe/Berlin"),
        ("Berln", "Europe/Berlin"),
        ("UTC+5:30", "Asia/Kolkata"),
        ("GMT+0545", "Asia/Kathmandu"),
        ("-03:30", "America/St_Johns"),
    ],
)
def test_a_near_name_is_proposed_first(name: str, meant: str) -> None:
    assert near_zones(name)[0] == meant


@pytest.mark.parametrize(
    "name", ["", "Mars/Phobos", "Mars/Base", "localtime", "local", "UTC+5:31", "UTC+99", "??", "/" * 70, "\0"]
)
def test_nothing_is_proposed_where_nothing_is_near(name: str) -> None:
    assert near_zones(name) == ()


def test_every_proposal_is_a_zone() -> None:
    for name in ["Berln", "Amerika/Chicago", "Asia/Tokio", "Africa/Kairo", "Pacific/Aukland", "cst", "ist"]:
        assert near_zones(name)
        assert all(map(is_zone, near_zones(name)))


def test_a_zone_is_current_within_its_block() -> None:
    with in_zone("Europe/Vienna"):
        assert current_zone() == "Europe/Vienna"
        with in_zone("localtime"):
            assert current_zone() == ""
        enter_zone("Asia/Tokyo")
        assert current_zone() == "Asia/Tokyo"
    assert current_zone() == ""
