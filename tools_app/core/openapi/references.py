"""References within one document: `#/components/schemas/Pet`. Others are refused, and nothing is ever fetched. Pure."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from tools_app.errors import ToolDeclarationInvalid

MAX_STEPS: Final = 32


class References:
    """The document that references point into."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def find(self, reference: str) -> Any:
        """The value that a reference names. Errors: `ToolDeclarationInvalid` for another document, and for nothing."""
        if reference != "#" and not reference.startswith("#/"):
            raise ToolDeclarationInvalid(f"A reference leads to another document, which is not fetched: {reference!r}")
        found: Any = self._document
        for part in reference.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                raise ToolDeclarationInvalid(f"The document has nothing at {reference!r}.")
        return found

    def followed(self, value: Any) -> Mapping[str, Any]:
        """An object, or the one that its references lead to. Errors: `ToolDeclarationInvalid`, also for a circle."""
        for _ in range(MAX_STEPS):
            if not isinstance(value, Mapping):
                raise ToolDeclarationInvalid("The document has a text or a list where an object belongs.")
            if not isinstance(value.get("$ref"), str):
                return value
            value = self.find(value["$ref"])
        raise ToolDeclarationInvalid("References of the document lead in a circle.")
