"""An agent does work: it writes a script, runs it, reads what is wrong, mends it, and people see all of it."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage

BROKEN = "total=0\nfor n in 1 2 3; do total=$((total + n)); done\necho total: $totl | grep 6 || exit 4\n"
SCRIPT = "\n".join(
    [
        "marker: work",
        f"call tool write {json.dumps({'path': '/sum.sh', 'content': BROKEN})}",
        'call tool bash {"script": "bash /sum.sh"}',
        'call tool edit {"path": "/sum.sh", "old_string": "$totl", "new_string": "$total"}',
        'call tool bash {"script": "bash /sum.sh | tee /result.txt"}',
        "say: Mended.",
    ]
)


@pytest.mark.smoke
def test_a_script_is_written_run_and_mended(tab: ChatPage) -> None:
    # Calls that stand together are parallel: words between them make them follow each other.
    tab.ask(SCRIPT.replace("\ncall tool", "\nsay: Next.\ncall tool"))
    tab.rest()
    calls = tab.answers.last.locator(".tool-call")
    expect(calls).to_have_count(4)
    page = tab.page
    for index in range(4):
        calls.nth(index).locator("summary").first.click()
    expect(calls.nth(1)).to_contain_text("4")  # the exit code of the first run
    expect(calls.nth(2)).to_contain_text("$total")
    expect(calls.nth(3)).to_contain_text("total: 6")
    expect(page.locator(".changed-line")).to_contain_text("2 files changed")
    page.get_by_role("button", name="Review").click()
    panel = page.get_by_role("tabpanel", name="Files")
    expect(panel).to_contain_text("sum.sh")
    expect(panel).to_contain_text("result.txt")
