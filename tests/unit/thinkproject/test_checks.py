"""What `check --deploy` says of a production server."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import SystemCheckError

from thinkproject.checks import check_production


@pytest.mark.parametrize(("hosts", "is_told"), [(["*"], True), (["a.example", "*"], True), ([".a.example"], False)])
def test_a_server_for_every_host_name_gets_a_warning(settings: Any, hosts: list[str], is_told: bool) -> None:
    settings.ALLOWED_HOSTS = hosts
    assert ("thinkproject.W003" in {found.id for found in check_production()}) is is_told


def test_the_command_reports_and_can_fail(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    with pytest.raises(SystemCheckError, match="ALLOWED_HOSTS allows every host name"):
        call_command("check", deploy=True, fail_level="WARNING", stderr=StringIO())
