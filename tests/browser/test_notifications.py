"""News for a person who looks elsewhere: title and icon of the window, an installed page, pushes, kept files."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.acceptance.proxy import CuttingProxy
from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage
from tests.browser.looks import look
from tests.push_service import push_service

LOOKED_AT = """(state) => {
    Object.defineProperty(document, "visibilityState", { get: () => state, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""
ICON = "() => new URL(document.querySelector('link[rel=icon]').href).pathname"
DATABASE = """() => new Promise((done) => {
    const opening = indexedDB.open("think", 1);
    opening.onsuccess = () => {
        const reading = opening.result.transaction("files").objectStore("files").getAllKeys();
        reading.onsuccess = () => done(reading.result);
    };
})"""
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


SUBSCRIBED_AT = """(subscription) => {
    const made = {
        endpoint: subscription.endpoint,
        options: { applicationServerKey: null },
        toJSON: () => ({ keys: { p256dh: subscription.public_key, auth: subscription.auth_secret } }),
        unsubscribe: async () => { held = null; return true; },
    };
    let held = null;
    PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
        if (!/^[\\w-]{87}$/.test(applicationServerKey)) throw new Error("no key");
        return held = made;
    };
    PushManager.prototype.getSubscription = async () => held;
}"""
PUSHED = """(news) => {
    self.shown = [];
    self.registration.showNotification = async (title, options) => { self.shown.push({ title, ...options }); };
    const data = { json: () => news };
    self.dispatchEvent(Object.assign(new Event("push"), { data, waitUntil: () => {} }));
}"""
SHOWN = "() => self.shown.map(({ title, body, data }) => [title, body, data.path])"
CLICK = """() => {
    const notification = { ...self.shown[0], close: () => {} };
    self.dispatchEvent(Object.assign(new Event("notificationclick"), { notification, waitUntil: () => {} }));
}"""


def test_a_device_is_added_tested_and_removed_and_a_push_leads_to_its_conversation(
    new_context: Callable[..., BrowserContext], open_tab: Callable[..., ChatPage]
) -> None:
    """Subscriptions of browsers and notifications of systems are out of reach here: both are stood in for."""
    context = new_context(service_workers="allow")
    context.grant_permissions(["notifications"])
    tab = open_tab(context=context)
    page = tab.page
    tab.ask("Elsewhere\nsay: Here.")
    conversation = page.url.removeprefix(tab.base_url)
    page.evaluate("() => navigator.serviceWorker.ready.then(() => true)")
    with push_service() as service:
        browser = service.new_browser()
        page.add_init_script(f"({SUBSCRIBED_AT})({json.dumps(browser.subscription())})")
        tab.open("/settings/notifications")
        expect(page.get_by_text("None of your browsers shows notifications yet.")).to_be_visible()
        check(page)
        page.get_by_role("button", name="Turn on here").click()
        expect(page.get_by_text("This browser shows notifications")).to_be_visible()
        row = page.locator(".settings-rows li")
        expect(row).to_contain_text("this browser")
        row.get_by_role("button", name="Send a test").click()
        tab.until(lambda: browser.got)
        assert browser.got[0][0]["body"] == "Notifications reach this device."
        page.get_by_label("an answer is ready").uncheck()
        expect(page.get_by_text("Saved")).to_be_visible()
        page.get_by_label("Keep quiet hours").check()
        expect(page.get_by_label("From")).to_have_value("22:00")
        check(page)
        look(tab, "notifications")

        worker = context.service_workers[0]
        news = {"title": "Think", "body": "An answer is ready.", "path": conversation, "tag": "a"}
        worker.evaluate(PUSHED, news)
        tab.until(lambda: worker.evaluate(SHOWN) == [["Think", "An answer is ready.", conversation]])
        worker.evaluate(CLICK)
        expect(page).to_have_url(tab.base_url + conversation)
        expect(page.locator(".message.is-assistant")).to_contain_text("Here.")

        tab.open("/settings/notifications")
        page.get_by_role("button", name="Turn on here").click()
        page.get_by_role("button", name="Turn off here").click()
        expect(page.get_by_text("None of your browsers shows notifications yet.")).to_be_visible()


def test_a_file_that_could_not_be_uploaded_survives_a_reload_and_goes_out_once(tab: ChatPage) -> None:
    page = tab.page
    tab.ask("say: Begin.")
    uploads: list[str] = []
    page.route("**/api/v1/files", lambda route: route.abort())
    page.route("**/turns", lambda route: route.abort())
    page.locator("#file-input").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"kept in the browser"}
    )
    expect(page.locator("#composer-files")).to_contain_text("goes out when you’re connected")
    tab.write("say: Read.")
    expect(page.locator(".message.is-pending")).to_contain_text("notes.txt")
    page.reload()
    expect(page.locator(".message.is-pending")).to_contain_text("notes.txt")
    page.unroute("**/api/v1/files")
    page.on("request", lambda request: uploads.append(request.url) if request.url.endswith("/api/v1/files") else None)
    page.unroute("**/turns")
    expect(tab.answers).to_have_count(2, timeout=40_000)
    tab.rest()
    sent = page.locator(".message.is-user").last
    expect(sent.get_by_role("link", name="notes.txt").first).to_be_visible()
    assert len(uploads) == 1
    assert page.evaluate(DATABASE) == []
