"""Words of the admin for what the history of context has as codes. A code without one is shown as it is."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

Words = Mapping[str, str | Promise]

VIA_WORDS: Final[Words] = {
    "model": _("The model"),
    "code": _("Code"),
    "api": _("The API or the page"),
    "admin": _("The admin"),
}
ACTION_WORDS: Final[Words] = {
    "set": _("Set"),
    "append": _("Added to"),
    "add": _("Added"),
    "remove": _("Removed"),
    "delete": _("Deleted"),
    "edit": _("Edited"),
    "undo": _("Undone"),
    "ask": _("Asked again for"),
}
SUBJECT_WORDS: Final[Words] = {
    "block": _("block"),
    "entry": _("entry"),
    "compaction": _("summary"),
    "message": _("message"),
}


def worded(code: str, words: Words) -> str:
    """A code in words."""
    return str(words.get(code, code))
