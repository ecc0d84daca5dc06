"""Signing in at an MCP server from the page: in a tab of its own, and the panel follows (A10)."""

from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look
from tests.browser.servers_panel import add
from tests.mcp.guarded import guarded_server


def test_person_signs_in_in_another_tab_and_out_again(tab: ChatPage) -> None:
    tab.ask("say: Hello.")
    with guarded_server() as consent:
        consent.gives_secrets = True  # the package's own server wants one to revoke
        shown = add(tab, "guarded", consent.url)
        expect(shown.get_by_role("status")).to_have_text("Sign-in needed")
        with tab.page.expect_popup() as opened:
            shown.get_by_role("link", name="Sign in").click()
        opened.value.wait_for_url("**/c/*")  # the way leads back to the conversation
        opened.value.close()
        expect(shown.get_by_role("status")).to_have_text("Ready")
        look(tab, "server-signed-in")
        shown.get_by_role("button", name="Sign out").click()
        expect(shown.get_by_role("status")).to_have_text("Sign-in needed")
        expect(shown.get_by_role("button", name="Sign out")).to_have_count(0)
        tab.until(lambda: consent.revoked == 1)
