"""The memory that reading an archive takes does not depend on its size."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import archives

READ = """
import os, re, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings_test"
import django
django.setup()
from sessions_app.transfer.archives.container import Archive
from sessions_app.transfer.archives.reading import read_archive
from sessions_app.transfer.archives.lines import conversation_lines
def kilobytes(name):
    return int(re.search(rf"{name}:\\s+(\\d+)", open("/proc/self/status").read())[1])
open("/proc/self/clear_refs", "w").write("5")  # the peak begins here; after a fork it is the parent's
before = kilobytes("VmRSS")
with open(sys.argv[1], "rb") as file:
    count = sum(1 for found in read_archive(Archive(file)) for line in conversation_lines(found, None))
print(count, kilobytes("VmHWM") - before)
"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("megabytes", [8, pytest.param(300, marks=pytest.mark.long)])
def test_reading_takes_less_than_fifty_megabytes(megabytes: int, tmp_path: Path) -> None:
    path, count = tmp_path / "conversations.json", 0
    with path.open("wb") as file:
        while file.tell() < megabytes * 1024 * 1024:
            pieces = list(archives.long_gpt_list(20))
            for piece in pieces[:-1] if count == 0 else [b",", *pieces[1:-1]]:
                file.write(piece)
            count += 20
        file.write(b"]")
    done = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True)
    lines, kilobytes = map(int, done.stdout.split())
    assert lines == count * 42
    assert 0 < kilobytes < 50 * 1024, f"{kilobytes} KiB for {megabytes} MB"
