"""The languages that people can choose from: on the sign-in page, and in their settings."""

from dataclasses import dataclass
from pathlib import Path

from django.conf import global_settings, settings
from django.middleware.locale import LocaleMiddleware
from django.utils.module_loading import import_string
from django.utils.translation import get_language_info, to_language

_CATALOGUES = Path(__file__).resolve().parents[1] / "locale"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedLanguage:
    """A language by its code, such as `pt-br`, with its own name for itself."""

    code: str
    name: str


def offered_languages() -> list[OfferedLanguage]:
    """The project's `LANGUAGES`, in their order; those with a catalogue of ours where it has named none.

    Nothing is offered where a choice would change nothing: of one language alone, or without a middleware for it.
    """
    offered = list(settings.LANGUAGES)
    if offered == list(global_settings.LANGUAGES):
        ours = {"en", *(to_language(path.parents[1].name) for path in _CATALOGUES.glob("*/LC_MESSAGES/django.mo"))}
        offered = [(code, name) for code, name in offered if code in ours]
    if len(offered) < 2 or not any(_reads_languages(path) for path in settings.MIDDLEWARE):
        return []
    return [OfferedLanguage(code=code, name=_own_name(code, str(name))) for code, name in offered]


def _own_name(code: str, listed: str) -> str:
    try:
        known = get_language_info(code)
    except KeyError:  # one of the project's own
        return listed
    name = str(known["name_local"])
    return name[:1].upper() + name[1:] if known["code"] == code else listed


def _reads_languages(path: str) -> bool:
    middleware = import_string(path)
    return isinstance(middleware, type) and issubclass(middleware, LocaleMiddleware)
