"""Settings of workspaces and code that no installation can use are reported, and the defaults are not."""

from typing import Any

import pytest

from tools_app.checks import check_browser, check_extensions, check_limits, check_mcp, check_sandbox, check_workspaces


def ids(settings: Any, **values: object) -> list[str | None]:
    for name, value in values.items():
        setattr(settings, name, value)
    checks = (check_workspaces, check_limits, check_sandbox, check_browser, check_extensions, check_mcp)
    return [each.id for check in checks for each in check()]


def test_the_defaults_fit_each_other(settings: Any) -> None:
    assert ids(settings) == []


def test_a_file_that_has_no_room_is_a_warning(settings: Any) -> None:
    assert ids(settings, THINK_WORKSPACE_QUOTA_BYTES=1_000) == ["think_tools.W001"]
    for value in (0, None):  # no limit; what is no number is an error of its own
        assert ids(settings, THINK_WORKSPACE_QUOTA_BYTES=value) == []


@pytest.mark.parametrize("name", ["THINK_SANDBOX", "THINK_PROCESSES", "THINK_BROWSER"])
@pytest.mark.parametrize("value", [{"runs": 0}, {"seconds": "long"}, {"memory_bytes": 1.5}, {"run": 1}, {"runs": True}])
def test_limits_under_which_nothing_can_run_are_errors(settings: Any, name: str, value: object) -> None:
    assert ids(settings, **{name: value}) == ["think_tools.E002"]


@pytest.mark.parametrize("value", ["zod", "zod@4", "zod@^4.1.0", {"zod": 4}, ["zod@4.1.12"], "zod@4.1.12, zod@4.1.13"])
def test_packages_without_one_exact_version_are_an_error(settings: Any, value: object) -> None:
    assert ids(settings, THINK_SANDBOX_PACKAGES=value) == ["think_tools.E003"]


def test_walls_that_are_none_are_an_error(settings: Any) -> None:
    assert ids(settings, THINK_SANDBOX_MAY_LACK="users") == ["think_tools.E006"]
    assert ids(settings, THINK_SANDBOX_MAY_LACK="network, rights") == []


@pytest.mark.parametrize("value", [["10.0.0.0/33"], ["example.com"], ["10.0.0.1/8"], [8], 8])
def test_a_private_network_that_is_none_is_an_error(settings: Any, value: object) -> None:
    assert ids(settings, THINK_MCP_PRIVATE_NETWORKS=value) == ["think_tools.E020"]
    assert ids(settings, THINK_MCP_PRIVATE_NETWORKS=["10.0.0.0/8", "fd00::/8"]) == []


def test_limits_that_never_count_are_warnings(settings: Any) -> None:
    assert ids(settings, THINK_SANDBOX={"runs": 1, "cpu_seconds": 100}) == ["think_tools.W002", "think_tools.W002"]
    settings.THINK_SANDBOX = {}
    assert ids(settings, THINK_BROWSER={"runs_per_user": 50}) == ["think_tools.W002"]


def test_a_browser_that_is_no_program_is_an_error(settings: Any) -> None:
    assert ids(settings, THINK_BROWSER_PATH="/nowhere/chromium") == ["think_tools.E052"]


def test_browsers_without_walls_are_a_warning(settings: Any) -> None:
    assert ids(settings, THINK_BROWSER_WITHOUT_WALLS=True) == ["think_tools.W052"]


def test_what_extensions_cannot_use_is_an_error(settings: Any) -> None:
    assert ids(settings, THINK_EXTENSIONS_PRIVATE_NETWORKS=["10.0.0.0/8", "intranet", "10.0.0.1/8"]) == [
        "think_tools.E004",
        "think_tools.E004",
    ]


def test_every_host_and_a_private_network_together_are_a_warning(settings: Any) -> None:
    networks = ["10.0.0.0/8"]
    assert ids(settings, THINK_EXTENSIONS_PRIVATE_NETWORKS=networks) == []
    assert ids(settings, THINK_EXTENSIONS_ANY_HOST=True) == ["think_tools.W003"]
