"""Lines of scripts, which the model of these tests follows."""

import json


def say(text: str) -> str:
    """A script line that answers with this text."""
    return "say: " + text.replace("\n", "\\n")


def remember(label: str, content: str) -> str:
    return f"call tool set_context {json.dumps({'label': label, 'content': content})}\nsay: Noted."
