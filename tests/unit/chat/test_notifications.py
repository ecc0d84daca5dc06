"""Notifications in a process that was forked from one that had sent some."""

import subprocess
import sys

SCRIPT = """
import asyncio, os
from chat.instances import notifications

def rings() -> bool:
    work = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "published"), notifications._loop())
    return work.result(timeout=20) == "published"

assert rings()
child = os.fork()
if not child:
    os._exit(0 if rings() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert rings()
"""


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
