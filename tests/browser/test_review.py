"""A person reviews what an answer changed: each hunk is kept or taken back; conflicts are shown; a patch is saved."""

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.files_panel import Files
from tests.browser.looks import look

BEFORE = "".join(f"line {number}\n" for number in range(1, 31))
AFTER = BEFORE.replace("line 3\n", "line three\n").replace("line 28\n", "line 28\nline 28½\n")
COMMAND = (
    r"printf '\033[1;31mFAILED\033[0m test_sum\n'; "
    "for at in $(seq 400); do echo line $at of a long output; done; echo oops >&2; exit 1"
)


def test_an_answer_is_reviewed_hunk_by_hunk(files: Files) -> None:
    tab = files.tab
    files.put("/sum.py", BEFORE)
    files.put("/logo.bin", b"\0\1")
    tab.open(f"/c/{files.key}")
    writes = [{"path": "/sum.py", "content": AFTER}, {"path": "/new.txt", "content": "new"}]
    writes.append({"path": "/logo.bin", "content": "text\n"})
    calls = [f"call tool write {json.dumps(each)}" for each in writes]
    tab.ask("\n".join([*calls, f"call tool bash {json.dumps({'script': COMMAND})}", "say: Done."]))
    tab.answers.last.locator(".tool-call summary").last.click()
    output = tab.answers.last.locator(".terminal").get_by_role("group", name="Output")
    expect(output).to_contain_text("FAILED test_sum")
    expect(output).not_to_contain_text("[1;31m")  # no colours, and what is long scrolls in a place of its own
    assert output.evaluate("(place) => place.clientHeight < 500 && place.scrollHeight > 2000")
    look(tab, "review-terminal")
    tab.answers.last.get_by_role("button", name="Review").click()
    panel = files.panel
    plan = panel.locator(".changed-file", has_text="/sum.py")
    expect(panel.locator("summary")).to_have_text(["/logo.bin changed", "/new.txt created", "/sum.py changed"])
    expect(plan.locator(".hunk")).to_have_count(2)
    check(tab.page)
    look(tab, "review")
    plan.get_by_role("button", name="Keep /sum.py @@ -1,6 +1,6 @@").click()
    expect(plan.locator(".hunk.is-kept")).to_have_count(1)
    plan.get_by_role("button", name="Undo /sum.py @@ -26,5 +26,6 @@").click()
    expect(plan.locator(".hunk")).to_have_count(1)
    expect(panel.get_by_role("status")).to_have_text("1 of 3 files kept")
    assert files.read("/sum.py") == BEFORE.replace("line 3\n", "line three\n")
    bar = tab.page.get_by_role("region", name="Undone")
    bar.get_by_role("button", name="Redo").click()
    expect(plan.locator(".hunk")).to_have_count(2)
    assert files.read("/sum.py") == AFTER
    panel.get_by_role("button", name="Undo /new.txt").click()
    expect(panel.locator(".changed-file")).to_have_count(2)
    assert files.read("/new.txt") is None
    files.put("/sum.py", "mine\n")  # while the review is shown
    plan.get_by_role("button", name="Undo /sum.py @@ -26,5 +26,6 @@").click()
    expect(tab.page.get_by_text("/sum.py has changed since it was read.")).to_be_visible()
    expect(plan.locator(".review-standing")).to_contain_text("changed again since")
    assert files.read("/sum.py") == "mine\n"
    check(tab.page)
    look(tab, "review-conflict")
    panel.get_by_role("button", name="All files").click()
    panel.get_by_role("button", name="Changes").click()  # of the whole conversation
    expect(panel.locator(".changed-file")).to_have_count(2)
    with tab.page.expect_download() as download:
        panel.get_by_role("link", name="Save as patch").click()
    patch = Path(download.value.path()).read_text()
    assert "+line 28½" in patch
    assert "GIT binary patch" in patch
