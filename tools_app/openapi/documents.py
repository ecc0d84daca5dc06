"""OpenAPI documents as they are given: values, JSON or YAML as text, and at an address."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from tools_app.errors import ToolDeclarationInvalid
from tools_app.fetching.bodies import decode
from tools_app.fetching.client import Fetcher
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.resolving import Resolve, resolve
from tools_app.fetching.urls import checked_url, parse_rules
from tools_app.fetching.values import FetchLimits
from tools_app.openapi.networks import networks

MAX_CHARS: Final = 8_000_000
_LIMITS: Final = FetchLimits(seconds=30.0, max_bytes=MAX_CHARS)


class _Loader(yaml.SafeLoader):
    """Reads YAML by the JSON schema of YAML 1.2, as OpenAPI has it: `NO`, `on` and `2024-01-01` are texts."""


_TAGS: Final = "tag:yaml.org,2002:"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in {f"{_TAGS}bool", f"{_TAGS}timestamp"}]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAGS}bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


def read_document(document: Mapping[str, Any] | str) -> Any:
    """A document as a value. Errors: `ToolDeclarationInvalid` for a text that is neither JSON nor YAML."""
    if not isinstance(document, str):
        return document
    if len(document) > MAX_CHARS:
        raise ToolDeclarationInvalid(f"An OpenAPI document has at most {MAX_CHARS} characters.")
    try:
        if document.lstrip("\ufeff \t\r\n").startswith("{"):
            return json.loads(document.removeprefix("\ufeff"))
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(document, Loader=yaml.SafeLoader)):
            raise ToolDeclarationInvalid("The document uses aliases of YAML, which may unfold without end.")
        return json.loads(json.dumps(yaml.load(document, _Loader)))  # noqa: S506 - a safe loader
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise ToolDeclarationInvalid("The OpenAPI document is neither JSON nor YAML.") from error


async def load_openapi_document(
    url: str, *, allow_private: Sequence[str] = (), resolver: Resolve = resolve
) -> dict[str, Any]:
    """Fetch a document, within the rules of addresses, 30 seconds and 8 MB. Redirects stay on its host.

    Errors: `ToolDeclarationInvalid` with the reason.
    """
    try:
        checked = checked_url(url)
        rules = parse_rules([str(checked.origin())])
        fetched = await Fetcher(rules, limits=_LIMITS, private=networks(allow_private), resolver=resolver).fetch(url)
    except FetchFailed as error:
        raise ToolDeclarationInvalid(f"The OpenAPI document cannot be fetched: {error.message}") from error
    found = read_document(decode(fetched.body, fetched.charset))
    if not isinstance(found, dict):
        raise ToolDeclarationInvalid("This is no OpenAPI document: it is no object with paths.")
    return found
