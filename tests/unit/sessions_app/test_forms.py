"""Forms of messages are made once of values that stay as they are, and anew of all others."""

from sessions_app.core.messages import forms as forms_module
from sessions_app.core.messages.forms import NO_FORMS, KeptForms

Value = dict[str, str]


class Making:
    """Makes forms and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def upper(self, value: Value) -> Value:
        self.count += 1
        return {name: text.upper() for name, text in value.items()}


def test_a_form_of_a_kept_value_is_made_once() -> None:
    forms, making, value = KeptForms(), Making(), {"text": "tea"}
    forms.keep(value)
    first = forms.made(value, "upper", making.upper)
    assert first == {"text": "TEA"}
    assert forms.made(value, "upper", making.upper) is first
    assert making.count == 1


def test_of_an_equal_value_that_is_not_kept_it_is_made_anew() -> None:
    forms, making, value = KeptForms(), Making(), {"text": "tea"}
    forms.keep(value)
    forms.made(value, "upper", making.upper)
    assert forms.made(dict(value), "upper", making.upper) == {"text": "TEA"}
    assert making.count == 2
    assert forms.found(dict(value), "upper") is None


def test_a_form_has_forms_of_its_own() -> None:
    forms, making, value = KeptForms(), Making(), {"text": "tea"}
    forms.keep(value)
    for _ in range(2):
        upper = forms.made(value, "upper", making.upper)
        assert forms.made(upper, "once more", making.upper) == upper
    assert making.count == 2


def test_a_note_takes_the_place_of_the_one_before() -> None:
    forms, value = KeptForms(), {"text": "tea"}
    forms.note(value, "hash", ("", "a"))
    assert forms.found(value, "hash") is None
    forms.keep(value)
    forms.note(value, "hash", ("", "a"))
    forms.note(value, "hash", ("x", "b"))
    assert forms.found(value, "hash") == ("x", "b")


def test_a_value_has_so_many_forms_and_no_more() -> None:
    forms, making, value = KeptForms(), Making(), {"text": "tea"}
    forms.keep(value)
    for _ in range(2):
        for number in range(forms_module.MAX_FORMS + 3):
            forms.made(value, f"of model {number}", making.upper)
    assert making.count == forms_module.MAX_FORMS + 3 + 3


def test_what_is_not_kept_has_none() -> None:
    making, value = Making(), {"text": "tea"}
    NO_FORMS.keep(value)
    NO_FORMS.made(value, "upper", making.upper)
    assert not NO_FORMS.has(value)
    assert NO_FORMS.found(value, "upper") is None
