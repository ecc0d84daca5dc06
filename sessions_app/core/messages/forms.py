"""Forms that messages take on their way to a model: cut, converted, on a provider's wire. Each is made once.

A conversation sends the same messages in each turn. Forms are kept of values that are never changed, known by their
identity: of messages as they stay in a worker, and of what was made of those in turn. Of any other value a form is made
anew, so what a hook has put in a message's place, or has changed in a copy, is never taken for the message.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

MAX_FORMS: Final = 8
"""Forms of one value; more, as of many models, are made anew each time."""

FORM_BYTES: Final = 1_200
"""The memory that the forms of a message take besides its own text, which they share."""

F = TypeVar("F")
S = TypeVar("S")

_SOURCE: Final = ""  # the name of a value among its forms, which keeps its identity its own
_LEAVES: Final = (int, str, tuple)  # no further form is made of such a form


class KeptForms:
    """The forms of the messages of one path. Threads may share it: what two make at once is the same, made twice."""

    def __init__(self) -> None:
        self._of: dict[int, dict[str, Any]] = {}

    def keep(self, source: object) -> None:
        """Keep forms of a value from now on. It is not changed any more."""
        self._of.setdefault(id(source), {_SOURCE: source})

    def has(self, source: object) -> bool:
        """Whether forms of a value are kept."""
        return id(source) in self._of

    def made(self, source: S, name: str, make: Callable[[S], F]) -> F:
        """The form of this name; made if it is not kept. `name`: says all that the form depends on besides the value.

        A form is never `None`.
        """
        forms = self._of.get(id(source))
        if forms is None:
            return make(source)
        kept: F | None = forms.get(name)
        return self._noted(forms, name, make(source)) if kept is None else kept

    def found(self, source: object, name: str) -> object | None:
        """The form of this name, if it is kept."""
        forms = self._of.get(id(source))
        return None if forms is None else forms.get(name)

    def note(self, source: object, name: str, form: object) -> None:
        """Keep a form in the place of the one that was kept; without effect for a value of which none are."""
        forms = self._of.get(id(source))
        if forms is not None:
            self._noted(forms, name, form)

    def _noted(self, forms: dict[str, Any], name: str, form: F) -> F:
        if len(forms) <= MAX_FORMS or name in forms:
            if not isinstance(form, _LEAVES):
                self.keep(form)
            forms[name] = form
        return form


class NoForms(KeptForms):
    """The forms of messages that do not stay: none."""

    def keep(self, source: object) -> None:
        """Do nothing."""


NO_FORMS: Final = NoForms()
