"""Every block of `docs/howto/test-your-agent.md` runs, one after the other, and its tests pass."""

import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

PAGE = Path(__file__).parents[4] / "docs" / "howto" / "test-your-agent.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def namespace() -> dict[str, Any]:
    """The names of all blocks, executed as one module. The settings in one are those of a project that is not here."""
    names: dict[str, Any] = {"__name__": __name__, "DATABASES": {"default": {}}, "BASE_DIR": Path()}
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), names)
    return names


PAGE_NAMES = SimpleNamespace(**namespace())
TESTS = [name for name in vars(PAGE_NAMES) if name.startswith("test_")]


def test_every_block_is_there() -> None:
    assert len(TESTS) == 7
    assert PAGE_NAMES.DATABASES["default"]["TEST"]


LONG = "test_a_closed_order_stays_closed"
CASES = [pytest.param(name, marks=[pytest.mark.long] if name == LONG else []) for name in TESTS]


@pytest.mark.parametrize("name", CASES)
async def test_of_the_page(transactional_db: None, crash_everywhere: Any, name: str) -> None:
    function = getattr(PAGE_NAMES, name)
    PAGE_NAMES.REFUNDS.clear()
    given = {"crash_everywhere": crash_everywhere, "transactional_db": None}
    await function(**{each: given[each] for each in inspect.signature(function).parameters})
