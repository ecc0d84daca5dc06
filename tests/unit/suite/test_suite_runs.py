"""Help for runs of the tests beside pytest."""

import os
import sys
from pathlib import Path

import pytest

from thinkproject.run.suite_runs import compiled_meanwhile

NOTES = "import sys; open('ran', 'w').write(' '.join(sys.argv[1:]))"


@pytest.mark.parametrize("is_new", [True, False])
def test_a_new_checkout_is_compiled_by_one_process_before_the_run(tmp_path: Path, *, is_new: bool) -> None:
    if not is_new:
        (tmp_path / "tests" / "db" / "__pycache__").mkdir(parents=True)
    with compiled_meanwhile([sys.executable, "-c", NOTES, "tests/unit"], tmp_path, dict(os.environ)):
        pass
    ran = tmp_path / "ran"
    assert (ran.read_text() if ran.exists() else "") == ("tests/unit -qq -p no:xdist --collect-only" if is_new else "")
