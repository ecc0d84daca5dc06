"""A person reviews what an answer changed: each hunk is kept or taken back; conflicts are shown; a patch is saved."""

import json
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.files_panel import Files
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.git_commands import git

BEFORE = "".join(f"line {number}\n" for number in range(1, 31))
AFTER = BEFORE.replace("line 3\n", "line three\n").replace("line 28\n", "line 28\nline 28½\n")
COMMAND = (
    r"printf '\033[1;31mFAILED\033[0m test_sum\n'; "
    "for at in $(seq 400); do echo line $at of a long output; done; echo oops >&2; exit 1"
)


def clone(folder: Path) -> Path:
    """A repository with changes of each kind since its commit."""
    place = folder / "clone"
    (place / "src").mkdir(parents=True)
    for name in ("sum.py", "gone.py", "staged.py", "both.py"):
        (place / "src" / name).write_text(f"# {name}\n{BEFORE}")
    (place / "src" / "old name.py").write_text(BEFORE * 2)
    (place / "logo.bin").write_bytes(bytes(range(256)))
    git(place, "init", "-q", "-b", "feature/sums")
    git(place, "add", ".")
    git(place, "commit", "-qm", "Begin")
    for name in ("sum.py", "staged.py", "both.py"):
        (place / "src" / name).write_text(f"# {name}\n{AFTER}")
    (place / "src" / "gone.py").unlink()
    git(place, "mv", "src/old name.py", "src/a rather long name of a file that does not fit into the panel.py")
    git(place, "add", "src/staged.py", "src/both.py")
    (place / "src" / "both.py").write_text(f"# both.py\n{AFTER}more\n")
    (place / "logo.bin").write_bytes(bytes(256))
    (place / "notes.md").write_text("mine\n")
    return place


def test_what_differs_from_the_last_commit_is_shown_and_exported(
    tab: ChatPage, live_product: LiveProduct, tmp_path: Path
) -> None:
    files, place = Files(tab, live_product), clone(tmp_path)
    panel = files.open()
    panel.get_by_role("button", name="Changes").click()
    expect(panel.get_by_role("heading", name="Changed files")).to_be_visible()
    expect(panel.get_by_role("radio", name="Repository")).to_have_count(0)  # there is none
    live_product.call("work_in", files.key, str(place))
    files.open()
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url) if "/repository" in request.url else None)
    panel.get_by_role("button", name="Changes").click()
    expect(panel.get_by_role("radio", name="Answers")).to_be_checked()
    assert not asked, "git works only for those who look"
    panel.get_by_role("radio", name="Repository").check(force=True)
    expect(panel.locator("dd")).to_have_text(["feature/sums", git(place, "rev-parse", "HEAD")[:10]])
    expect(panel.locator("summary")).to_have_text(
        [
            "/logo.bin changed",
            "/notes.md createduntracked",
            "/src/a rather long name of a file that does not fit into the panel.py moved from /src/old name.pystaged",
            "/src/both.py changedpartly staged",
            "/src/gone.py deleted",
            "/src/staged.py changedstaged",
            "/src/sum.py changed",
        ]
    )
    assert len(asked) == 1, "a difference is read when it is opened"
    changed = panel.locator(".changed-file", has_text="/src/sum.py")
    changed.locator("summary").click()
    expect(changed.locator(".is-added")).to_have_text(["+line three\n", "+line 28½\n"])
    panel.locator("summary", has_text="/logo.bin").click()
    expect(panel.get_by_text("This change can’t be shown as text.")).to_be_visible()
    check(tab.page)
    look(tab, "review-repository")
    with tab.page.expect_download() as download:
        panel.get_by_role("link", name="Export patch").click()
    patch = Path(download.value.path()).read_text()
    assert all(each in patch for each in ("+line 28½", "+mine", "rename from src/old name.py", "GIT binary patch"))
    (place / "src" / "sum.py").write_text("# by another program\n")
    panel.get_by_role("button", name="Read again").click()
    expect(changed.locator(".is-added")).to_have_text(["+# by another program\n"])
    changed.get_by_role("button", name="Show /src/sum.py").click()
    expect(panel.get_by_role("heading", name="sum.py")).to_be_visible()
    panel.get_by_role("button", name="All files").click()
    expect(panel.locator("dd").first).to_have_text("feature/sums")  # back where one was
    (place / ".git" / "HEAD").write_text("broken\n")
    panel.get_by_role("button", name="Read again").click()
    expect(panel.get_by_role("alert")).to_contain_text("names no commit")
    look(tab, "review-repository-broken")
    (place / ".git" / "HEAD").write_text("ref: refs/heads/feature/sums\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "All of it")
    panel.get_by_role("button", name="Try again").click()
    expect(panel.get_by_text("Nothing differs from the last commit.")).to_be_visible()
    expect(panel.get_by_role("link", name="Export patch")).to_have_count(0)
    look(tab, "review-repository-clean")
    tab.errors.clear()  # of the network: that the repository was broken


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
    with tab.page.expect_response(lambda reply: reply.request.method == "GET" and "/review" in reply.url):
        panel.get_by_role("button", name="Undo /new.txt").click()  # a moment later the page reads all of it again
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
