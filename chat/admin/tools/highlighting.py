"""Source code with colours, for pages of staff: tokens as a parser finds them, each escaped."""

from collections.abc import Iterator
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from tree_sitter import Node

from tools_app.core.code.normalise import parse

MAX_CHARS: Final = 200_000
KINDS: Final = {
    "comment": "comment",
    "string_fragment": "string",
    "escape_sequence": "string",
    "regex_pattern": "string",
    "number": "number",
    "true": "number",
    "false": "number",
    "null": "number",
    "undefined": "number",
    "property_identifier": "property",
    "shorthand_property_identifier": "property",
    "shorthand_property_identifier_pattern": "property",
    "type_identifier": "type",
    "predefined_type": "type",
}
"""Kinds of tokens to the classes that colour them; words of the language are `keyword`."""


def highlighted(source: str) -> SafeString:
    """A source in JavaScript or TypeScript as lines with colours. What cannot be parsed is shown as it is."""
    shown = source[:MAX_CHARS].encode(errors="replace")
    pieces = format_html_join("", "{}", ((piece,) for piece in _pieces(shown)))
    return format_html('<pre class="think-block think-code" tabindex="0">{}</pre>', pieces)


def _pieces(source: bytes) -> Iterator[SafeString | str]:
    done = 0
    for start, end, kind in _tokens(parse(source)):
        if start < done:
            continue
        yield source[done:start].decode(errors="replace")
        yield format_html('<span class="think-code-{}">{}</span>', kind, source[start:end].decode(errors="replace"))
        done = end
    yield source[done:].decode(errors="replace")


def _tokens(root: Node) -> Iterator[tuple[int, int, str]]:
    """The leaves that have a colour, in order. Without recursion: a source may be nested as deeply as it likes."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        kind = KINDS.get(node.type, "")
        if not kind and not node.is_named and node.type.isalpha():
            kind = "keyword"
        if kind:
            yield node.start_byte, node.end_byte, kind
        else:
            waiting.extend(reversed(node.children))
