"""A path of many messages, and how far from its end it is read."""

from typing import Any

from tests.browser.chat_page import ChatPage


def history(count: int) -> list[dict[str, Any]]:
    """A path of so many messages."""
    messages = []
    for number in range(count):
        role = "assistant" if number % 2 else "user"
        text = f"Message {number}. " + ("A paragraph of some length, so that pages are tall. " * (3 + number % 5))
        messages.append({"id": f"m{number}", "role": role, "parts": [{"type": "text", "text": text}]})
    return messages


def distance(tab: ChatPage) -> float:
    """Pixels between what is shown and the end."""
    return float(
        tab.page.evaluate("(s => s.scrollHeight - s.scrollTop - s.clientHeight)(document.getElementById('scroller'))")
    )
