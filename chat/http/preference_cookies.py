"""Cookies with a person's preferences, so that no request has to read them: language, time zone, theme, text size.

They are set when a preference is changed and when a person signs in. The server reads the language, the theme and the
text size; the page reads the time zone, and names it in its requests.
"""

from typing import Final

from django.conf import settings
from django.http import HttpResponse

from chat.models import PersonPreferences

THEME: Final = "think_theme"
TEXT_SIZE: Final = "think_text"
ZONE: Final = "think_zone"
_YEAR_SECONDS: Final = 31_536_000
_NAMES: Final = {"theme": THEME, "text_size": TEXT_SIZE, "zone": ZONE}


def write_cookies(response: HttpResponse, preferences: PersonPreferences, changed: set[str]) -> None:
    """Set the cookies of these fields; a field that is empty has none."""
    for field, cookie in {**_NAMES, "language": settings.LANGUAGE_COOKIE_NAME}.items():
        if field not in changed:
            continue
        value = getattr(preferences, field)
        if value:
            response.set_cookie(
                cookie,
                value,
                max_age=_YEAR_SECONDS,
                path=settings.LANGUAGE_COOKIE_PATH,
                secure=settings.LANGUAGE_COOKIE_SECURE,
                samesite="Lax",
            )
        else:
            response.delete_cookie(cookie, path=settings.LANGUAGE_COOKIE_PATH, samesite="Lax")


def write_at_sign_in(response: HttpResponse, preferences: PersonPreferences) -> None:
    """Set the cookies of a person who signs in: their choices win over the browser's, and another's time zone goes."""
    chosen = {field for field in (*_NAMES, "language") if getattr(preferences, field)}
    write_cookies(response, preferences, chosen | {"zone"})
