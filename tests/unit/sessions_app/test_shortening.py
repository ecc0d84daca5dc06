"""Values shortened in their shape, with lengths as browsers count them."""

from typing import Any

import pytest

from sessions_app.core.messages.shortening import OBJECT_NOTE, json_length, shorten, text_head, text_length


def test_lengths_are_utf16_code_units() -> None:
    assert text_length("abc") == 3
    assert text_length("é\0") == 2
    assert text_length("a🙂b") == 4
    assert text_length("\ud83d") == 1


def test_a_head_never_splits_a_character() -> None:
    assert text_head("🙂🙂", 3) == "🙂"
    assert text_head("🙂🙂", 4) == "🙂🙂"
    assert text_head("aé🙂", 2) == "aé"
    assert text_head("🙂" * 1000, 999) == "🙂" * 499
    assert text_head("abc", -1) == ""
    assert text_head("é🙂", 0) == ""


def test_a_lone_surrogate_beside_other_letters_keeps_the_budget() -> None:
    short = shorten(["\ud800", "é" * 2_000], 93)
    assert isinstance(short, list)
    assert json_length(short) <= 93


def test_what_fits_comes_back_as_the_same_object() -> None:
    value = {"a": [1, {"b": "text"}]}
    assert shorten(value, 1000) is value
    assert shorten("x" * 10, 10) == "x" * 10


def test_a_text_is_cut_to_the_budget_and_notes_its_length() -> None:
    cut = shorten("x" * 5000, 1000)
    assert cut == "x" * 974 + "... [truncated 5000 chars]"
    assert len(cut) == 1000


def test_a_text_is_counted_and_cut_in_utf16() -> None:
    cut = shorten("🙂" * 600, 1000)
    assert cut.endswith("... [truncated 1200 chars]")
    assert text_length(cut) <= 1000
    assert cut.startswith("🙂" * 480)


def test_a_budget_below_the_suffix_cuts_the_suffix() -> None:
    assert shorten("x" * 100, 5) == "... ["
    assert shorten("x" * 100, 0) == ""


def test_an_object_keeps_its_keys() -> None:
    cut = shorten({"path": "/a.txt", "content": "y" * 5000, "lines": 3}, 1000)
    assert cut["path"] == "/a.txt"
    assert cut["lines"] == 3
    assert cut["content"] == "y" * 307 + "... [truncated 5000 chars]"
    assert list(cut) == ["path", "content", "lines"]


def test_an_only_child_has_the_whole_budget() -> None:
    assert len(shorten({"content": "y" * 5000}, 1000)["content"]) == 250  # over by the key, so cut to a quarter


def test_longest_texts_of_an_object_are_cut_first() -> None:
    cut = shorten({"a": "x" * 500, "b": "y" * 100, "c": 1}, 400)
    assert len(cut["a"]) == 133
    assert cut["b"] == "y" * 100


def test_an_object_of_numbers_falls_back_to_a_marker() -> None:
    value = {f"key{i}": i for i in range(1000)}
    assert shorten(value, 1000) == {"__truncated": True, "__truncatedChars": json_length(value), "note": OBJECT_NOTE}
    assert shorten(value, 60) == {"__truncated": True, "__truncatedChars": json_length(value)}


def test_a_list_loses_its_last_items_and_marks_the_cut() -> None:
    cut = shorten(list(range(10_000)), 1000)
    assert cut[:200] == list(range(200))
    assert cut[-1] == "Array output truncated ... [truncated 48891 chars]"
    assert 990 < json_length(cut) <= 1000


def test_items_of_a_list_are_shortened_before_any_is_dropped() -> None:
    cut = shorten(["x" * 600, "y" * 600], 1000)
    assert cut == ["x" * 475 + "... [truncated 600 chars]", "Array output truncated ... [truncated 1207 chars]"]


def test_a_list_keeps_its_only_item_or_becomes_a_marker() -> None:
    items = [{f"key{i}": i for i in range(1000)}, 2]
    length, inner = json_length(items), json_length(items[0])
    note = f"Array output truncated ... [truncated {length} chars]"
    assert shorten(items, 100) == [{"__truncated": True, "__truncatedChars": inner}, 2]
    assert shorten([items[0], *range(200)], 110)[0] == {"__truncated": True, "__truncatedChars": inner}
    assert note not in shorten(items, 100)
    assert shorten(list(range(1000)), 50) == [{"__truncated": True, "__truncatedChars": 3890 + 1}]
    assert shorten(list(range(1000)), 20) == ["... [truncated 3891 "]
    assert OBJECT_NOTE not in str(shorten(items, 60))


def test_depth_is_cut_at_eight() -> None:
    value: Any = "x" * 2000
    for _ in range(9):
        value = [value]
    cut = shorten(value, 1000)
    for _ in range(8):
        assert isinstance(cut, list)
        cut = cut[0]
    assert cut == "[Nested output omitted ... [truncated 2004 chars]]"


@pytest.mark.parametrize("value", [None, True, 3, 2.5, -(10**400)])
def test_scalars_stay(value: object) -> None:
    assert shorten(value, 1) is value


def test_lone_surrogates_do_not_break_the_count() -> None:
    assert json_length(shorten({"a": "\ud800" * 5000}, 1000)) <= 1000
