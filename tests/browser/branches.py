"""Messages of conversations with branches, and which of them are shown."""

from typing import Any

from tests.browser.chat_page import ChatPage

TREES = "tests.browser.trees"


def text(key: str, role: str, words: str) -> dict[str, Any]:
    """A message of one text."""
    return {"id": key, "role": role, "parts": [{"type": "text", "text": words}]}


def ids(tab: ChatPage) -> list[str]:
    """Ids of what is shown."""
    return tab.page.eval_on_selector_all("#messages > .message", "all => all.map((one) => one.dataset.id)")  # type: ignore[no-any-return]  # a list of strings, as the script says
