"""Forms of what staff have an agent do: call a method, work for a conversation, open an agent below, use files."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.reads.declarations import Method
from fibers.models.schedules import KINDS
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate

MAX_ARGUMENTS: Final = 100
MAX_SCHEDULED: Final = 50
MAX_CHARS: Final = 1_000_000
NO_CHOICE: Final = ("", "---------")


class JsonText(forms.CharField):
    """A JSON value. `max_items`: it has to be a list of at most so many."""

    def __init__(self, *, max_items: int = 0, rows: int = 4, **given: Any) -> None:
        attrs = {"rows": rows, "cols": 80, "spellcheck": "false", "dir": "ltr", "class": "vLargeTextField"}
        super().__init__(**{"max_length": MAX_CHARS, "widget": forms.Textarea(attrs=attrs), **given})
        self.max_items = max_items

    @override
    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            found = json.loads(text, parse_constant=_no_constant) if text else []
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(_("This is no JSON: %(error)s"), params={"error": error}) from error
        if self.max_items and not (isinstance(found, list) and len(found) <= self.max_items):
            wanted = _('Write a list of at most %(limit)d values, such as [1, "two"].')
            raise forms.ValidationError(wanted, params={"limit": self.max_items})
        return found


def _no_constant(name: str) -> None:
    raise ValueError(name)


def posted(request: HttpRequest) -> Any:
    """The fields that were sent; `None` for a request that only shows the page."""
    return request.POST if request.method == "POST" else None


@contextmanager
def errors_in(form: forms.Form) -> Iterator[None]:
    """Show what the product refuses in the form, in the language of the person who asks."""
    try:
        yield
    except ThinkError as error:
        form.add_error(None, translate(error.phrase))


def _choose(form: forms.Form, name: str, choices: Iterable[tuple[str, Any]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    field.choices = list(choices)


def _long_text(label: Any, **options: Any) -> forms.CharField:
    return forms.CharField(label=label, widget=forms.Textarea(attrs={"rows": 6, "class": "vLargeTextField"}), **options)


class CallForm(forms.Form):
    """A method for clients, and its arguments by position."""

    method = forms.ChoiceField(label=_("Method"))
    arguments = JsonText(label=_("Arguments, as a JSON list"), required=False, initial="[]", max_items=MAX_ARGUMENTS)

    def __init__(self, *args: Any, methods: list[Method], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "method", ((each.name, f"{each.name}{each.signature}") for each in methods))


class SubAgentForm(forms.Form):
    """An agent that the class lets clients open, and the name of the conversation."""

    agent = forms.ChoiceField(label=_("Agent"))
    name = forms.CharField(label=_("Name"), max_length=255)

    def __init__(self, *args: Any, agents: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "agent", ((each, each) for each in agents))


class RunForm(forms.Form):
    """Work for such an agent."""

    agent = forms.ChoiceField(label=_("Agent"))
    task = _long_text(_("Task"), max_length=MAX_CHARS)
    is_json = forms.BooleanField(label=_("The task is JSON"), required=False)

    def __init__(self, *args: Any, agents: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "agent", ((each, each) for each in agents))

    @override
    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("is_json") and "task" in data:
            try:
                data["task"] = JsonText().clean(data["task"])
            except forms.ValidationError as error:
                self.add_error("task", error)
        return data


class WorkspaceForm(forms.Form):
    """The workspace of another conversation of the same owner, or one by its id, under a name."""

    name = forms.CharField(label=_("Name, under which the agent opens it"), max_length=64)
    conversation = forms.CharField(label=_("Id of the conversation with the files"), required=False, max_length=128)
    workspace = forms.CharField(label=_("Or the id of a workspace"), required=False, max_length=128)
    can_write = forms.BooleanField(label=_("It may write"), required=False)

    @override
    def clean(self) -> dict[str, Any]:
        """Refuse none and both."""
        data = super().clean() or {}
        if bool(data.get("conversation")) == bool(data.get("workspace")):
            raise forms.ValidationError(_("Name either a conversation or a workspace."))
        return data


class ScheduleForm(forms.Form):
    """The title, prompt and times of a schedule."""

    title = forms.CharField(label=_("Title"), required=False, max_length=100)
    prompt = _long_text(_("Prompt"), required=False, max_length=20_000)
    kind = forms.ChoiceField(label=_("Kind"), choices=KINDS)
    spec = forms.CharField(label=_("Times"), max_length=100, widget=forms.TextInput(attrs={"dir": "ltr"}))
    zone = forms.CharField(label=_("Time zone"), required=False, max_length=64)


class NewScheduleForm(ScheduleForm):
    """The same, or a method for clients in place of the prompt."""

    method = forms.ChoiceField(label=_("Or a method"), required=False)
    arguments = JsonText(
        label=_("Its arguments, as a JSON list"), required=False, initial="[]", max_items=MAX_SCHEDULED
    )
    field_order = ("title", "prompt", "method", "arguments", "kind", "spec", "zone")

    def __init__(self, *args: Any, methods: list[Method], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        offered = (each for each in methods if not each.is_streaming)
        _choose(self, "method", (NO_CHOICE, *((each.name, f"{each.name}{each.signature}") for each in offered)))
