"""A model mends a failing test in a repository of 300 files, in fifty steps, in a browser.

It is watched, its worker is killed, it is steered and stopped. That is undone, it is asked again, its work is reviewed.
"""

import io
import json
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.files_panel import Files
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look

MODULES = 290
WRONG_AT = 137
GOOD = "def value():\n    return {number}\n"
TOTAL = '''"""The sum of all modules."""

import importlib

COUNT = {count}


def total():
    return sum(importlib.import_module(f"pkg.mod_{{number:03}}").value() for number in range(COUNT))
'''
TEST = """import unittest

from pkg.total import total


class TotalTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total(), {total})
"""
PATIENCE_MS = 120_000


def repository() -> dict[str, str]:
    """Files by path: one module gives the wrong number, so the test fails."""
    files = {f"pkg/mod_{number:03}.py": GOOD.format(number=number) for number in range(MODULES)}
    files[f"pkg/mod_{WRONG_AT}.py"] = GOOD.format(number=WRONG_AT + 1)
    files |= {"pkg/__init__.py": "", "tests/__init__.py": "", "pkg/total.py": TOTAL.format(count=MODULES)}
    files |= {"tests/test_total.py": TEST.format(total=sum(range(MODULES))), "README": "Sums.\n"}
    files |= {f"docs/page_{number}.md": f"# Page {number}\n" for number in range(5)}
    return files


def packed(folder: Path) -> Path:
    place = folder / "sums.tar.gz"
    with tarfile.open(place, "w:gz") as archive:
        for name, text in repository().items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return place


def steps(begin: int, *calls: tuple[str, dict[str, str]]) -> str:
    """A script: each call is a step of its own, with its number before it."""
    lines = [f"say: Step {at}.\ncall tool {name} {json.dumps(given)}" for at, (name, given) in enumerate(calls, begin)]
    return "\n".join(lines)


def reads(*numbers: int) -> list[tuple[str, dict[str, str]]]:
    return [("read", {"path": f"/pkg/mod_{number:03}.py"}) for number in numbers]


RUN = ("run_command", {"command": "python3 -B -m unittest -q"})
MODULE = f"/pkg/mod_{WRONG_AT}.py"
LOOKING = f"Find out why the test fails.\n{steps(1, RUN, *reads(*range(28)))}\nsay: Read them all."
STEERED = (
    "Change the test instead.\n"
    + steps(100, ("edit", {"path": "/tests/test_total.py", "old_string": "total(), ", "new_string": "1 + total(), "}))
    + "\nrate 4/s\nstream 400 words"
)
MENDING = (
    "Mend the module, not the test.\n"
    + steps(
        200,
        *reads(*range(100, 140)),
        ("grep", {"query": "return 138"}),
        ("edit", {"path": MODULE, "old_string": str(WRONG_AT + 1), "new_string": str(WRONG_AT)}),
        RUN,
    )
    + "\nsay: It passes."
)


@pytest.mark.long
def test_a_failing_test_in_a_repository_is_mended(tab: ChatPage, live_product: LiveProduct, tmp_path: Path) -> None:
    files = Files(tab, live_product, agent="repo-coder")
    panel = files.open()
    panel.locator("input[data-upload=zip]").set_input_files(packed(tmp_path))
    expect(panel).to_contain_text("300 files", timeout=PATIENCE_MS)
    tab.write(LOOKING)
    live = tab.page.locator(".message.is-live")
    expect(live).to_contain_text("Step 4.", timeout=PATIENCE_MS)  # watched while it works
    tab.page.get_by_text("What was read").click()
    tab.page.get_by_role("button", name="Allow for this conversation").click()  # the files came from elsewhere
    live_product.kill_workers()
    expect(live).to_contain_text("Step 12.", timeout=PATIENCE_MS)  # another worker goes on
    tab.input.fill(STEERED)
    tab.page.get_by_role("button", name="Other ways to send").click()
    tab.page.get_by_role("menuitem", name="Send now, into this answer").click()
    expect(tab.answers.last.locator(".steered")).to_contain_text("Change the test instead.", timeout=PATIENCE_MS)
    expect(live).to_contain_text("Step 100.", timeout=PATIENCE_MS)
    look(tab, "repository-steered")
    tab.stop_button.click()
    expect(tab.stop_button).to_be_hidden(timeout=PATIENCE_MS)
    before = repository()
    changed = str(files.read("/tests/test_total.py"))
    assert "1 + total()" in changed
    tab.input.fill("/undo")
    tab.input.press("Enter")
    tab.page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
    expect(tab.page.get_by_role("region", name="Undone")).to_be_visible()
    assert files.read("/tests/test_total.py") == before["tests/test_total.py"]
    tab.input.fill("")
    tab.write(MENDING)
    expect(tab.answers.last).to_contain_text("It passes.", timeout=2 * PATIENCE_MS)
    tab.rest()
    assert files.read(MODULE) == GOOD.format(number=WRONG_AT)
    work = live_product.call("work_of", files.key)
    assert (work["status"], work["exit_code"]) == ("completed", 0), "the test of the repository passes"
    assert work["steps"] >= 50
    tab.answers.last.get_by_role("button", name="Review").click()
    expect(panel.locator("summary")).to_have_text([f"{MODULE} changed"])
    expect(panel.locator(".is-gone")).to_have_text([f"-    return {WRONG_AT + 1}\n"])
    expect(panel.locator(".is-added")).to_have_text([f"+    return {WRONG_AT}\n"])
    look(tab, "repository-mended")
