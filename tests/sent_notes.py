"""Requests as they are without the line about when a message was sent, which changes with the clock."""

from chat.core.context.sent_note import NOTE
from thinkproject.kernel.jsonvalue import JSONValue


def without_notes(value: JSONValue) -> JSONValue:
    """The same value, each text in it without the line."""
    if isinstance(value, str):
        return NOTE.sub("", value)
    if isinstance(value, list):
        return [without_notes(each) for each in value]
    return {key: without_notes(each) for key, each in value.items()} if isinstance(value, dict) else value
