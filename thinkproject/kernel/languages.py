"""The language of the person who asks: of a request by Django's middleware, of a socket when it connects."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

from django.http import HttpRequest, parse_cookie
from django.utils.translation import get_language_from_request, gettext

from thinkproject.kernel.phrases import Phrase


def translate(phrase: Phrase | str) -> str:
    """A sentence in the language that is active; in English where the catalogue does not have it."""
    if isinstance(phrase, Phrase):
        return phrase.filled(gettext(phrase.text))
    return gettext(phrase) if phrase else ""


def language_of(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The language that an ASGI connection asks for, by its cookie, else by `Accept-Language`. Must not query."""
    fields = {name: value.decode("latin1") for name, value in headers}
    request: Any = SimpleNamespace(
        COOKIES=parse_cookie(fields.get(b"cookie", "")),
        META={"HTTP_ACCEPT_LANGUAGE": fields.get(b"accept-language", "")},
    )
    return get_language_from_request(cast("HttpRequest", request))
