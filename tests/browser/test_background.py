"""Background work on the page: what it is, why it stands, and what a person does about it; agents at work as a tree."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.side_panel import LONG, check_both, panel, show_view, toggle

OpenTab = Callable[..., ChatPage]


def background(tab: ChatPage) -> Locator:
    if not panel(tab).is_visible():
        toggle(tab).click()
    show_view(tab, "Background")
    return tab.page.get_by_role("tabpanel", name="Background")


def opened(open_tab: OpenTab, product: LiveProduct, rows: list[dict[str, Any]]) -> tuple[ChatPage, Locator, list[str]]:
    """A conversation with this background work, and the panel that shows it."""
    conversation = product.seed("Reports", [])
    ids = product.call("add_fibers", conversation, rows)
    tab = open_tab(f"/c/{conversation}?panel=background")
    return tab, tab.page.get_by_role("tabpanel", name="Background"), ids


def confirm(tab: ChatPage, name: str) -> None:
    tab.page.get_by_role("dialog").get_by_role("button", name=name).click()


@pytest.mark.smoke
def test_background_work_is_seen_stopped_resolved_and_run_again(open_tab: OpenTab, live_product: LiveProduct) -> None:
    rows: list[dict[str, Any]] = [
        {"method": "build_report", "status": "failed", "error": {"code": "oops", "message": "The source is gone."}},
        {"method": "import_rows", "status": "interrupted", "reason": "not_restarted"},
        {"method": "send_letters", "status": "pending", "reason": "method_missing"},
        {"method": "ask_around", "status": "parked", "waits": [{"kind": "person", "label": "the invoice"}]},
    ]
    tab, shown, ids = opened(open_tab, live_product, rows)
    expect(shown.locator(".tools-row")).to_have_count(4)
    look(tab, "background-list")
    check_both(tab)
    shown.get_by_role("button", name="send_letters").click()
    expect(shown).to_contain_text("It goes on by itself when the code is back.")
    look(tab, "background-missing")
    shown.get_by_role("button", name="Stop").click()
    confirm(tab, "Stop")
    expect(shown.get_by_role("status")).to_have_text("Stopped")
    expect(shown).to_contain_text("It was stopped from here.")
    shown.get_by_role("button", name="All background work").click()
    expect(shown.get_by_role("button", name="send_letters")).to_be_focused()
    shown.get_by_role("button", name="ask_around").click()
    expect(shown.get_by_role("region", name="Waits for")).to_contain_text("the invoice")
    shown.get_by_role("button", name="All background work").click()
    shown.get_by_role("button", name="import_rows").click()
    expect(shown).to_contain_text("the agent’s code didn’t run it again")
    shown.get_by_text("What happened").click()
    expect(shown.locator(".fiber-journal > li")).to_contain_text(
        ["Asked for", "Begun", "Step “fetch” done (attempt 1)", "Its worker was lost 2 times in a row", "Ended"]
    )
    look(tab, "background-item")
    check_both(tab)
    shown.get_by_role("button", name="Mark as done").click()
    confirm(tab, "Mark as done")
    expect(shown.get_by_role("status")).to_have_text("Done")
    expect(shown.locator(".panel-actions")).to_have_count(0)
    shown.get_by_role("button", name="All background work").click()
    shown.get_by_role("button", name="build_report").click()
    expect(shown).to_contain_text("The source is gone.")
    with live_product.paused_workers():
        shown.get_by_role("button", name="Run again").click()
        confirm(tab, "Run again")
        expect(shown.get_by_role("status")).to_have_text("Waiting to begin")
        live_product.call("end_fiber", ids[0])
        expect(shown.get_by_role("status")).to_have_text("Done")
        expect(shown.get_by_role("button", name="Run again")).to_have_count(0)
    tab.rest()


def test_nothing_much_and_what_cannot_be_read(open_tab: OpenTab, live_product: LiveProduct) -> None:
    tab, shown, _ = opened(open_tab, live_product, [])
    expect(shown).to_contain_text("Nothing runs in the background")
    look(tab, "background-empty")
    check_both(tab)
    shown.get_by_role("button", name="Schedules").click()
    expect(tab.page.get_by_role("tabpanel", name="Schedules")).to_contain_text("No schedules yet.")
    tab.page.route("**/fibers?*", lambda route: route.fulfill(status=500, body="{}"))
    shown = background(tab)
    expect(shown.get_by_role("alert")).to_be_visible()
    look(tab, "background-error")
    tab.page.unroute("**/fibers?*")
    shown.get_by_role("button", name="Try again").click()
    expect(shown).to_contain_text("Nothing runs in the background")
    rows = [{"method": f"task_{number}", "status": "completed"} for number in range(198)]
    tab, shown, _ = opened(
        open_tab, live_product, [{"method": LONG[:120], "status": "failed", "reason": LONG[:60]}, *rows]
    )
    expect(shown.locator(".tools-row")).to_have_count(20)
    look(tab, "background-long")
    check_both(tab)
    shown.get_by_role("button", name="Show 179 more").click()
    expect(shown.locator(".tools-row")).to_have_count(40)
    expect(shown.locator(".tools-row").nth(20)).to_be_focused()


def test_agents_at_work_stand_in_a_tree(open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?agent=editor")
    call = {"task": "say: From below."}
    waiting = {"task": 'call tool look {"seconds": 30}'}
    tab.write(f"call tool find {json.dumps(call)}\ncall tool find_later {json.dumps(waiting)}\nsay: Written.")
    expect(tab.answers.last).to_contain_text("Written.")
    shown = background(tab)
    tree = shown.get_by_role("region", name="Agents at work")
    expect(tree.locator(".run-tree > li")).to_have_count(2)
    done, working = (
        tree.get_by_role("listitem").filter(has_text="Done"),
        tree.get_by_role("listitem").filter(has_text="Working"),
    )
    expect(done).to_contain_text("1 turn")
    expect(working).to_contain_text("in the background")
    look(tab, "background-tree")
    check_both(tab)
    working.get_by_role("button", name="Stop").click()
    expect(tree.get_by_role("listitem").filter(has_text="Stopped")).to_have_count(1)
    done.get_by_role("link", name="Open as conversation").click()
    expect(tab.answers.last).to_contain_text("From below.")
