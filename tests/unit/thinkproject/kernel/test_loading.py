"""Code is loaded when it is needed, beside what goes on."""

import asyncio
import gc
from importlib import import_module
from pathlib import Path

import pytest

from thinkproject.kernel.loading import load, starting

SLOW = """
import time
from pathlib import Path

here = Path(__file__).parent
(here / "begun").touch()
give_up_at = time.monotonic() + 10
while not (here / "rest").exists():
    assert time.monotonic() < give_up_at, "it was not allowed to end"
    time.sleep(0.005)
VALUE = 1
"""


async def test_a_loop_goes_on_while_a_module_loads_and_all_who_need_it_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_load.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)

    async def needs_it() -> int:
        await load("slow_to_load")
        import slow_to_load  # type: ignore[import-not-found]  # made above

        return int(slow_to_load.VALUE)

    first = asyncio.create_task(needs_it())
    async with asyncio.timeout(10):
        while not (tmp_path / "begun").exists():  # noqa: ASYNC110 - another thread makes it
            await asyncio.sleep(0.005)
    second = asyncio.create_task(needs_it())
    await asyncio.sleep(0.02)
    assert not first.done()
    assert not second.done()
    (tmp_path / "rest").touch()
    assert await first == await second == 1


def test_collections_go_on_once_the_code_is_loaded_or_was_not() -> None:
    frozen = gc.get_freeze_count()
    try:
        with pytest.raises(ModuleNotFoundError), starting():
            import_module("no_such_module" if not gc.isenabled() else "json")
        assert gc.isenabled()
        assert gc.get_freeze_count() > frozen
    finally:
        gc.unfreeze()
