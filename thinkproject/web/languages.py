"""Languages of requests: Django's middleware without its threads, and made-up languages for developers.

A made-up language changes every sentence that is looked up in a catalogue, so what stays English was not. `en-xa` is
English with accents, in brackets, and longer, as most languages are; `ar-xb` runs from right to left.
"""

import re
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.middleware.locale import LocaleMiddleware
from django.utils.translation import trans_real

ACCENTED, RIGHT_TO_LEFT = "en-xa", "ar-xb"
_CONTEXT = "\x04"
"""Stands between the context of a message and the message."""
_KEPT = re.compile(
    r"(<code>.*?</code>|%\(\w+\)[-#0 +]*\d*(?:\.\d+)?[a-z]|%[sdif%]|\{\w*(?:![a-z])?(?::[^{}]*)?\}|<[^>]*>|&\w+;|https?://\S+|`[^`]*`)"
)
_ACCENTS = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "áƀçđéƒĝĥíĵķļɱñóþǫŕšŧúṽŵẋýžÁƁÇĐÉƑĜĤÍĴĶĻṀÑÓÞǪŔŠŦÚṼŴẊÝŽ"
)
_LONGER = 0.4
_WORD = 6
"""Letters of a word that is added, so that lines break."""


class LanguageMiddleware(LocaleMiddleware):
    """The language by cookie, else by `Accept-Language`. Under ASGI it runs on the loop: nothing in it waits."""

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve one request."""
        assert iscoroutinefunction(self.get_response)
        self.process_request(request)
        response: Any = await self.get_response(request)
        return self.process_response(request, response)


class MadeUpTranslation(trans_real.DjangoTranslation):
    """The catalogue of a made-up language: everything is in it, those of Django and of other apps too."""

    def gettext(self, message: str) -> str:
        """Change a sentence, which may have a context before it."""
        return made_up(message.rpartition(_CONTEXT)[2], self.to_language())

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """Change a sentence with a number in it."""
        return self.gettext(msgid1 if n == 1 else msgid2)


def install_made_up_languages() -> None:
    """Let this process know the made-up languages. Which ones are offered is in `LANGUAGES`."""
    for language in (ACCENTED, RIGHT_TO_LEFT):
        loaded: dict[str, Any] = vars(trans_real)["_translations"]  # where Django keeps catalogues
        loaded[language] = MadeUpTranslation(language)


def made_up(text: str, language: str) -> str:
    """A sentence in a made-up language. Places for values, markup, addresses and code stay as they are."""
    if not text.strip():
        return text
    pieces = _KEPT.split(text)  # every second one is kept
    change = _accented if language == ACCENTED else _reversed
    changed = "".join(piece if index % 2 else change(piece) for index, piece in enumerate(pieces))
    longer = "~" * round(_LONGER * sum(len(piece) for piece in pieces[::2]))
    padding = " ".join(longer[start : start + _WORD] for start in range(0, len(longer), _WORD))
    return f"[{changed} {padding}]" if language == ACCENTED else f"{changed} {padding}"


def _accented(text: str) -> str:
    return text.translate(_ACCENTS)


def _reversed(text: str) -> str:
    """Show Latin words from right to left: within an override."""
    return re.sub(r"\w+", lambda word: f"\u202e{word.group()}\u202c", text)
