"""What reaches a person who looks elsewhere: title and icon of the window, an installed page, pushes."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.chat_page import ChatPage

LOOKED_AT = """(state) => {
    Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
ICON = "() => new URL(document.querySelector('link[rel=icon]').href).pathname"
KEPT = """async () => {
    const names = await caches.keys();
    const kept = await Promise.all(names.map(async (name) => (await (await caches.open(name)).keys())));
    return kept.flat().map(({ url }) => new URL(url).pathname);
}"""


@pytest.mark.smoke
def test_title_and_icon_show_what_waits_until_it_is_seen(tab: ChatPage) -> None:
    page = tab.page
    tab.open("/c/new?agent=desk")
    tab.write('Rent\ncall tool pay {"amount": 12}\nsay: Thank you.')
    expect(page).to_have_title("(1) Rent · Desk · Think", timeout=20_000)
    assert "/icon-waiting." in page.evaluate(ICON)
    page.get_by_role("button", name="Decline").first.click()
    expect(page).to_have_title("Rent · Desk · Think")
    tab.rest()
    assert "/icon." in page.evaluate(ICON)

    page.evaluate(LOOKED_AT, "hidden")
    tab.ask("say: Done.")
    expect(page).to_have_title("(1) Rent · Desk · Think")
    page.evaluate(LOOKED_AT, "visible")
    expect(page).to_have_title("Rent · Desk · Think")
    tab.rest()
    page.reload()
    expect(page).to_have_title("Rent · Desk · Think")


def test_page_is_installable_and_says_what_is_wrong_without_a_line(
    new_context: Callable[..., BrowserContext],
    open_tab: Callable[..., ChatPage],
    page_line: CuttingProxy,
) -> None:
    tab = open_tab(context=new_context(service_workers="allow"))
    page = tab.page
    tab.ask("say: A secret.")
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    page.wait_for_function("() => navigator.serviceWorker.controller !== null")
    page.reload()
    tab.rest()
    address = page.url
    page_line.go_offline()
    page.goto(address)
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    assert "secret" not in page.content()
    page_line.go_online()
    page.get_by_role("link", name="Try again").click()
    expect(page.locator(".message.is-assistant")).to_contain_text("A secret.", timeout=30_000)
    kept = page.evaluate(KEPT)
    assert "/offline" in kept
    wrong = [path for path in kept if path != "/offline" and not re.search(r"\.[0-9a-f]{12}\.\w+$", path)]
    assert wrong == []
