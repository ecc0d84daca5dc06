"""Code is loaded when it is needed, beside what goes on."""

import asyncio
import gc
from importlib import import_module
from pathlib import Path

import pytest

from thinkproject.kernel.loading import load, starting


async def test_a_loop_goes_on_while_a_module_loads_and_all_who_need_it_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_load.py").write_text("import time\ntime.sleep(0.3)\nVALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    async def needs_it() -> int:
        await load("slow_to_load")
        import slow_to_load  # type: ignore[import-not-found]  # made above

        return int(slow_to_load.VALUE)

    first = asyncio.create_task(needs_it())
    await asyncio.sleep(0.1)  # the loop is free, and the module half loaded
    assert not first.done()
    began = asyncio.get_running_loop().time()
    second = asyncio.create_task(needs_it())
    await asyncio.sleep(0.02)
    assert asyncio.get_running_loop().time() - began < 0.15
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
