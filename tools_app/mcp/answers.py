"""Answers of servers, for modules that are there before the protocol's package is loaded."""

from typing import Any

from thinkproject.kernel.jsonvalue import JSONObject


class ServerError(Exception):
    """An error that a server answers a request with. `message`: its own words, a stranger's text."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def to_json(value: Any) -> JSONObject:
    """An object of the protocol as JSON, without what was not given."""
    plain: JSONObject = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return plain
