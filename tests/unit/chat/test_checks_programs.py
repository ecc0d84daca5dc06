"""Values of `mcp_server`."""

from typing import Any

import pytest

from chat.agent.declared import unregister
from chat.checks import check_values
from chat.think import Think


def problems(value: Any) -> list[str]:
    class Helper(Think):
        mcp_server = value

    try:
        return [str(found.msg) for found in check_values() if "Helper" in str(found.msg)]
    finally:
        unregister(Helper)


@pytest.mark.parametrize("value", [True, False, ("read*", "!bash"), ["add"], ()])
def test_what_can_be_offered(value: Any) -> None:
    assert problems(value) == []


@pytest.mark.parametrize("value", ["read*", None, 1, [""], [7], ["!"]])
def test_what_cannot_be_offered_is_an_error(value: Any) -> None:
    """One text alone would be a list of its letters, and a star among them everything."""
    [problem] = problems(value)
    assert "mcp_server" in problem
