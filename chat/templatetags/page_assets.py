"""Template tags for what pages load.

`{% asset "icon.svg" %}` is an address, `{% page_style "app.css" %}` a link, `{% page_script "main.js" %}` a script with
preloads, `{% page_messages %}` the texts of the page's language. Tags render nothing when the page was not built.
"""

from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from chat.http.assets import find_asset, find_messages
from chat.http.languages import OfferedLanguage, offered_languages

register = template.Library()


@register.simple_tag
def asset(name: str) -> str:
    """The address of a file of the build."""
    found = find_asset(name)
    return found.url if found else ""


@register.simple_tag
def page_style(name: str) -> SafeString:
    """The link to a style sheet."""
    found = find_asset(name)
    return format_html('<link rel="stylesheet" href="{}">', found.url) if found else SafeString("")


@register.simple_tag(takes_context=True)
def page_script(context: dict[str, Any], name: str) -> SafeString:
    """The script element of an entry, and preloads of the modules that it needs at once: one round trip for all.

    They carry the nonce of the page's policy where there is one.
    """
    found = find_asset(name)
    if found is None:
        return SafeString("")
    attribute = _nonce(context)
    modules = [(url, attribute) for url in found.preload]
    preloads = format_html_join("", '<link rel="modulepreload" href="{}"{}>\n  ', modules)
    return format_html('{}<script type="module" src="{}"{}></script>', preloads, found.url, attribute)


@register.simple_tag(takes_context=True)
def page_messages(context: dict[str, Any]) -> SafeString:
    """The modules with the texts of the active language, for `static/src/app/lib/translations.ts`; none for English.

    The one for the first view is loaded with the script, the other one when the first view is drawn.
    """
    found = find_messages(get_language() or "")
    if found is None:
        return SafeString("")
    first = format_html('<link rel="modulepreload" href="{}"{}>', found.url, _nonce(context))
    named = [(url,) for url in (found.url, *found.preload)]
    return first + format_html_join("", '\n  <meta name="messages" content="{}">', named)


@register.simple_tag
def languages_to_choose() -> list[OfferedLanguage]:
    """The languages of the menu on the sign-in page."""
    return offered_languages()


def _nonce(context: dict[str, Any]) -> SafeString:
    nonce = str(getattr(context.get("request"), "csp_nonce", ""))  # text: the lazy object is false until it is used
    return format_html(' nonce="{}"', nonce) if nonce else SafeString("")
