"""Calls of known tools as people see them: diffs, files, tables, terminals, code, pages; inert, whatever is in them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.conftest import DESKTOP, PHONE
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.parts import PIXEL, said, text

OpenTab = Callable[..., ChatPage]
PYTHON = '"""A module."""\n\n\ndef double(value: int) -> int:\n    return value * 2\n'
OVERRIDE = "\u202e"


def call(name: str, given: dict[str, Any], output: Any = None, **more: Any) -> dict[str, Any]:
    """A settled call, as it is stored."""
    part = {"type": f"tool-{name}", "toolCallId": f"{name}-{len(str(given))}", "toolName": name, "input": given}
    return {**part, "state": "output-available", "output": output, **more}


def details(**given: Any) -> dict[str, Any]:
    return {"toolMetadata": {"think": given}}


def numbered(content: str, first: int = 1) -> str:
    return "\n".join(f"{first + at}\t{line}" for at, line in enumerate(content.split("\n")))


EDIT = call(
    "edit",
    {"path": "/src/double.py", "old_string": "    return value + value", "new_string": "    return value * 2\n"},
    {"path": "/src/double.py", "replaced": True, "lines": 5},
)
WRITE = call("write", {"path": "/src/double.py", "content": PYTHON}, {"path": "/src/double.py", "lines": 5})
READ = call("read", {"path": "/src/double.py"}, {"content": numbered(PYTHON, 11), "totalLines": 240})
LIST = call("list", {"path": "/src"}, {"path": "/src", "count": 3, "entries": ["lib/", "a.py (1.2 KB)", "b.py (7 B)"]})
FIND = call("find", {"pattern": "/**/*.py"}, {"pattern": "/**/*.py", "count": 1, "files": ["/src/double.py"]})
GREP = call(
    "grep",
    {"query": "val.e"},
    {
        "totalMatches": 3,
        "truncated": True,
        "matches": [
            "/src/double.py:4: def double(value: int) -> int:",
            "/src/double.py:5:     return value * 2",
            {"file": "/b.txt", "line": 2, "context": "  1\tbefore\n> 2\tno VALUE\n  3\tafter"},
        ],
    },
)
BASH = call(
    "bash",
    {"script": "make test\necho done", "cwd": "/src"},
    {
        "stdout": "\x1b[32mok\x1b[0m 12 passed\n10%\r100%\ndone\n",
        "stderr": "warning: slow\n",
        "exitCode": 2,
        "changedFiles": {"created": ["/src/out.txt"], "updated": [], "deleted": ["/old.txt"]},
    },
)
EXECUTE = call(
    "execute",
    {"code": "async () => {\n  const text = await state.readFile({ path: '/a' });\n  return text.length;\n}"},
    {
        "value": {"length": 12},
        "console": [{"level": "log", "text": "reading"}, {"level": "warn", "text": "slow"}],
        "calls": [{"name": "state.readFile", "ok": True, "ms": 12}, {"name": "tools.pay", "ok": False, "ms": 3}],
    },
)
FETCH = call(
    "fetch_page",
    {"url": "https://example.com/a"},
    {"url": "https://example.com/b", "status": 200, "contentType": "text/markdown", "content": "# Example\n\nHello."},
)
REMOVE = call("delete", {"path": "/old.txt"}, {"deleted": "/old.txt"})
SHOT = {"url": PIXEL, "mediaType": "image/png", "filename": "page.png"}
BROWSE = call(
    "browser_markdown",
    {"url": "https://example.com/shop"},
    {
        "url": "https://example.com/shop/",
        "title": "Shop",
        "status": 200,
        "markdown": "# Shop\n\nThree things.",
        "truncated": False,
        "refused": ["http://169.254.169.254/latest/meta-data/"],
    },
    title="Read a page in a browser",
)
DRIVE = call(
    "browser_execute",
    {"code": "async () => {\n  await cdp.send({ method: 'Page.navigate', params: { url } });\n}"},
    {
        "value": {"title": "Shop"},
        "console": [{"level": "log", "text": "there"}],
        "steps": [
            {"method": "Target.createTarget", "url": "about:blank", "ok": True, "ms": 40},
            {"method": "Page.navigate", "url": "https://example.com/shop?" + "q" * 200, "ok": True, "ms": 310},
            {"method": "Browser.close", "ok": False, "ms": 0, "error": "not allowed"},
        ],
        "pages": ["https://example.com/shop/"],
    },
    title="Drive a browser",
    **details(attachments=[SHOT]),
)
ALL = (EDIT, WRITE, READ, LIST, FIND, GREP, BASH, EXECUTE, FETCH, REMOVE, BROWSE, DRIVE)


def seeded(product: LiveProduct, *parts: dict[str, Any]) -> str:
    spaced = [piece for part in parts for piece in (part, text("Then."))]  # five in a row are one line
    return f"/c/{product.seed('Cards', [said('u', 'user', text('Go')), said('a', 'assistant', *spaced)])}"


def opened(tab: ChatPage, index: int = 0) -> Locator:
    """Open a card; returns what is inside. By the keyboard: what is below a pointer may move while cards open."""
    card = tab.page.locator("details.tool").nth(index)
    card.locator("summary").press("Enter")
    body = card.locator(".fold-body")
    expect(body.locator(".tool-name")).to_be_visible()
    return body


def test_an_edit_is_a_diff_and_a_writing_is_its_content(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, EDIT, WRITE))
    card = tab.page.locator("details.tool").first
    expect(card.locator("summary")).to_contain_text("Edit a file")
    expect(card.locator("summary")).to_contain_text("/src/double.py")
    diff = opened(tab).get_by_role("group", name="Changes to /src/double.py")
    expect(diff.locator(".is-gone")).to_have_text(["-    return value + value\n"])
    expect(diff.locator(".is-added")).to_have_text(["+    return value * 2\n"])
    content = opened(tab, 1).get_by_role("group", name="Content of /src/double.py")
    expect(content.locator(".hljs-keyword").first).to_have_text("def")
    assert content.locator(".lines-text").inner_text() == PYTHON.rstrip("\n")


def test_a_file_that_was_read_has_the_numbers_of_its_lines(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, READ))
    body = opened(tab)
    expect(body).to_contain_text("240 lines in all")
    assert body.locator(".lines-numbers").inner_text().split() == ["11", "12", "13", "14", "15"]
    assert body.locator(".lines-text").inner_text().startswith('"""A module."""')


def test_listings_are_tables_and_matches_are_grouped_and_marked(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, LIST, FIND, GREP))
    listing = opened(tab)
    expect(listing.get_by_role("row")).to_have_count(4)
    expect(listing.get_by_role("row").nth(2)).to_contain_text("1.2 KB")
    expect(opened(tab, 1).get_by_role("cell").first).to_have_text("/src/double.py")
    matches = opened(tab, 2)
    expect(matches).to_contain_text("3 matches in 2 files")
    expect(matches.locator(".matched")).to_have_count(2)
    expect(matches.locator("mark")).to_have_text(["value", "value", "VALUE"])
    expect(matches.locator(".argument")).to_have_text(["TruncatedYes"])


@pytest.mark.smoke
def test_a_terminal_shows_script_output_exit_code_and_files(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, BASH))
    body = opened(tab)
    assert body.get_by_role("group", name="Output").inner_text() == "ok 12 passed\n100%\ndone"
    expect(body.get_by_role("group", name="Script")).to_contain_text("make test")
    expect(body.get_by_role("group", name="Errors")).to_have_text("warning: slow")
    expect(body).to_contain_text("Exit code 2")
    expect(body.get_by_role("list", name="Changed files").get_by_role("listitem")).to_have_text(
        ["/src/out.txtcreated", "/old.txtdeleted"]
    )


def test_code_shows_its_calls_its_console_and_its_value(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, EXECUTE))
    body = opened(tab)
    expect(body.locator(".hljs-keyword").first).to_have_text("const")
    expect(body.locator(".inner-calls li")).to_have_text(["state.readFileSucceeded12 ms", "tools.payFailed3 ms"])
    expect(body.get_by_role("group", name="Console")).to_have_text("reading\n[warn] slow")
    expect(body.locator(".value")).to_contain_text('"length": 12')


def test_a_page_that_was_fetched_has_its_address_and_status(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, FETCH))
    body = opened(tab)
    expect(body.get_by_role("link")).to_have_attribute("href", "https://example.com/b")
    expect(body.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(body).to_contain_text("Status 200")
    expect(body.get_by_role("group")).to_contain_text("# Example")


def test_a_page_in_a_browser_shows_its_address_and_what_was_not_let_through(
    tab: ChatPage, live_product: LiveProduct
) -> None:
    tab.open(seeded(live_product, BROWSE))
    expect(tab.page.locator("details.tool summary")).to_contain_text("Read a page in a browser")
    body = opened(tab)
    expect(body.get_by_role("link").first).to_have_attribute("href", "https://example.com/shop/")
    expect(body).to_contain_text("Status 200")
    expect(body.get_by_role("group")).to_contain_text("Three things.")
    expect(body.get_by_role("heading", name="Addresses that were not let through")).to_be_visible()
    expect(body).to_contain_text("http://169.254.169.254/latest/meta-data/")
    expect(body.get_by_role("link")).to_have_count(1)  # a refused address is no link


@pytest.mark.smoke
def test_code_that_drove_a_browser_shows_its_steps_and_its_pictures(tab: ChatPage, live_product: LiveProduct) -> None:
    links = call("browser_links", {"url": "x"}, {"links": [{"text": "Evil", "url": "javascript:alert(1)"}]})
    tab.open(seeded(live_product, DRIVE, links))
    body = opened(tab)
    expect(body.get_by_role("heading", name="3 steps in the browser")).to_be_visible()
    expect(body.locator(".inner-calls code")).to_have_text(["Target.createTarget", "Page.navigate", "Browser.close"])
    expect(body.locator(".inner-calls .is-failed")).to_contain_text("Browser.close")
    expect(body.get_by_role("img", name="Image: page.png")).to_be_visible()
    expect(body.get_by_role("link", name="https://example.com/shop/")).to_be_visible()
    listed = opened(tab, 1)
    expect(listed).to_contain_text("javascript:alert(1)")
    expect(listed.get_by_role("link")).to_have_count(0)


def test_errors_that_are_values_are_errors(tab: ChatPage, live_product: LiveProduct) -> None:
    failed = call("read", {"path": "/nothing"}, {"error": "File not found: /nothing"})
    tab.open(seeded(live_product, failed))
    expect(opened(tab).locator(".is-error")).to_have_text("File not found: /nothing")


def test_files_of_a_call_are_thumbnails_and_what_was_not_kept_is_named(
    tab: ChatPage, live_product: LiveProduct
) -> None:
    files = [
        {"url": PIXEL, "mediaType": "image/png", "filename": "shot.png"},
        {"filename": "big.bin", "error": "no room"},
    ]
    tab.open(seeded(live_product, call("read", {"path": "/shot.png"}, {"kind": "image"}, **details(attachments=files))))
    body = opened(tab)
    expect(body.get_by_role("img", name="Image: shot.png")).to_be_visible()
    expect(body).to_contain_text("big.bin wasn’t kept.")


def test_a_result_that_was_cut_offers_the_whole(tab: ChatPage, live_product: LiveProduct) -> None:
    address = tab.page.evaluate(
        """async () => {
            const form = new FormData();
            const lines = Array.from({ length: 30_000 }, (_, at) => `line ${at + 1}`).join("\\n");
            form.append("file", new File([lines], "whole.txt"));
            const token = document.querySelector('meta[name="csrf-token"]').content;
            const headers = { "x-csrftoken": token };
            return (await (await fetch("/api/v1/files", { method: "POST", body: form, headers })).json()).url;
        }"""
    )
    whole = {"id": "f", "url": address, "bytes": 320_000, "lines": 30_000, "next": 3}
    tab.open(seeded(live_product, call("report", {"of": "all"}, "line 1\nline 2", **details(whole=whole))))
    body = opened(tab)
    expect(body).to_contain_text("The result was cut. The whole has 30,000 lines (320 kB).")
    expect(body.get_by_role("link", name="Save the whole result")).to_have_attribute("href", address)
    body.get_by_role("button", name="Show the whole result").click()
    lines = body.get_by_role("group", name="The whole result")
    expect(lines).to_contain_text("line 30000")
    drawn = lines.locator(".lines-block").evaluate_all(
        "all => [all.length, all.filter((one) => "
        "one.firstChild.checkVisibility({ contentVisibilityAuto: true })).length]"
    )
    assert drawn[0] == 150
    assert drawn[1] < 20  # the others cost nothing until one scrolls there


def test_hostile_output_is_text_in_its_own_order(tab: ChatPage, live_product: LiveProduct) -> None:
    evil = (
        f"<img src=x onerror=alert(1)><script>alert(2)</script>{OVERRIDE}txt.exe\x1b]8;;https://evil.example\x07click"
    )
    parts = (
        call("bash", {"script": evil}, {"stdout": evil, "stderr": "", "exitCode": 0}),
        call("grep", {"query": "img"}, {"matches": [f"/{OVERRIDE}a:1: {evil}"]}),
        call("fetch_page", {"url": "javascript:alert(3)"}, {"status": 200, "content": evil}),
        call("edit", {"path": f"/{evil}", "old_string": "a", "new_string": evil}, {"replaced": True}),
    )
    tab.open(seeded(live_product, *parts))
    for index in range(len(parts)):
        body = opened(tab, index)
        expect(body).to_contain_text("<script>alert(2)</script>")
        expect(body).to_contain_text("[U+202E]")
        assert body.locator("img, script, a[href^=javascript]").count() == 0
        assert OVERRIDE not in body.locator(".lines, .diff, .matches").first.inner_text()
    assert "evil.example" not in tab.page.get_by_role("group", name="Output").inner_text()


@pytest.mark.smoke
def test_a_running_call_tells_how_far_it_has_come_and_shows_its_picture_at_the_end(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=desk")
    tab.write('call tool survey {"seconds": 3}\nsay: Seen.')
    summary = tab.page.locator("details.tool summary")
    expect(summary).to_contain_text("Half of it")
    summary.click()
    body = tab.page.locator("details.tool .fold-body")
    expect(body.locator(".argument")).to_have_text(["Pages3"])
    expect(summary).to_contain_text("All of it")
    expect(body.locator(".argument")).to_have_text(["Pages6"])
    picture = body.get_by_role("img", name="Image: map.png")
    expect(picture).to_have_js_property("naturalWidth", 1)
    expect(body.locator(".file-image")).to_have_attribute("target", "_blank")
    tab.rest()
    tab.page.reload()
    expect(summary).to_contain_text("All of it")


def test_a_title_and_details_show_while_it_runs(tab: ChatPage, live_product: LiveProduct) -> None:
    running = call(
        "report", {"of": "all"}, "half", preliminary=True, **details(title="Reading page 3", metadata={"pages": 3})
    )
    tab.open(seeded(live_product, running))
    expect(tab.page.locator("details.tool summary")).to_contain_text("Reading page 3")
    body = opened(tab)
    expect(body).to_contain_text("So far")
    expect(body.locator(".argument")).to_have_text("Pages3")


def test_an_unknown_tool_is_shown_by_arguments_and_result(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, call("read", {"sensor": 3}, {"celsius": 21})))
    expect(tab.page.locator("details.tool summary")).to_contain_text("Read")
    body = opened(tab)
    expect(body.get_by_role("heading", name="Arguments")).to_be_visible()
    expect(body.locator(".value")).to_have_text(['{\n  "sensor": 3\n}', '{\n  "celsius": 21\n}'])


@pytest.mark.smoke("phone-dark")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shape", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_cards_are_accessible(
    open_tab: OpenTab, live_product: LiveProduct, scheme: str, shape: dict[str, object]
) -> None:
    tab = open_tab(seeded(live_product, *ALL), shape=shape, color_scheme=scheme)
    for index in range(len(ALL)):
        opened(tab, index)
    expect(tab.page.locator(".hljs-keyword").first).to_be_visible()
    check(tab.page)


def test_cards_at_every_size(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.open(seeded(live_product, *ALL))
    look(tab, "cards-closed")
    for index in range(len(ALL)):
        opened(tab, index)
    for index in (0, 3, 6, 8, 10, 11):
        tab.page.locator("details.tool").nth(index).evaluate("card => card.scrollIntoView()")
        assert tab.page.locator(".columns").evaluate("page => page.scrollTop") == 0, "the page itself moves"
        look(tab, f"cards-{index}")


def test_cards_read_from_right_to_left(open_tab: OpenTab, live_product: LiveProduct) -> None:
    tab = open_tab("/c/new", locale="ar-XB")
    tab.open(seeded(live_product, EDIT, BASH))
    assert tab.page.evaluate("document.dir") == "rtl"
    for index in range(2):
        card = tab.page.locator("details.tool").nth(index)
        card.locator("summary").click()
        expect(card.locator(".tool-name")).to_be_visible()
    expect(tab.page.locator(".terminal-script")).to_have_css("direction", "ltr")
    check(tab.page)
    look(tab, "cards-rtl")


def test_an_answer_that_changed_files_leads_to_their_changes(tab: ChatPage) -> None:
    first = {"path": "/src/double.py", "content": "def double(value):\n    return value + value\n"}
    tab.ask(
        f"call tool write {json.dumps(first)}\nsay: Next.\ncall tool write {json.dumps({**first, 'path': '/old.txt'})}"
    )
    expect(tab.answers.last.locator(".changed-line")).to_contain_text("2 files changed")
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url) if "/review" in request.url else None)
    script = "sed -i 's/value + value/value * 2/' src/double.py; rm old.txt; echo out > src/out.txt"
    script += "; echo x > passing; rm passing"
    tab.ask(f"call tool bash {json.dumps({'script': script})}\nsay: Done.")
    expect(tab.answers.last.locator(".changed-line")).to_contain_text("3 files changed")
    line = tab.answers.last.get_by_role("button", name="Review")
    tab.page.reload()
    line.focus()
    assert not asked, "nothing is read for the line"
    tab.page.keyboard.press("Enter")
    panel = tab.page.get_by_role("tabpanel", name="Files")
    expect(panel.get_by_role("heading", name="Changed files")).to_be_visible()
    expect(panel.locator("summary")).to_have_text(
        ["/old.txt deleted", "/src/double.py changed", "/src/out.txt created"]
    )
    diff = panel.get_by_role("group", name="Changes to /src/double.py")
    expect(diff.locator(".is-gone")).to_have_text(["-    return value + value\n"])
    expect(diff.locator(".is-added")).to_have_text(["+    return value * 2\n"])
    assert len(asked) == 1, asked
    check(tab.page)
    look(tab, "changed-files")
    tab.page.keyboard.press("Escape")
    expect(panel.get_by_role("treeitem", name="src, directory")).to_be_visible()


def test_files_that_code_changed_are_counted_too(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=scrivener")
    code = "async () => { await tools.write({path: '/made.txt', content: 'by code'}); return 'ok' }"
    tab.ask(f"call tool execute {json.dumps({'code': code})}\nsay: Done.")
    expect(tab.answers.last.locator(".changed-line")).to_contain_text("1 file changed")
    tab.answers.last.get_by_role("button", name="Review").click()
    panel = tab.page.get_by_role("tabpanel", name="Files")
    expect(panel.locator("summary")).to_have_text(["/made.txt created"])
    expect(panel.locator(".is-added")).to_have_text(["+by code\n"])
