"""A form made of a JSON Schema: a field for each property, so that a configuration is filled in and not written.

What has no field of its own (objects, lists of anything but texts) is a field of JSON among the others. A schema that
describes no object has no such form.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _
from typing_extensions import override

from chat.admin.ability_forms import JsonText

LONG_CHARS: Final = 120
MAX_CHARS: Final = 100_000
_PREFIX: Final = "config_"


class SchemaForm(forms.Form):
    """The properties of one schema. `value_of` gives the object; what was left empty and may be is left out."""

    version = forms.IntegerField(widget=forms.HiddenInput, min_value=0)

    def __init__(self, *args: Any, schema: Mapping[str, Any], value: Any, version: int, **kwargs: Any) -> None:
        held = value if isinstance(value, dict) else {}
        self._kinds: dict[str, str] = {}
        fields = {}
        for name, given in schema["properties"].items():
            found = _resolved(given, schema)
            is_required = name in schema.get("required", ())
            self._kinds[name], fields[_PREFIX + name] = _field(name, found, is_required=is_required)
        initial = {"version": version}
        for name, kind in self._kinds.items():
            shown = held.get(name, _resolved(schema["properties"][name], schema).get("default"))
            initial[_PREFIX + name] = _shown(shown, kind)
        super().__init__(*args, **{**kwargs, "initial": initial})
        self.fields.update(fields)
        self._others = {name: each for name, each in held.items() if name not in self._kinds}

    @property
    def value(self) -> dict[str, Any]:
        """The configuration as it was filled in, with the properties of the old one that the schema does not name."""
        found = {name: _read(self.cleaned_data[_PREFIX + name], kind) for name, kind in self._kinds.items()}
        return {**self._others, **{name: each for name, each in found.items() if each is not None}}

    @override
    def add_error(self, field: Any, error: Any) -> None:
        """An error of the configuration as a whole belongs to no field."""
        super().add_error(None if field == "value" else field, error)


def has_form(schema: Mapping[str, Any] | None) -> bool:
    """Whether the schema describes an object with named properties."""
    return schema is not None and schema.get("type") == "object" and bool(schema.get("properties"))


def _resolved(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Follow a reference, and take the one alternative besides null."""
    found = dict(given)
    if "$ref" in found:
        target = schema.get("$defs", {}).get(str(found["$ref"]).rpartition("/")[2], {})
        found = {**target, **{name: each for name, each in found.items() if name != "$ref"}}
    options = [each for each in found.get("anyOf", ()) if each.get("type") != "null"]
    if "anyOf" in found and len(options) == 1:
        rest = {name: each for name, each in found.items() if name != "anyOf"}
        return _resolved({**options[0], **rest, "is_optional": True}, schema)
    return found


def _field(name: str, found: Mapping[str, Any], *, is_required: bool) -> tuple[str, forms.Field]:
    label = str(found.get("title") or name.replace("_", " ").capitalize())
    needed = is_required and not found.get("is_optional")
    common: dict[str, Any] = {"label": label, "required": needed, "help_text": str(found.get("description", ""))}
    kind = found.get("type")
    if "enum" in found and all(isinstance(each, str) for each in found["enum"]):
        choices = [(each, each) for each in found["enum"]]
        return "text", forms.ChoiceField(choices=choices if needed else [("", "–"), *choices], **common)
    if kind == "boolean":
        return "boolean", forms.BooleanField(**{**common, "required": False})
    if kind in ("integer", "number"):
        bounds: dict[str, Any] = {"min_value": found.get("minimum"), "max_value": found.get("maximum")}
        field = forms.IntegerField if kind == "integer" else forms.FloatField
        return "number", field(**common, **bounds)
    if kind == "string":
        is_long = int(found.get("maxLength", MAX_CHARS)) > LONG_CHARS
        widget = forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField"}) if is_long else forms.TextInput
        limit = int(found.get("maxLength", MAX_CHARS))
        return "text", forms.CharField(max_length=limit, widget=widget, **common)
    if kind == "array" and found.get("items", {}).get("type") == "string":
        return "lines", forms.CharField(
            widget=forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
            **{**common, "required": False, "label": _("%(name)s, one a line") % {"name": label}},
        )
    return "json", JsonText(**{**common, "label": _("%(name)s, as JSON") % {"name": label}})


def _shown(value: Any, kind: str) -> Any:
    if kind == "lines":
        return "\n".join(map(str, value)) if isinstance(value, list) else ""
    return ("" if value is None else json.dumps(value, indent=2, ensure_ascii=False)) if kind == "json" else value


def _read(value: Any, kind: str) -> Any:
    if kind == "lines":
        return [line.strip() for line in str(value).splitlines() if line.strip()]
    return None if value == "" else value
