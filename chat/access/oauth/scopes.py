"""Scopes of programs: what of an agent a person lets them use."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Scope(StrEnum):
    """One ability. API tokens have all of them."""

    CHAT = "chat"
    TOOLS = "tools"
    HISTORY = "history"


ALL: Final = frozenset(Scope)

SENTENCES: Final[dict[Scope, Promise]] = {
    Scope.CHAT: _("send messages to it in your name and read its answers"),
    Scope.TOOLS: _("call the tools that it offers, with the approvals that you give here"),
    Scope.HISTORY: _("read your conversations with it"),
}
"""Sentences for the person who is asked: "It may …"."""


def known_scopes(names: Iterable[str]) -> list[Scope]:
    """The scopes of these names, in their order of declaration; unknown names are left out."""
    wanted = set(names)
    return [scope for scope in Scope if scope.value in wanted]
