"""Shorten a JSON value and keep its kind: text stays text, a list a list, an object keeps its keys while it can.

All lengths are UTF-16 code units, as browsers count them, so that a value is cut where a JavaScript server cuts it.
Source: row-size rules of the wire protocol (docs/design/sessions.md).
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

MAX_DEPTH: Final = 8
MIN_CHILD_CHARS: Final = 80
FLAG: Final = "__truncated"
CHARS: Final = "__truncatedChars"
OBJECT_NOTE: Final = "Tool output omitted because it was too large to preserve structurally."


def text_length(text: str) -> int:
    """Length of a text in UTF-16 code units."""
    return len(text) + sum(1 for char in text if char > "\uffff") if not text.isascii() else len(text)


def text_head(text: str, length: int) -> str:
    """First so many UTF-16 code units of a text; a character that would be split is left out."""
    if text.isascii():
        return text[: max(length, 0)]
    head = text[: max(length, 0)]
    while text_length(head) > length:
        over = text_length(head) - length
        head = head[: -max(1, over // 2)]
    return head


def json_length(value: JSONValue) -> int:
    """Length of a value as budgets count it: of a text itself, of anything else as compact JSON."""
    return text_length(value if isinstance(value, str) else dump(value))


CutText: TypeAlias = Callable[[str, int], str]
"""Cuts a text to so many characters."""


def shorten_text(text: str, max_chars: int) -> str:
    """Keep the beginning of a text and append its length, as stored rows are cut."""
    length = text_length(text)
    if length <= max_chars:
        return text
    suffix = _suffix(length)
    if max_chars <= len(suffix):
        return suffix[: max(max_chars, 0)]
    return text_head(text, max_chars - len(suffix)) + suffix


def shorten(value: JSONValue, max_chars: int, cut: CutText = shorten_text) -> JSONValue:
    """Give a value of the same kind within a budget of characters; the same object when it fits.

    Numbers, booleans and nothing stay. A budget below some 40 characters leaves only part of a marker. `cut`: how the
    texts in it are cut.
    """
    length = json_length(value)
    return value if length <= max_chars else _Shortener(cut).value(value, max_chars, length, 0)


def _suffix(length: int) -> str:
    return f"... [truncated {length} chars]"


def _child_chars(max_chars: int, count: int) -> int:
    return max_chars if count <= 1 else max(MIN_CHILD_CHARS, max_chars // min(count, 10))


class _Shortener:
    """Shortens values, with one way to cut texts."""

    def __init__(self, cut: CutText) -> None:
        self._cut = cut

    def value(self, value: JSONValue, max_chars: int, length: int, depth: int) -> JSONValue:
        """Shorten a value of this length."""
        if isinstance(value, str):
            return self._cut(value, max_chars)
        if not isinstance(value, dict | list):
            return value
        if depth >= MAX_DEPTH:
            return f"[Nested output omitted {_suffix(length)}]"
        if isinstance(value, list):
            return self._array(value, max_chars, length, depth)
        return self._object(value, max_chars, length, depth)

    def _array(self, items: list[JSONValue], max_chars: int, length: int, depth: int) -> list[JSONValue]:
        budget = _child_chars(max_chars, len(items))
        note = f"Array output truncated {_suffix(length)}"
        result: list[JSONValue] = []
        sizes: list[int] = []
        used = 1  # the bracket that opens
        for item in items:
            child = self.value(item, budget, json_length(item), depth + 1)
            result.append(child)
            sizes.append(text_length(dump(child)) + 1)  # and the comma or the bracket after it
            used += sizes[-1]
            if used > max_chars:
                break
        # A lone surrogate in one item makes the whole plain ASCII, and longer than the sum of its items.
        if used <= max_chars and json_length(result) <= max_chars:
            return result
        while len(result) > 1 and used + len(dump(note)) + 1 > max_chars:
            result.pop()
            used -= sizes.pop()
        result.append(note)
        return result if json_length(result) <= max_chars else _array_marker(max_chars, length)

    def _object(self, fields: JSONObject, max_chars: int, length: int, depth: int) -> JSONObject:
        budget = _child_chars(max_chars, len(fields))
        result = {key: self.value(value, budget, json_length(value), depth + 1) for key, value in fields.items()}
        size = json_length(result)
        if size > max_chars and self._cut_text_fields(result, size, max_chars) > max_chars:
            result[FLAG] = True
            result[CHARS] = size
        return result if json_length(result) <= max_chars else _object_marker(max_chars, length)

    def _cut_text_fields(self, fields: JSONObject, size: int, max_chars: int) -> int:
        """Cut the longest texts of an object, in place, until it fits or none is left. Returns the size it then has."""
        texts = [(text_length(value), key) for key, value in fields.items() if isinstance(value, str)]
        for _, key in sorted(texts, key=lambda pair: -pair[0]):
            if size <= max_chars:
                break
            cut = self._cut(fields[key], max_chars // 4)
            size += text_length(dump(cut)) - text_length(dump(fields[key]))
            fields[key] = cut
        return size


def _object_marker(max_chars: int, length: int) -> JSONObject:
    marker: JSONObject = {FLAG: True, CHARS: length, "note": OBJECT_NOTE}
    return marker if json_length(marker) <= max_chars else {FLAG: True, CHARS: length}


def _array_marker(max_chars: int, length: int) -> list[JSONValue]:
    marker: list[JSONValue] = [_object_marker(max_chars, length)]
    return marker if json_length(marker) <= max_chars else [_suffix(length)[: max(max_chars, 0)]]
