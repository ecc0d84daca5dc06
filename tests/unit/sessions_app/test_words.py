"""Words as the search knows them."""

import sqlite3
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.messages.shapes import Part
from sessions_app.core.search.stemming import stem
from sessions_app.core.search.words import MAX_INDEXED_CHARS, MAX_WORDS, indexed_words, text_of, words_of

# Every rule of the algorithm at least once, most with a word that it must leave alone.
ENGLISH = """
caresses ponies ties caress cats feed agreed plastered bled motoring sing conflated troubled sized hopping tanned
falling hissing fizzed failing filing happy sky relational conditional rational valency hesitancy digitizer conformably
radically differently vilely analogously vietnamization predication operator feudalism decisiveness hopefulness
callousness formality sensitivity sensibility geology triplicate formative formalize electricity electrical hopeful
goodness revival allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent
adoption homologous communism activate angularity effective bowdlerize probate rate cease controlling roll by say enjoy
toy syzygy yes ion lion nation ing ed agreement generously eli bli is as us being tree free oxen
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Searching, SEARCHED: searches!", "search search search"),
        ("Crème brûlée", "creme brule"),
        ("e\u0301te\u0301 \u00e9t\u00e9", "et et"),
        ("snake_case don't 3.5", "snake case don t 3 5"),
        ("東京都へ", "東 京 都 へ"),
        ("한국어", "한 국 어"),
        ("हिन्दी में", "हिन्दी में"),
        ("שָׁלוֹם", "שלום"),
        ("Straße ﬁn ＡＢ１", "strass fin ab1"),
        ("\0 \ud800 🎉 --", ""),
    ],
)
def test_words(text: str, words: str) -> None:
    assert indexed_words(text) == words


def test_stems_are_those_of_sqlites_porter_tokenizer() -> None:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE VIRTUAL TABLE texts USING fts5(word, tokenize = 'porter ascii')")
        database.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(texts, instance)")
        words = ENGLISH.split()
        database.executemany("INSERT INTO texts VALUES (?)", [(word,) for word in words])
        terms = [term for (term,) in database.execute("SELECT term FROM terms ORDER BY doc")]
    assert [stem(word) for word in words] == terms


@given(st.text())
def test_a_word_carries_its_position(text: str) -> None:
    found = list(words_of(text))
    assert all(0 <= word.start < word.end <= len(text) for word in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(word.stem.isalnum() or not word.stem.isascii() for word in found)


@given(st.text())
def test_the_index_splits_at_spaces_alone(text: str) -> None:
    assert indexed_words(text).split(" ") == [word.stem for word in words_of(text)] or not indexed_words(text)


def test_what_is_indexed_of_a_text_is_bounded() -> None:
    assert len(indexed_words("word " * (MAX_WORDS + 1)).split()) == MAX_WORDS
    assert len(indexed_words("x" * 63 + f" {'y' * 63}" * MAX_WORDS)) <= MAX_INDEXED_CHARS


def test_only_texts_are_words_of_a_message() -> None:
    parts: list[Part] = [
        {"type": "text", "text": "one"},
        {"type": "reasoning", "text": "hidden"},
        {"type": "tool-look", "toolCallId": "c", "output": "hidden"},
        {"type": "text", "text": "two"},
    ]
    assert text_of(parts) == "one\ntwo"
