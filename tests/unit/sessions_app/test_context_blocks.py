"""Context blocks without a database: kinds, rendering, keys, limits, the order of the set-up's calls."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from chat.core.context.session_setup import SessionSetup
from sessions_app.core.context.context_blocks import (
    BAR,
    Block,
    Entry,
    StoredSearch,
    StoredSkills,
    StoredText,
    appended,
    check_content,
    check_key,
    check_label,
    declare,
    entry_key,
    found_text,
    key_list,
    kind_of,
    make_block,
    render,
)
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.core.context.documents import read_document
from sessions_app.core.context.loaded_skills import without_unloaded
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.errors import BlockExists, BlockTooLarge, ContextInvalid


def nothing(*_: Any) -> None:
    """A method of a provider."""


def provider(*methods: str) -> SimpleNamespace:
    return SimpleNamespace(**dict.fromkeys(methods, nothing))


def block(content: str, label: str = "memory", **options: Any) -> Block:
    return make_block(declare(label, **options), content)


@pytest.mark.parametrize(
    ("methods", "word", "writable"),
    [
        (["get"], "readonly", False),
        (["get", "set"], "writable", True),
        (["get", "load"], "loadable", False),
        (["get", "load", "set"], "loadable", True),
        (["get", "search"], "searchable", False),
        (["get", "search", "set"], "searchable", True),
    ],
)
def test_the_methods_of_a_provider_say_its_kind(methods: list[str], word: str, writable: bool) -> None:
    kind = kind_of(provider(*methods))
    assert (kind.word, kind.writable) == (word, writable)
    assert kind.is_keyed == (word in {"loadable", "searchable"})


@pytest.mark.parametrize(
    ("stored", "word"), [(StoredText(), "writable"), (StoredSkills(), "loadable"), (StoredSearch(), "searchable")]
)
def test_what_we_keep_is_writable(stored: Any, word: str) -> None:
    assert (kind_of(stored).word, kind_of(stored).writable) == (word, True)


def test_without_a_provider_a_block_is_a_text_of_ours() -> None:
    assert declare("memory").provider == StoredText(of="session")


@pytest.mark.parametrize("given", [7, object(), ["a"]])
def test_what_is_no_provider_is_refused(given: object) -> None:
    with pytest.raises(ContextInvalid, match="a text, a function, or an object with get"):
        declare("memory", provider=given)


def test_the_fields_of_a_block() -> None:
    made = block("x" * 40, description="Facts", max_tokens=100)
    assert (made.label, made.description, made.content, made.tokens, made.max_tokens) == (
        "memory",
        "Facts",
        "x" * 40,
        10,
        100,
    )
    assert (made.writable, made.is_skill, made.is_searchable) == (True, False, False)


def test_blocks_are_rendered_under_their_titles() -> None:
    rendered = render(
        [
            block("You are a helpful coding assistant.", "soul", provider="You are a helpful coding assistant."),
            block("x" * 1980, description="Important facts", max_tokens=1100),
        ]
    )
    assert BAR == "═" * 46
    assert rendered == (
        f"{BAR}\nSOUL [readonly]\n{BAR}\nYou are a helpful coding assistant.\n\n"
        f"{BAR}\nMEMORY (Important facts) [45% — 495/1100 tokens] [writable]\n{BAR}\n{'x' * 1980}"
    )


def test_only_empty_read_only_blocks_are_left_out() -> None:
    rendered = render(
        [
            block("", "gone", provider=provider("get")),
            block("", "notes"),
            block("", "skills", provider=provider("get", "load")),
            block("", "facts", provider=provider("get", "search")),
        ]
    )
    heads = [line for line in rendered.splitlines() if line != BAR and line]
    assert heads == ["NOTES [writable]", "SKILLS [loadable]", "FACTS [searchable]"]


@pytest.mark.parametrize(
    ("held", "addition", "result"),
    [("", "a", "a"), ("a", "b", "a\nb"), ("a\n", "b", "a\nb"), ("a", "", "a")],
)
def test_append_begins_a_line_if_needed(held: str, addition: str, result: str) -> None:
    assert appended(held, addition) == result


def test_more_than_the_limit_is_refused_with_a_reason() -> None:
    check_content("memory", "x" * 40, 10)
    with pytest.raises(BlockTooLarge, match=r"at most 10 tokens; this would be 11") as refused:
        check_content("memory", "x" * 41, 10)
    assert refused.value.data == {"tokens": 11, "max_tokens": 10}
    check_content("memory", "x" * 41, 10, held="x" * 400)  # what is too large already may shrink


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_database_takes_is_refused(text: str) -> None:
    with pytest.raises(ContextInvalid, match="cannot be stored"):
        check_content("memory", text, None)


@pytest.mark.parametrize("label", ["", " ", "a b", "a/b", "-a", "ä", "x" * 65, 7, None])
def test_a_label_can_be_distinguished(label: Any) -> None:
    with pytest.raises(ContextInvalid, match="is no label"):
        check_label(label)


@pytest.mark.parametrize("key", ["", " ", "a/b", "a\nb", "x" * 201, None])
def test_a_key_can_be_an_address(key: Any) -> None:
    with pytest.raises(ContextInvalid, match="is no key"):
        check_key(key)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "9"])
def test_a_limit_is_a_positive_number(limit: Any) -> None:
    with pytest.raises(ContextInvalid, match="max_tokens"):
        declare("memory", max_tokens=limit)


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("How to brew TEA!", "how-to-brew-tea"),
        ("x" * 90, "x" * 60),
        ("Ä  b", "ä-b"),
        ("日本 語", "日本-語"),
    ],
)
def test_a_key_is_the_slug_of_the_title(title: str, key: str) -> None:
    assert entry_key("whatever", title) == key


def test_without_a_title_it_is_a_slug_of_the_content_with_a_hash() -> None:
    # FNV-1a of "a" is 0xE40C292C by its definition; in base 36 that is 1r9wo7w.
    assert entry_key("a") == f"a-{base36(0xE40C292C)}"
    assert entry_key("Likes tea") != entry_key("Likes tea!")
    assert len(entry_key("word " * 100)) <= 60
    assert entry_key("!!!") == entry_key("!!!")
    assert check_key(entry_key("!!!"))


def base36(value: int) -> str:
    digits = ""
    while value:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def test_a_finding_is_reported_in_short() -> None:
    assert found_text(None) == found_text([]) == found_text("") == "No results found."
    assert found_text([Entry(key="a", content="one"), Entry(key="b", content="two")]) == "[a]\none\n\n[b]\ntwo"
    assert found_text([Entry(key=str(number), content="x") for number in range(20)]).count("[") == 10
    assert found_text([Entry(key="a", content="x" * 30)], max_chars=10) == "[a]\nxxxxxxxxxx... [truncated 20 chars]"


def test_documents_are_listed_with_their_descriptions() -> None:
    assert key_list([Entry(key="a", content="", description="One"), Entry(key="b", content="")]) == "- a: One\n- b"
    assert key_list([]) is None


def test_the_order_of_the_calls_means_nothing() -> None:
    one = ContextSetup().with_cached_prompt().with_context("a").with_memory()
    other = ContextSetup().with_context("a").with_memory().with_cached_prompt()
    assert (one.blocks, one.caches_prompt) == (other.blocks, other.caches_prompt)
    assert list(one.blocks) == ["a", "memory"]
    assert isinstance(SessionSetup().with_context("a"), SessionSetup)


def test_a_label_stands_once() -> None:
    with pytest.raises(BlockExists, match="'a'"):
        ContextSetup().with_context("a").with_context("a")


@pytest.mark.parametrize(
    ("source", "name", "description", "text"),
    [
        ("---\nname: tea\ndescription: 'How to brew'\n---\n\n# Tea\nPour.", "tea", "How to brew", "# Tea\nPour."),
        ("---\r\ndescription: >\r\n  One\r\n  two\r\nother: x\r\n---\r\nText", "file", "One two", "Text"),
        ("# A title\n\nText", "file", "A title", "# A title\n\nText"),
        ("---\nnever closed", "file", "---", "---\nnever closed"),
        ("", "file", "", ""),
    ],
)
def test_a_document_describes_itself(source: str, name: str, description: str, text: str) -> None:
    document = read_document(source, name="file")
    assert (document.name, document.description, document.text) == (name, description, text)


# --- what was loaded


def call(tool: str, key: str, output: str = "document", label: str = "skills", **part: Any) -> Part:
    made = {"type": f"tool-{tool}", "state": "output-available", "input": {"label": label, "key": key}}
    return cast("Part", made | {"output": output, **part})


def message(*parts: Part) -> Message:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def outputs(messages: list[Message]) -> list[str]:
    return [part["output"] for each in messages for part in each["parts"]]


def test_an_unloaded_document_is_a_note_where_models_read_and_the_original_stays() -> None:
    history = [message(call("load_context", "tea")), message(call("unload_context", "tea", "Unloaded."))]
    kept = [message(call("load_context", "tea")), message(call("unload_context", "tea", "Unloaded."))]
    assert outputs(without_unloaded(history, [], set())) == ["[skill unloaded: tea]", "Unloaded."]
    assert history == kept


@pytest.mark.parametrize(
    ("history", "said", "loaded", "read"),
    [
        ([call("load_context", "t")], [], {"skills:t"}, ["document"]),
        ([call("load_context", "t")], [], set(), ["[skill unloaded: t]"]),
        ([call("load_context", "t"), call("load_context", "t")], [], {"skills:t"}, ["[skill unloaded: t]", "document"]),
        ([call("load_context", "t")], [call("unload_context", "t", "ok")], {"skills:t"}, ["[skill unloaded: t]", "ok"]),
        ([], [call("load_context", "t")], set(), ["document"]),
        ([], [call("load_context", "t"), call("unload_context", "t", "ok")], set(), ["[skill unloaded: t]", "ok"]),
        ([call("load_context", "t", "Not found: t")], [], set(), ["Not found: t"]),
        ([call("load_context", "t", label="other")], [], {"skills:t"}, ["[skill unloaded: t]"]),
        ([call("load_context", "t", state="input-available")], [], set(), ["document"]),
        ([call("read", "t")], [], set(), ["document"]),
        ([call("", "t", type="dynamic-tool", toolName="load_context")], [], set(), ["[skill unloaded: t]"]),
    ],
)
def test_which_documents_are_read(history: Any, said: Any, loaded: set[str], read: list[str]) -> None:
    assert outputs(without_unloaded([message(*history)], [message(*said)] if said else [], loaded)) == read
