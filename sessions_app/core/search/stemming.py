"""The stem of an English word: what "search", "searched" and "searching" share.

Words are stemmed here and not by the databases, so that each finds exactly what the other finds. The algorithm is
Porter's of 1980, the one that FTS5 knows. Anything but lower-case ASCII letters is left as it is.
"""

import threading
from functools import lru_cache
from typing import Any

_of_thread = threading.local()  # a stemmer holds the word that it works on


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Give the stem of a lower-case word."""
    if len(word) <= 2 or not (word.isascii() and word.isalpha()):
        return word
    stemmer: Any = getattr(_of_thread, "stemmer", None)
    if stemmer is None:
        import snowballstemmer  # type: ignore[import-untyped]  # noqa: PLC0415 - it loads every language, for one word

        stemmer = _of_thread.stemmer = snowballstemmer.stemmer("porter")
    return str(stemmer.stemWord(word))
