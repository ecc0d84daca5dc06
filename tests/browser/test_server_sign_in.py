"""Signing in at an MCP server from the page: in a tab of its own, and the panel follows (A10)."""

from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage
from tests.browser.looks import look
from tests.browser.servers_panel import add
from tests.browser.side_panel import check_both
from tests.mcp.guarded import guarded_server
from tests.mcp.tenants import tenants


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


def test_person_enters_a_client_where_this_site_cannot_register(tab: ChatPage) -> None:
    tab.ask("say: Hello.")
    with tenants() as servers:
        servers.clients = {"by-hand": "a-secret"}
        shown = add(tab, "tickets", servers.url)
        expect(shown.get_by_role("status").first).to_have_text("Sign-in needed")
        with tab.page.expect_popup() as opened:
            shown.get_by_role("link", name="Sign in").click()
        refusal = opened.value.get_by_role("main")
        expect(refusal).to_contain_text("does not let this site register by itself")
        opened.value.close()
        shown.locator("summary", has_text="Sign-in with a client ID").click()
        expect(shown).to_contain_text("/mcp/oauth/callback")
        shown.get_by_label("Client ID").fill("by-hand")
        shown.get_by_label("Client secret").fill("a-secret")
        look(tab, "server-client")
        check_both(tab)
        shown.get_by_role("button", name="Save").click()
        expect(shown).to_contain_text("Saved. Sign in now.")
        expect(shown.get_by_label("Client secret")).to_have_value("")
        with tab.page.expect_popup() as opened:
            shown.get_by_role("link", name="Sign in").click()
        opened.value.wait_for_url("**/c/*")
        (asked,) = servers.asked
        assert (asked["basic_id"], asked["basic_secret"]) == ("by-hand", "a-secret")
