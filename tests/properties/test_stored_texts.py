"""A message whose text is taken as it is stored: what parsing it and encoding it again gives, whatever people wrote."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chat.reads.transcript_windows import Window
from sessions_app.core.messages.messages import to_content, to_ui
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.stored_texts import StoredText
from thinkproject.kernel.jsonvalue import JSONValue, dump, load

odd = st.sampled_from(
    ['"metadata":null}', '{"parts":[', "]}", "\u2028\u2029", "\0\x1f\x7f", '\\"', "NaN", "🙂", "\ud83d"]
)
texts = st.text(max_size=20) | st.text(alphabet='\ud800\udfff\u2028"\\{}[],:é🙂', max_size=12) | odd
numbers = st.integers(-(10**400), 10**400) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)
objects = st.dictionaries(texts, values, max_size=4)
messages: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "id": st.text(min_size=1, max_size=20),
        "role": st.sampled_from(["user", "assistant"]),
        "parts": st.lists(objects),
    },
    optional={"metadata": st.none() | objects},
)


def stored(message: Message, content: str | None = None) -> StoredText:
    text = dump(to_content(message)) if content is None else content
    return StoredText(message["id"], message["role"], text, "", True)


def parsed(text: StoredText) -> Message:
    return to_ui(text.id, text.role, load(text.content))


@given(messages)
def test_the_text_is_that_of_the_parsed_message(message: Message) -> None:
    text = stored(message)
    assert load(text.ui_text()) == parsed(text) == text.to_ui()
    assert list(load(text.ui_text())) == list(parsed(text))  # in this order
    if text.id.isascii():  # else half a character elsewhere in the message changes how the id is escaped
        assert text.ui_text() == dump(parsed(text))


@given(messages, st.sampled_from([None, 1]), st.booleans())
def test_a_text_that_others_wrote_is_read_as_well(message: Message, indent: int | None, is_turned: bool) -> None:
    content = {"parts": message["parts"], "metadata": message.get("metadata")}
    if is_turned:
        content = dict(reversed(content.items()))
    text = stored(message, json.dumps(content, indent=indent))
    assert load(text.ui_text()) == parsed(text)


@given(st.lists(messages, max_size=5, unique_by=lambda message: message["id"]))
def test_a_transcript_is_the_list_of_its_messages(items: list[Message]) -> None:
    rows = [stored(message) for message in items]
    transcript = Window(None, rows).mark()
    expected: list[JSONValue] = [parsed(row) for row in rows]
    assert load(transcript.text) == expected == transcript.messages
    assert [transcript.find(message["id"]) for message in items] == expected
    assert transcript.ids == {message["id"] for message in items}
    transcript.text.encode()  # what is sent
