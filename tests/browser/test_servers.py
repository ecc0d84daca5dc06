"""MCP servers on the page: a person adds one, reads and accepts its tools, and the agent uses them (A10)."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.chat_page import ChatPage, id_of
from tests.browser.live_product import LiveProduct
from tests.browser.looks import look
from tests.browser.servers_panel import accept, add, paste
from tests.browser.side_panel import LONG, check_both, tools

OpenTab = Callable[..., ChatPage]


def prefix_of_tools(tab: ChatPage) -> str:
    """What the names of the only server's tools begin with, as models call them."""
    read = f"async () => (await (await fetch('/api/v1/instances/{id_of(tab)}/mcp-servers')).json())[0].id"
    return f"tool_{tab.page.evaluate(read)}"


def allow(tab: ChatPage) -> None:
    """Let the agent make the call that it asks about."""
    tab.page.locator(".question").get_by_role("button", name="Allow once").click()


@pytest.mark.smoke
def test_server_is_added_its_tools_are_accepted_and_used(tab: ChatPage, odd_address: str) -> None:
    tab.ask("say: Hello.")
    expect(tools(tab)).to_contain_text("No servers yet.")
    look(tab, "tools-empty")
    check_both(tab)
    shown = add(tab, "odd", odd_address)
    expect(shown.get_by_role("status")).to_have_text("Ready")
    expect(shown).to_contain_text("1 tool can’t be used:")
    shown.locator("summary", has_text="Echo").click()
    expect(shown).to_contain_text("Say it again.")
    look(tab, "server-ready")
    check_both(tab)
    expect(shown).to_contain_text("These tools have not been looked at yet.")
    accept(shown)
    prefix = prefix_of_tools(tab)
    tab.write(f"call tool {prefix}_grow {{}}\nsay: {{result}}")
    expect(tab.answers.last.locator(".md").last).to_contain_text("grown")
    shown.get_by_role("button", name="Connect again").click()
    expect(shown.get_by_role("status")).to_have_text("Tools to review")
    expect(shown).to_contain_text("1 tool is new or has changed.")
    look(tab, "server-review")
    accept(shown)
    expect(shown.get_by_role("status")).to_have_text("Ready")
    tab.write(f"call tool {prefix}_grown {{}}\nsay: It said {{result}}.")
    allow(tab)
    expect(tab.answers.last.locator(".md").last).to_contain_text("It said grown.")
    tab.rest()


PASTED = """{
  // of VS Code
  "inputs": [
    {"id": "key", "type": "promptString", "description": "The key of the docs.", "password": true},
    {"id": "region", "type": "pickString", "description": "Near you.", "options": ["eu", "us"], "default": "eu"},
  ],
  "servers": {
    "odd": {"type": "http", "url": "ADDRESS", "headers": {"X-Key": "${input:key}", "X-Who": "${env:WHO:-me}"}},
    "docs": {"url": "https://${input:region}.docs.example.com/mcp", "disabled": true, "timeout": 60},
    "files": {"command": "npx", "args": ["-y", "server-files", "/srv"]},
    "old": {"type": "sse", "url": "https://old.example.com/sse"},
  },
}"""


@pytest.mark.smoke
def test_servers_of_a_pasted_configuration_are_added_after_a_preview(tab: ChatPage, odd_address: str) -> None:
    tab.ask("say: Hello.")
    shown = tools(tab)
    shown.get_by_role("button", name="Paste a configuration").click()
    shown.get_by_role("textbox", name="Configuration").fill('{"servers": {')
    shown.get_by_role("button", name="Preview").click()
    expect(shown).to_contain_text("This cannot be read at line 1")
    look(tab, "paste-unreadable")
    check_both(tab)
    shown.get_by_role("button", name="All tools").click()
    paste(tab, PASTED.replace("ADDRESS", odd_address))
    expect(shown).to_contain_text("Only administrators may add servers that are programs.")
    expect(shown).to_contain_text("older SSE transport")
    expect(shown.get_by_label("region", exact=True)).to_have_count(1)
    key = shown.get_by_label("key", exact=True)
    expect(key).to_have_attribute("type", "password")
    look(tab, "paste-preview")
    check_both(tab)
    shown.get_by_role("button", name="Add 2 servers").click()
    assert key.evaluate("field => field.validity.valueMissing")  # nothing was sent
    shown.get_by_role("checkbox", name="docs").uncheck()
    expect(shown.get_by_label("region", exact=True)).to_have_count(0)
    key.fill("s3cret")
    shown.get_by_role("button", name="Add 1 server").click()
    row = shown.locator("[data-row^=server]")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Ready")


