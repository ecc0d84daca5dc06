"""The panel with the files of a conversation, as a person uses it, and a second pair of hands."""

import base64
from urllib.parse import quote

from playwright.sync_api import Locator, expect

from tests.browser.chat_page import ChatPage
from tests.browser.live_product import LiveProduct

_PUT = """async ([path, address]) => {
    const bytes = Uint8Array.from(atob(path[1]), (sign) => sign.charCodeAt(0));
    const token = document.querySelector('meta[name="csrf-token"]').content;
    const headers = { "x-csrftoken": token, "content-type": "application/octet-stream" };
    const answer = await fetch(address, { method: "PUT", body: bytes, headers });
    if (!answer.ok) throw new Error(await answer.text());
}"""


class Files:
    """A conversation with files, its panel, and a second pair of hands that writes through the API."""

    def __init__(self, tab: ChatPage, product: LiveProduct, *, agent: str = "assistant") -> None:
        self.tab = tab
        words = {"user": "Hello", "assistant": "Hi."}
        said = [{"id": role, "role": role, "parts": [{"type": "text", "text": words[role]}]} for role in words]
        self.key = product.seed("With files", said, agent=agent)
        self.api = f"/api/v1/instances/{self.key}/workspace"

    def put(self, path: str, content: str | bytes) -> None:
        """Write a file as another program would."""
        data = content.encode() if isinstance(content, str) else content
        address = f"{self.api}/content?path={quote(path)}"
        self.tab.page.evaluate(_PUT, [[path, base64.b64encode(data).decode()], address])

    def read(self, path: str) -> str | None:
        """What is stored now."""
        answer: str | None = self.tab.page.evaluate(
            "async (url) => { const r = await fetch(url); return r.ok ? await r.text() : null; }",
            f"{self.api}/content?path={quote(path)}",
        )
        return answer

    def open(self, query: str = "") -> Locator:
        """Open the panel; returns it."""
        self.tab.open(f"/c/{self.key}?panel=files{query}")
        return self.panel

    @property
    def panel(self) -> Locator:
        return self.tab.page.get_by_role("tabpanel", name="Files")

    def row(self, name: str) -> Locator:
        return self.tab.page.get_by_role("treeitem", name=name)

    def rows(self) -> list[str]:
        return [str(row.get_attribute("aria-label")) for row in self.tab.page.get_by_role("treeitem").all()]

    def menu(self, row: str, entry: str) -> None:
        """Choose from the menu of a row."""
        self.row(row).get_by_role("button").click()
        self.tab.page.get_by_role("menuitem", name=entry).click()

    def answer(self, name: str, button: str) -> None:
        """Fill in the dialog that asks for a name."""
        dialog = self.tab.page.get_by_role("dialog")
        dialog.get_by_role("textbox").fill(name)
        dialog.get_by_role("button", name=button).click()
        expect(dialog).to_have_count(0)

    def confirm(self, button: str) -> None:
        dialog = self.tab.page.get_by_role("dialog")
        dialog.get_by_role("button", name=button).click()
        expect(dialog).to_have_count(0)