def test_server_asks_a_person_within_a_call(tab: ChatPage, odd_address: str) -> None:
    tab.ask("say: Hello.")
    shown = add(tab, "odd", odd_address)
    expect(shown.get_by_role("status")).to_have_text("Ready")
    accept(shown)
    tab.write(f"call tool {prefix_of_tools(tab)}_name {{}}\nsay: {{result}}")
    tab.page.get_by_role("link", name="Approvals").click()
    card = tab.page.locator(".question")
    expect(card).to_contain_text("odd asks: your answer goes to this server.")
    expect(card).to_contain_text("What is your {name}?")
    card.get_by_role("button", name="Send the answer").click()
    expect(card).to_contain_text("This can’t be empty.")
    look(tab, "server-asks")
    check_both(tab)
    card.get_by_role("textbox", name="Name").fill("Ada")
    card.get_by_role("button", name="Send the answer").click()
    expect(card).to_have_count(0)
    tab.page.go_back()
    expect(tab.answers.last.locator(".md").last).to_contain_text("accept {'name': 'Ada'}")


def test_choices_of_a_question_are_shown_by_their_titles(tab: ChatPage, odd_address: str) -> None:
    tab.ask("say: Hello.")
    shown = add(tab, "odd", odd_address)
    expect(shown.get_by_role("status")).to_have_text("Ready")
    accept(shown)
    tab.write(f'call tool {prefix_of_tools(tab)}_name {{"kind": "wishes"}}\nsay: {{result}}')
    tab.page.get_by_role("link", name="Approvals").click()
    card = tab.page.locator(".question")
    size, days = card.get_by_role("combobox", name="Size"), card.get_by_role("group", name="Days")
    extras = card.get_by_role("group", name="Extras")
    expect(size.locator("option")).to_have_text(["Empty", "Small", "Large"])
    expect(card.get_by_role("combobox", name="Speed").locator("option:checked")).to_have_text("Normal")
    expect(card.locator("textarea")).to_have_count(0)
    size.select_option(label="Large")
    card.get_by_role("combobox", name="Colour").select_option(label="green")
    for name in ("Nuts", "Milk"):
        extras.get_by_role("checkbox", name=name).check()
    card.get_by_role("button", name="Send the answer").click()
    expect(days).to_contain_text("Choose at least one.")
    expect(extras).to_contain_text("Choose at most one.")
    look(tab, "server-choices")
    check_both(tab)
    extras.get_by_role("checkbox", name="Milk").uncheck()
    days.get_by_role("checkbox", name="tu").check()
    card.get_by_role("button", name="Send the answer").click()
    expect(card).to_have_count(0)
    tab.page.go_back()
    said = tab.answers.last.locator(".md").last
    for pair in ("'size': 'l'", "'speed': 'n'", "'colour': 'green'", "'extras': ['n']", "'days': ['tu']"):
        expect(said).to_contain_text(pair)


def test_what_servers_ask_is_read_before_it_is_allowed(tab: ChatPage, live_product: LiveProduct) -> None:
    tab.ask("say: Hello.")
    conversation = id_of(tab)
    asked = [{"role": "user", "text": "Sum this up: tea is green."}, {"role": "assistant", "text": LONG}]
    questions: list[dict[str, Any]] = [
        {"tool_name": "mcp_sampling", "input": {"system": "Be brief.", "messages": asked, "max_tokens": 300}},
        {"tool_name": "mcp_question", "input": {"url": f"https://bank.example/pay?{LONG}"}},
    ]
    for number, question in enumerate(questions):
        words = {"call_id": f"c:q{number}-0a1b2c3d", "title": "Docs asks", "sentence": "Docs wants an answer."}
        live_product.call("put_question", conversation, {**words, **question})
    tab.open("/approvals")
    cards = tab.page.locator(".question")
    expect(cards).to_have_count(2)
    sampling, link = cards.filter(has_text="tea is green"), cards.filter(has_text="bank.example")
    expect(sampling).to_contain_text("Be brief.")
    expect(sampling).to_contain_text("The answer has at most 300 tokens.")
    expect(link.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer nofollow")
    look(tab, "servers-ask")
    check_both(tab)


def test_servers_that_need_attention(tab: ChatPage, live_product: LiveProduct, open_tab: OpenTab) -> None:
    many = [f"tool_number_{number}" for number in range(40)]
    why = f"The server could not be reached: {LONG}"
    live_product.call(
        "know_servers",
        live_product.user_id,
        [
            {"name": "Broken", "state": "failed", "error": why},
            {"name": "Private", "needs_sign_in": True},
            {"name": "x" * 100, "tools": many},
            {"name": "Off", "is_enabled": False},
            {"name": "Known", "tools": ["search"], "is_trusted": True},
        ],
    )
    shown = tools(tab)  # of a conversation that has not begun
    rows = shown.locator(".tools-row")
    expect(rows).to_have_count(5)
    expect(rows.locator(".tools-state")).to_have_text(
        ["Not reachable", "Sign-in needed", "Tools to review", "Disabled", "Ready"]
    )
    look(tab, "servers")
    check_both(tab)
    rows.nth(0).click()
    expect(shown).to_contain_text(why)
    look(tab, "server-failed")
    shown.get_by_role("button", name="All tools").click()
    expect(rows.nth(0)).to_be_focused()
    rows.nth(1).click()
    expect(shown.get_by_role("link", name="Sign in")).to_have_attribute("target", "_blank")
    look(tab, "server-sign-in")
    shown.get_by_role("button", name="All tools").click()
    rows.nth(2).click()
    expect(shown.locator(".tools-tools > li")).to_have_count(40)
    look(tab, "server-many-tools")
    shown.get_by_role("button", name="Trust this server").click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_contain_text("A server that is dishonest")
    look(tab, "server-trust")
    dialog.get_by_role("button", name="Trust it").click()
    expect(shown.get_by_role("status")).to_have_text("Ready")
    shown.get_by_role("button", name="Disable").click()
    expect(shown.get_by_role("status")).to_have_text("Disabled")
    shown.get_by_role("button", name="Remove").click()
    dialog.get_by_role("button", name="Remove").click()
    expect(rows).to_have_count(4)


def test_tools_in_a_language_from_right_to_left(live_product: LiveProduct, open_tab: OpenTab) -> None:
    tab = open_tab("/c/new?panel=tools", locale="ar-XB")
    servers = [{"name": "Server", "tools": ["one", "two"]}, {"name": "Broken", "state": "failed", "error": LONG}]
    live_product.call("know_servers", live_product.user_id, servers)
    tab.page.reload()
    rows = tab.page.locator(".tools-row")
    expect(rows).to_have_count(2)
    look(tab, "tools-rtl")
    rows.nth(0).click()
    expect(tab.page.locator(".tools-tools > li")).to_have_count(2)
    look(tab, "server-rtl")
    tab.page.keyboard.press("Escape")
    expect(rows.nth(0)).to_be_focused()
    tab.page.locator("[data-row=new-server]").click()
    tab.page.locator(".tools-headers .quiet").click()
    look(tab, "server-form-rtl")
    check_both(tab)
